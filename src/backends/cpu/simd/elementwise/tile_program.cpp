#include "backends/cpu/simd/elementwise/tile_program.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>

#include "backends/cpu/simd/elementwise/broadcast_axes.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/unpadded_layouts.h"
#include "ops/elementwise/formula/formula_table.h"
#include "tensor/size_of.h"

namespace autograph::simd {
namespace {

// 4 KiB per value, so that half a dozen values fit the first cache.
constexpr int64_t kTile = kTileElements;

// Where a value lives while a tile is worked on.
struct Place {
  enum class Kind : uint8_t { none, input, number, buffer, output };
  Kind kind = Kind::none;
  uint32_t index = 0;
};

struct Step {
  TileOp op;
  std::array<Place, 3> operands;
  Place target;
  float p, q;
};

// How an input is read.
enum class Walk : uint8_t {
  none,    // not given
  flat,    // like the output
  scalar,  // one element
  rows,    // anything else: by rows
};

struct Input {
  Walk walk = Walk::none;
  DType dtype = DType::f32;  // of a byte: widened into a buffer
  uint32_t buffer = 0;       // for widening, and for rows shorter than a tile
  bool is_bytes() const { return element_size(dtype) == 1; }
};

struct Output {
  DType dtype = DType::f32;
  uint32_t buffer = 0;  // what is narrowed, when of bytes
  bool is_bytes() const { return element_size(dtype) == 1; }
};

void widen(DType dtype, const void* from, int64_t offset, float* to, int64_t count) {
  if (dtype == DType::i8) return widen_signed_bytes(static_cast<const int8_t*>(from) + offset, to, count);
  widen_bytes(static_cast<const uint8_t*>(from) + offset, to, count);
}

float widened(DType dtype, const void* from, int64_t offset) {
  if (dtype == DType::i8) return static_cast<const int8_t*>(from)[offset];
  return static_cast<const uint8_t*>(from)[offset];
}

void narrow(DType dtype, const float* from, void* to, int64_t offset, int64_t count) {
  if (dtype == DType::i8) return narrow_to_signed_bytes(from, static_cast<int8_t*>(to) + offset, count);
  auto* target = static_cast<uint8_t*>(to) + offset;
  return dtype == DType::u8 ? narrow_to_bytes(from, target, count) : narrow_to_bool(from, target, count);
}

// Time of a part of a formula, in units of an addition.
int64_t weight_of(formulas::ExprOp op) {
  using formulas::ExprOp;
  switch (op) {
    case ExprOp::pow: return 16;
    case ExprOp::exp:
    case ExprOp::expm1:
    case ExprOp::log:
    case ExprOp::log1p:
    case ExprOp::erf:
    case ExprOp::erfc:
    case ExprOp::tanh:
    case ExprOp::sin:
    case ExprOp::cos: return 6;
    case ExprOp::div:
    case ExprOp::sqrt: return 2;
    default: return 1;
  }
}

std::vector<int64_t> weights_of_formulas() {
  std::vector<int64_t> weights;
  for (const Formula& formula : all_formulas()) {
    int64_t weight = 1;
    for (const auto& part : parts_in_order(formula.fast)) weight = std::max(weight, weight_of(part.op()));
    weights.push_back(weight);
  }
  weights.resize(kTileOpCount, 1);
  return weights;
}

// Time of an instruction: that of its slowest part.
int64_t weight_of(TileOp op) {
  static const std::vector<int64_t> kWeights = weights_of_formulas();
  return kWeights[static_cast<size_t>(op)];
}

// Types of the call's inputs, then of the program's constants.
std::vector<Type> input_types(const KernelCall& call, std::span<const Tensor> constants) {
  std::vector<Type> types(call.inputs.begin(), call.inputs.end());
  for (const Tensor& constant : constants) types.push_back(constant.type());
  return types;
}

// Inputs of the output's dims have its layout, all others are row-major.
std::vector<std::optional<BroadcastInput>> broadcast_inputs(const KernelCall& call, const TileProgram& program) {
  const Dims output = call.output_dims(0);
  std::vector<std::optional<BroadcastInput>> inputs;
  for (const Type& type : input_types(call, program.constants)) {
    inputs.emplace_back();
    if (!type.is_tensor()) continue;
    const Dims dims = type.shape().static_dims();
    inputs.back() = {dims, inputs.size() <= call.inputs.size() && dims == output};
  }
  return inputs;
}

Layout layout_of(const KernelCall& call) { return call.variant ? call.variant->output(0) : Layout::row_major; }

class TileKernel : public Kernel {
 public:
  TileKernel(const KernelCall& call, TileProgram program);
  void run(const KernelArgs& args) const override;
  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_) * static_cast<size_t>(scratch_elements()) * sizeof(float);
  }
  std::vector<uint32_t> in_place_inputs() const override { return in_place_inputs_; }

  int64_t scratch_elements() const { return buffers_ * kTile; }
  const float* compute(std::span<const TensorView> inputs, int64_t begin, int64_t end, float* scratch, float* to) const;

 private:
  // A row that a buffer holds over and over.
  struct Repeated {
    int64_t offset = -1;
    int64_t rows = 0;
  };

  // One thread's view of a run.
  struct Worker {
    const KernelArgs& args;
    float* buffers;
    RowCursor cursor;
    int64_t base = 0;  // the element with which outputs begin
    std::array<TileOperand, kMaxInputs> inputs = {};
    std::array<Repeated, kMaxInputs> repeated = {};
  };

  void plan_inputs(const KernelCall& call);
  bool is_flat(size_t k) const;
  void plan_steps(TileProgram& program, const KernelCall& call);
  void plan_in_place(const KernelCall& call);
  bool is_read_after_output(uint32_t k) const;
  Worker worker_from(const KernelArgs& args, float* buffers, int64_t first_tile) const;
  int64_t tile_of(int64_t element) const;
  int64_t first_element(int64_t tile) const;
  void run_tiles(Worker& worker, int64_t begin, int64_t end) const;
  void read_rows(Worker& worker, int64_t rows) const;
  void read_run(Worker& worker, size_t k, int64_t done, int64_t run) const;
  void read_part(Worker& worker, int64_t first, int64_t count) const;
  void read_flat(Worker& worker, int64_t offset, int64_t count) const;
  void run_steps(Worker& worker, int64_t offset, int64_t count) const;
  void copy_strided(const Worker& worker, size_t k, int64_t offset, float* to, int64_t count) const;
  TileOperand operand_at(const Worker& worker, const Place& place, int64_t offset) const;
  const void* raw_input(const Worker& worker, size_t k) const {
    const size_t given = worker.args.inputs.size();
    return k < given ? worker.args.inputs[k].raw() : constants_[k - given].raw();
  }
  static float* buffer(const Worker& worker, uint32_t index) { return worker.buffers + index * kTile; }

  std::vector<BroadcastAxis> axes_;
  std::vector<Tensor> constants_;
  int64_t row_ = 1;  // elements per row
  int64_t num_rows_ = 1;
  int64_t rows_per_tile_ = 0;  // 0: a row takes several tiles
  int64_t tiles_per_row_ = 1;
  int64_t num_tiles_ = 0;
  std::vector<Input> inputs_;
  std::vector<Output> outputs_;
  std::vector<float> numbers_;
  std::vector<Step> steps_;
  uint32_t buffers_ = 0;
  int threads_ = 1;
  std::vector<uint32_t> in_place_inputs_;
};

TileKernel::TileKernel(const KernelCall& call, TileProgram program)
    : axes_(broadcast_axes(call.output_dims(0), layout_of(call), broadcast_inputs(call, program))),
      constants_(std::move(program.constants)) {
  row_ = axes_.back().extent;
  for (size_t a = 0; a + 1 < axes_.size(); ++a) num_rows_ *= axes_[a].extent;
  if (row_ == 0) num_rows_ = 0;
  if (row_ <= kTile / 2) {
    rows_per_tile_ = row_ == 0 ? 1 : kTile / row_;
    num_tiles_ = (num_rows_ + rows_per_tile_ - 1) / rows_per_tile_;
  } else {
    tiles_per_row_ = (row_ + kTile - 1) / kTile;
    num_tiles_ = num_rows_ * tiles_per_row_;
  }
  plan_inputs(call);
  plan_steps(program, call);
  plan_in_place(call);
  int64_t weight = 0;
  for (const Step& step : steps_) weight += weight_of(step.op);
  threads_ = useful_threads(call.threads, num_rows_ * row_ * weight);
}

void TileKernel::plan_inputs(const KernelCall& call) {
  const std::vector<Type> types = input_types(call, constants_);
  for (size_t k = 0; k < types.size(); ++k) {
    Input input;
    if (types[k].is_tensor()) {
      input.walk = types[k].shape().num_elements() == 1 ? Walk::scalar : is_flat(k) ? Walk::flat : Walk::rows;
      input.dtype = types[k].dtype();
      input.buffer = buffers_;
      if (input.is_bytes() || input.walk == Walk::rows) ++buffers_;
    }
    inputs_.push_back(input);
  }
}

// Does input k lie in memory as the output does?
bool TileKernel::is_flat(size_t k) const {
  int64_t stride = 1;
  for (size_t a = axes_.size(); a-- > 0;) {
    if (axes_[a].extent != 1 && axes_[a].strides[k] != stride) return false;
    stride *= axes_[a].extent;
  }
  return true;
}

// Gives every result a place: the output that it is, or a buffer until its last use.
void TileKernel::plan_steps(TileProgram& program, const KernelCall& call) {
  // Outputs that are inputs, numbers or other outputs become copies.
  std::vector<int> output_of(program.instructions.size(), -1);
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    TileValue& value = program.outputs[k];
    if (value.kind != TileValue::Kind::result || output_of[value.index] >= 0) {
      value = program.emit({.op = kTileOp<formulas::Identity>, .operands = {value}});
      output_of.push_back(-1);
    }
    output_of[value.index] = static_cast<int>(k);
    outputs_.push_back({call.outputs[k].dtype(), 0});
  }
  std::vector<size_t> last_use(program.instructions.size(), 0);
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for (const TileValue& value : program.instructions[i].operands) {
      if (value.kind == TileValue::Kind::result) last_use[value.index] = i;
    }
  }
  numbers_ = program.numbers;
  std::vector<Place> places;
  std::vector<uint32_t> free;
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const TileInstruction& instruction = program.instructions[i];
    Step step{instruction.op, {}, {}, instruction.p, instruction.q};
    for (size_t k = 0; k < 3; ++k) {
      const TileValue& value = instruction.operands[k];
      if (value.kind == TileValue::Kind::input) step.operands[k] = {Place::Kind::input, value.index};
      if (value.kind == TileValue::Kind::number) step.operands[k] = {Place::Kind::number, value.index};
      if (value.kind == TileValue::Kind::result) step.operands[k] = places[value.index];
    }
    const bool is_output = output_of[i] >= 0;
    // An operand's buffer may take the result.
    for (size_t k = 0; k < 3; ++k) {
      const TileValue& value = instruction.operands[k];
      const bool repeated = std::find(instruction.operands.begin(), instruction.operands.begin() + k, value) !=
                            instruction.operands.begin() + k;
      if (value.kind != TileValue::Kind::result || last_use[value.index] != i || repeated) continue;
      if (output_of[value.index] < 0) free.push_back(places[value.index].index);
    }
    if (is_output && !outputs_[static_cast<size_t>(output_of[i])].is_bytes()) {
      step.target = {Place::Kind::output, static_cast<uint32_t>(output_of[i])};
    } else if (!free.empty() && !is_output) {
      step.target = {Place::Kind::buffer, free.back()};
      free.pop_back();
    } else {
      step.target = {Place::Kind::buffer, buffers_++};
    }
    if (is_output) outputs_[static_cast<size_t>(output_of[i])].buffer = step.target.index;
    places.push_back(step.target);
    steps_.push_back(step);
  }
}

// Output 0 may overwrite an input when every tile of the input is read before that tile of the output is written.
void TileKernel::plan_in_place(const KernelCall& call) {
  for (uint32_t k = 0; k < call.inputs.size(); ++k) {
    if (inputs_[k].walk != Walk::flat || call.inputs[k].dtype() != call.outputs[0].dtype()) continue;
    // Bytes are widened before anything is written.
    if (inputs_[k].is_bytes() || !is_read_after_output(k)) in_place_inputs_.push_back(k);
  }
}

// Is input k read by a step behind the one that writes output 0?
bool TileKernel::is_read_after_output(uint32_t k) const {
  bool written = false;
  for (const Step& step : steps_) {
    const auto reads = [&](const Place& place) { return place.kind == Place::Kind::input && place.index == k; };
    if (written && std::any_of(step.operands.begin(), step.operands.end(), reads)) return true;
    written = written || (step.target.kind == Place::Kind::output && step.target.index == 0);
  }
  return false;
}

void TileKernel::run(const KernelArgs& args) const {
  for_shares(threads_, num_tiles_, [&](int64_t begin, int64_t end, int thread) {
    Worker worker = worker_from(args, static_cast<float*>(args.scratch) + thread * scratch_elements(), begin);
    run_tiles(worker, begin, end);
  });
}

const float* TileKernel::compute(std::span<const TensorView> inputs, int64_t begin, int64_t end, float* scratch,
                                 float* to) const {
  const int64_t first = tile_of(begin);
  const TensorView output(DType::f32, {}, to);
  const KernelArgs args{inputs, {&output, 1}};
  Worker worker = worker_from(args, scratch, first);
  worker.base = first_element(first);
  run_tiles(worker, first, tile_of(end - 1) + 1);
  return to + (begin - worker.base);
}

int64_t TileKernel::tile_of(int64_t element) const {
  if (rows_per_tile_ > 0) return element / (rows_per_tile_ * row_);
  return element / row_ * tiles_per_row_ + element % row_ / kTile;
}

int64_t TileKernel::first_element(int64_t tile) const {
  if (rows_per_tile_ > 0) return tile * rows_per_tile_ * row_;
  return tile / tiles_per_row_ * row_ + tile % tiles_per_row_ * kTile;
}

TileKernel::Worker TileKernel::worker_from(const KernelArgs& args, float* buffers, int64_t first_tile) const {
  const int64_t first_row = rows_per_tile_ > 0 ? first_tile * rows_per_tile_ : first_tile / tiles_per_row_;
  Worker worker{args, buffers, RowCursor(axes_, inputs_.size(), first_row)};
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].walk != Walk::scalar) continue;
    worker.inputs[k] = {static_cast<const float*>(raw_input(worker, k)), 0};
    if (!inputs_[k].is_bytes()) continue;
    float* const target = buffer(worker, inputs_[k].buffer);
    *target = widened(inputs_[k].dtype, raw_input(worker, k), 0);
    worker.inputs[k].data = target;
  }
  return worker;
}

void TileKernel::run_tiles(Worker& worker, int64_t begin, int64_t end) const {
  for (int64_t tile = begin; tile < end; ++tile) {
    int64_t offset, count;
    if (rows_per_tile_ > 0) {
      const int64_t rows = std::min(rows_per_tile_, num_rows_ - tile * rows_per_tile_);
      offset = tile * rows_per_tile_ * row_;
      count = rows * row_;
      read_rows(worker, rows);
    } else {
      const int64_t first = tile % tiles_per_row_ * kTile;
      offset = tile / tiles_per_row_ * row_ + first;
      count = std::min(kTile, row_ - first);
      read_part(worker, first, count);
      if (first + count == row_) worker.cursor.advance(1);
    }
    read_flat(worker, offset, count);
    run_steps(worker, offset, count);
  }
}

void TileKernel::read_flat(Worker& worker, int64_t offset, int64_t count) const {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].walk != Walk::flat) continue;
    const void* input = raw_input(worker, k);
    worker.inputs[k] = {static_cast<const float*>(input) + offset, 1};
    if (!inputs_[k].is_bytes()) continue;
    float* target = buffer(worker, inputs_[k].buffer);
    widen(inputs_[k].dtype, input, offset, target, count);
    worker.inputs[k].data = target;
  }
}

// Elements of one row of input k, which may broadcast or jump within it.
void TileKernel::copy_strided(const Worker& worker, size_t k, int64_t offset, float* to, int64_t count) const {
  const int64_t stride = axes_.back().strides[k];
  if (inputs_[k].is_bytes()) {
    const DType dtype = inputs_[k].dtype;
    const void* bytes = raw_input(worker, k);
    if (stride == 1) return widen(dtype, bytes, offset, to, count);
    if (stride == 0) {
      std::fill_n(to, count, widened(dtype, bytes, offset));
      return;
    }
    for (int64_t i = 0; i < count; ++i) to[i] = widened(dtype, bytes, offset + i * stride);
    return;
  }
  const float* from = static_cast<const float*>(raw_input(worker, k)) + offset;
  if (stride == 0) {
    std::fill_n(to, count, *from);
  } else if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * stride];
  }
}

// Several short rows: broadcast inputs are spread out.
void TileKernel::read_rows(Worker& worker, int64_t rows) const {
  for (int64_t done = 0; done < rows;) {
    const int64_t run = std::min(rows - done, worker.cursor.rows_in_run());
    for (size_t k = 0; k < inputs_.size(); ++k) {
      if (inputs_[k].walk == Walk::rows) read_run(worker, k, done, run);
    }
    worker.cursor.advance(run);
    done += run;
  }
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].walk == Walk::rows) worker.inputs[k] = {buffer(worker, inputs_[k].buffer), 1};
  }
}

// `run` rows along the innermost outer axis, to the buffer behind the `done` rows that it has.
void TileKernel::read_run(Worker& worker, size_t k, int64_t done, int64_t run) const {
  const int64_t step = axes_.size() > 1 ? axes_[axes_.size() - 2].strides[k] : 0;
  const int64_t offset = worker.cursor.offset(k);
  float* target = buffer(worker, inputs_[k].buffer) + done * row_;
  if (step != 0 && run > 1) {
    for (int64_t r = 0; r < run; ++r) copy_strided(worker, k, offset + r * step, target + r * row_, row_);
    worker.repeated[k] = {};
    return;
  }
  // The same row for all of them, and often for the tiles that follow.
  Repeated& repeated = worker.repeated[k];
  if (done == 0 && repeated.offset == offset && repeated.rows >= run) return;
  repeated = done == 0 ? Repeated{offset, run} : Repeated{};
  copy_strided(worker, k, offset, target, row_);
  for (int64_t have = 1; have < run; have *= 2) {
    const int64_t more = std::min(have, run - have) * row_;
    std::memcpy(target + have * row_, target, static_cast<size_t>(more) * sizeof(float));
  }
}

// Part of a long row: most inputs can be read where they are.
void TileKernel::read_part(Worker& worker, int64_t first, int64_t count) const {
  for (size_t k = 0; k < inputs_.size(); ++k) {
    if (inputs_[k].walk != Walk::rows) continue;
    const int64_t stride = axes_.back().strides[k];
    const int64_t offset = worker.cursor.offset(k) + first * stride;
    float* target = buffer(worker, inputs_[k].buffer);
    if (!inputs_[k].is_bytes() && stride <= 1) {
      worker.inputs[k] = {static_cast<const float*>(raw_input(worker, k)) + offset, stride};
    } else {
      copy_strided(worker, k, offset, target, count);
      worker.inputs[k] = {target, 1};
    }
  }
}

TileOperand TileKernel::operand_at(const Worker& worker, const Place& place, int64_t offset) const {
  switch (place.kind) {
    case Place::Kind::input: return worker.inputs[place.index];
    case Place::Kind::number: return {&numbers_[place.index], 0};
    case Place::Kind::buffer: return {buffer(worker, place.index), 1};
    case Place::Kind::output: {
      return {static_cast<const float*>(worker.args.outputs[place.index].raw()) + offset - worker.base, 1};
    }
    case Place::Kind::none: break;
  }
  return {};
}

void TileKernel::run_steps(Worker& worker, int64_t offset, int64_t count) const {
  const auto& functions = tile_functions();
  for (const Step& step : steps_) {
    TileCall call{{}, step.p, step.q, nullptr, count};
    for (size_t k = 0; k < 3; ++k) call.operands[k] = operand_at(worker, step.operands[k], offset);
    call.y = step.target.kind == Place::Kind::output
                 ? static_cast<float*>(worker.args.outputs[step.target.index].raw()) + offset - worker.base
                 : buffer(worker, step.target.index);
    functions[static_cast<size_t>(step.op)](call);
  }
  for (size_t k = 0; k < outputs_.size(); ++k) {
    if (!outputs_[k].is_bytes()) continue;
    narrow(outputs_[k].dtype, buffer(worker, outputs_[k].buffer), worker.args.outputs[k].raw(), offset - worker.base,
           count);
  }
}

class RangeOfTiles : public TileRange {
 public:
  RangeOfTiles(const KernelCall& call, TileProgram program) : kernel_(call, std::move(program)) {}
  int64_t scratch_elements() const override { return kernel_.scratch_elements(); }
  const float* compute(std::span<const TensorView> inputs, int64_t begin, int64_t end, float* scratch,
                       float* to) const override {
    return kernel_.compute(inputs, begin, end, scratch, to);
  }

 private:
  TileKernel kernel_;
};

}  // namespace

std::unique_ptr<TileRange> make_tile_range(const KernelCall& call, TileProgram program) {
  return std::make_unique<RangeOfTiles>(call, std::move(program));
}

std::unique_ptr<Kernel> make_tile_kernel(const KernelCall& call, TileProgram program) {
  return std::make_unique<TileKernel>(call, std::move(program));
}

std::vector<KernelVariant> tile_variants(const KernelCall& call) {
  double bytes = 0;
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) bytes += type.is_tensor() ? static_cast<double>(size_of(type)) : 0;
  }
  const double us = 0.5 + bytes / 2e4;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
  const Dims output = call.output_dims(0);
  const auto is_full = [&](size_t k) { return call.has_input(k) && call.input_dims(k) == output; };
  // Truth values have no layouts.
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (is_full(k) && call.inputs[k].dtype() == DType::boolean) return result;
  }
  for (const Type& type : call.outputs) {
    if (type.dtype() == DType::boolean) return result;
  }
  for (const Layout layout : unpadded_layouts(output)) {
    KernelVariant variant{.name = "", .inputs = {}, .outputs = {}, .cost_us = us};
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      variant.inputs.push_back(is_full(k) ? layout : Layout::row_major);
    }
    variant.outputs.assign(call.outputs.size(), layout);
    result.push_back(std::move(variant));
  }
  return result;
}

bool is_tile_type(DType dtype) {
  return dtype == DType::f32 || dtype == DType::boolean || dtype == DType::u8 || dtype == DType::i8 ||
         dtype == DType::i32;
}

std::string why_not_tiles(const KernelCall& call, const TileProgram& program) {
  const std::vector<Type> inputs = input_types(call, program.constants);
  if (inputs.size() > kMaxInputs) return fmt::format("more than {} inputs", kMaxInputs);
  for (const Type& type : inputs) {
    if (!type.is_tensor()) continue;
    const DType dtype = type.dtype();
    if (!is_tile_type(dtype)) return fmt::format("dtype {}: only f32, bool, u8, i8 and i32", to_string(dtype));
  }
  for (const Type& type : call.outputs) {
    if (!is_tile_type(type.dtype())) {
      return fmt::format("dtype {}: only f32, bool, u8, i8 and i32", to_string(type.dtype()));
    }
    if (type.shape().static_dims() != call.output_dims(0)) return "outputs of different shapes";
  }
  if (broadcast_axes(call.output_dims(0), Layout::row_major, broadcast_inputs(call, program)).size() >= kMaxAxes) {
    return fmt::format("more than {} dims that do not merge", kMaxAxes);
  }
  return "";
}

}  // namespace autograph::simd
