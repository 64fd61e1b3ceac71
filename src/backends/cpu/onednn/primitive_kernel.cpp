#include "backends/cpu/onednn/primitive_kernel.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/onednn/movable_memory.h"
#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "base/check.h"
#include "runtime/memory/packed_constants.h"

namespace autograph::onednn {
namespace {

void check(dnnl_status_t status, const char* what) {
  AG_CHECK(status == dnnl_success, "oneDNN {} gave status {}", what, static_cast<int>(status));
}

// What a packed constant depends on besides its elements: both layouts, byte by byte. Those that only look different
// are packed once more.
std::string form_of(const Argument& argument) {
  std::string form = "onednn ";
  for (const dnnl::memory::desc* desc : {&argument.given, &argument.wanted}) {
    form.append(reinterpret_cast<const char*>(&desc->data), sizeof desc->data);
  }
  return form;
}

dnnl::reorder reorder_between(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  return dnnl::reorder(dnnl::reorder::primitive_desc(cpu_engine(), from, cpu_engine(), to));
}

void reorder_on(int threads, const void* from, const dnnl::memory::desc& from_desc, void* to,
                const dnnl::memory::desc& to_desc) {
  const TeamScope scope(threads);
  const dnnl::memory source(from_desc, cpu_engine(), const_cast<void*>(from));
  const dnnl::memory target(to_desc, cpu_engine(), to);
  const std::array<dnnl_exec_arg_t, 2> pair{dnnl_exec_arg_t{DNNL_ARG_FROM, source.get()},
                                            dnnl_exec_arg_t{DNNL_ARG_TO, target.get()}};
  dnnl::stream stream(cpu_engine());
  TeamPrimitive(reorder_between(from_desc, to_desc)).execute(stream, pair);
  stream.wait();
}

}  // namespace

const dnnl::engine& cpu_engine() {
  static const dnnl::engine kEngine(dnnl::engine::kind::cpu, 0);
  return kEngine;
}

DataType data_type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return DataType::f32;
    case DType::bf16: return DataType::bf16;
    case DType::i32: return DataType::s32;
    case DType::i8: return DataType::s8;
    case DType::u8: return DataType::u8;
    default: return DataType::undef;
  }
}

dnnl::memory::desc row_major(const dnnl::memory::dims& dims, DataType type) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t a = dims.size(); a-- > 1;) strides[a - 1] = strides[a] * dims[a];
  return {dims, type, strides};
}

dnnl::memory::desc desc_in(Layout layout, const dnnl::memory::dims& dims, DataType type) {
  using Tag = dnnl::memory::format_tag;
  if (layout == Layout::row_major) return row_major(dims, type);
  const size_t spatial = dims.size() - 2;
  AG_CHECK(spatial >= 1 && spatial <= 3, "layout {} of a tensor of rank {}", to_string(layout), dims.size());
  constexpr std::array<std::array<Tag, 3>, 3> kTags{{{Tag::nwc, Tag::nhwc, Tag::ndhwc},
                                                     {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c},
                                                     {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c}}};
  const size_t row = layout == Layout::channels_last ? 0 : layout == Layout::blocked8 ? 1 : 2;
  return {dims, type, kTags[row][spatial - 1]};
}

Layout native_block() {
  return dnnl::get_effective_cpu_isa() >= dnnl::cpu_isa::avx512_core ? Layout::blocked16 : Layout::blocked8;
}

void reorder(const void* from, const dnnl::memory::desc& from_desc, void* to, const dnnl::memory::desc& to_desc) {
  reorder_on(1, from, from_desc, to, to_desc);
}

dnnl::memory::desc any_layout(const dnnl::memory::dims& dims, DataType type) {
  return {dims, type, dnnl::memory::format_tag::any};
}

dnnl::primitive_attr new_attributes(Use use) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(use == Use::run ? dnnl::scratchpad_mode::user : dnnl::scratchpad_mode::library);
  return attributes;
}

std::string implementation_of(const dnnl::primitive& primitive) {
  const_dnnl_primitive_desc_t pd = nullptr;
  check(dnnl_primitive_get_primitive_desc(primitive.get(), &pd), "descriptor of a primitive");
  const char* name = nullptr;
  check(dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name), "name of a primitive");
  return name;
}

struct PrimitiveKernel::State : KernelState {
  dnnl::stream stream{cpu_engine()};
  std::vector<std::optional<MovableMemory>> given;   // parallel to bound_; none for what is packed
  std::vector<std::optional<MovableMemory>> wanted;  // parallel to bound_; none without a reorder
  std::vector<dnnl_exec_arg_t> args;                 // of the primitive
  std::optional<MovableMemory> scratchpad;
  std::unique_ptr<Tiles::State> tiles;
  std::optional<TwinWeights> twin_weights;
};

PrimitiveKernel::PrimitiveKernel(dnnl::primitive primitive, std::vector<Argument> arguments,
                                 const dnnl::memory::desc& scratchpad, PackedConstants* packed)
    : primitive_(std::move(primitive)), scratchpad_(scratchpad) {
  scratchpad_offset_ = reserve(scratchpad_.get_size());
  for (Argument& argument : arguments) {
    Bound& bound = bound_.emplace_back();
    bound.argument = std::move(argument);
    const Argument& a = bound.argument;
    if (a.is_output && a.slot == 0) output_bytes_ = a.given.get_size();
    if (a.constant.is_present()) {
      // On this thread alone: others prepare other kernels meanwhile, and teams of threads would wait for each other.
      bound.is_known = true;
      pack(bound, packed, 1, {});
      if (a.given != a.wanted) weight_bytes_ += a.wanted.get_size();
    } else if (a.given != a.wanted) {
      const auto& from = a.is_output ? a.wanted : a.given;
      const auto& to = a.is_output ? a.given : a.wanted;
      bound.reorder.emplace(reorder_between(from, to));
      bound.scratch_offset = reserve(a.wanted.get_size());
    }
  }
}

size_t PrimitiveKernel::reserve(size_t bytes) {
  const size_t offset = scratch_bytes_;
  scratch_bytes_ += aligned_size(bytes);
  return offset;
}

// Keeps the elements of a constant in the layout that the primitive wants, in `room` where there is some; borrows them
// when that is our own.
void PrimitiveKernel::pack(Bound& bound, PackedConstants* packed, int threads, dnnl::memory room) {
  const Argument& a = bound.argument;
  if (a.given == a.wanted) {
    bound.packed = std::make_shared<const dnnl::memory>(a.given, cpu_engine(), const_cast<void*>(a.constant.raw()));
    return;
  }
  bound.packed = PackedConstants::share(packed, {a.constant}, form_of(a), [&] {
    dnnl::memory memory = room ? std::move(room) : dnnl::memory(a.wanted, cpu_engine());
    reorder_on(threads, a.constant.raw(), a.given, memory.get_data_handle(), a.wanted);
    return memory;
  });
  bound.argument.constant = Tensor();
}

bool PrimitiveKernel::has_argument(size_t slot) const {
  return std::any_of(bound_.begin(), bound_.end(),
                     [&](const Bound& bound) { return !bound.argument.is_output && bound.argument.slot == slot; });
}

bool PrimitiveKernel::knows_weights() const {
  return std::ranges::any_of(
      bound_, [](const Bound& bound) { return bound.argument.id == DNNL_ARG_WEIGHTS && bound.is_known; });
}

bool PrimitiveKernel::renew(std::span<const StateContents> inputs, PackedConstants* packed) {
  // What was written and is no argument is part of the primitive, or of another argument: scales, for example.
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (inputs[slot].tensor.is_present() && !has_argument(slot)) return false;
  }
  for (Bound& bound : bound_) {
    if (!bound.is_known || bound.argument.slot == kNoInput) continue;
    const Tensor& now = inputs[bound.argument.slot].tensor;
    if (!now.is_present()) continue;
    bound.argument.constant = now;
    dnnl::memory room = bound.packed ? PackedConstants::take_back(packed, std::move(bound.packed)) : dnnl::memory();
    pack(bound, packed, threads_in_use(), std::move(room));
  }
  return true;
}

bool PrimitiveKernel::is_packed(const Argument& argument, PackedConstants* packed) {
  return packed && argument.constant.is_present() && packed->knows({argument.constant}, form_of(argument));
}

void PrimitiveKernel::set_tiles(std::unique_ptr<Tiles> tiles, std::unique_ptr<LatePrimitive> late) {
  tiles_offset_ = reserve(tiles->scratch_bytes());
  tiles_ = std::move(tiles);
  late_ = std::move(late);
}

void PrimitiveKernel::set_accumulated_input(size_t slot) {
  accumulated_input_ = static_cast<int>(slot);
  for (const Bound& bound : bound_) {
    const Argument& a = bound.argument;
    if (!a.is_output || a.slot != 0 || !bound.reorder) continue;
    accumulated_reorder_.emplace(reorder_between(a.given, a.wanted));
  }
}

std::vector<uint32_t> PrimitiveKernel::in_place_inputs() const {
  // What the primitive reads itself must stay whole until it is done, and what the last pass adds longer still.
  if (accumulated_input_ < 0 || accumulated_input_ == added_input_) return {};
  if (has_argument(static_cast<size_t>(accumulated_input_))) return {};
  return {static_cast<uint32_t>(accumulated_input_)};
}

// A constant that was packed into another layout is not looked at again.
bool PrimitiveKernel::reads_input(size_t slot) const {
  return std::none_of(bound_.begin(), bound_.end(), [&](const Bound& bound) {
    return !bound.argument.is_output && bound.argument.slot == slot && bound.packed &&
           !bound.argument.constant.is_present();
  });
}

std::unique_ptr<KernelState> PrimitiveKernel::new_state() const {
  auto state = std::make_unique<State>();
  state->given.reserve(bound_.size());
  state->wanted.reserve(bound_.size());
  for (const Bound& bound : bound_) {
    auto& given = state->given.emplace_back();
    auto& wanted = state->wanted.emplace_back();
    if (!bound.packed) given.emplace(bound.argument.given);
    if (bound.reorder) wanted.emplace(bound.argument.wanted);
    const dnnl::memory& used = bound.packed ? *bound.packed : bound.reorder ? wanted->memory : given->memory;
    state->args.push_back({bound.argument.id, used.get()});
  }
  state->scratchpad.emplace(scratchpad_);
  state->args.push_back({DNNL_ARG_SCRATCHPAD, state->scratchpad->memory.get()});
  state->twin_weights.emplace(knows_weights());
  if (tiles_) state->tiles = tiles_->new_state(state->args);
  return state;
}

// Puts the residual where the primitive adds to it.
void PrimitiveKernel::accumulate(const KernelArgs& args, State& state) const {
  const void* from = args.inputs[static_cast<size_t>(accumulated_input_)].raw();
  void* to = const_cast<void*>(args.outputs[0].raw());
  if (!accumulated_reorder_) {
    if (from != to) std::memcpy(to, from, output_bytes_);
    return;
  }
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (!bound_[i].argument.is_output || bound_[i].argument.slot != 0) continue;
    state.given[i]->move_to(const_cast<void*>(from));
    const std::array<dnnl_exec_arg_t, 2> pair{dnnl_exec_arg_t{DNNL_ARG_FROM, state.given[i]->memory.get()},
                                              dnnl_exec_arg_t{DNNL_ARG_TO, state.wanted[i]->memory.get()}};
    accumulated_reorder_->execute(state.stream, pair);
    state.given[i]->move_to(to);
  }
}

void PrimitiveKernel::set_last_pass(const simd::ActivationPass& pass, int residual, int threads) {
  constexpr int64_t kWorkPerElement = 4;
  last_pass_ = pass;
  added_input_ = residual;
  last_pass_threads_ = useful_threads(threads, static_cast<int64_t>(output_bytes_ / sizeof(float)) * kWorkPerElement);
}

void PrimitiveKernel::compute(const KernelArgs& args, State& state) const {
  const TeamPrimitive* primitive = late_ ? late_->get() : tiles_ ? nullptr : &primitive_;
  if (primitive) return primitive->execute(state.stream, state.args, &*state.twin_weights);
  const auto is_source = [](const Bound& bound) { return bound.argument.id == DNNL_ARG_SRC; };
  const size_t slot = std::find_if(bound_.begin(), bound_.end(), is_source)->argument.slot;
  tiles_->run(*state.tiles, args.inputs[slot].data<float>(), args.outputs[0].mutable_data<float>(),
              static_cast<char*>(args.scratch) + tiles_offset_);
}

void PrimitiveKernel::run(const KernelArgs& args) const {
  State& state = *static_cast<State*>(args.state);
  char* scratch = static_cast<char*>(args.scratch);
  state.scratchpad->move_to(scratch + scratchpad_offset_);
  const auto reorder = [&](size_t i) {
    const bool out = bound_[i].argument.is_output;
    const std::array<dnnl_exec_arg_t, 2> pair{
        dnnl_exec_arg_t{DNNL_ARG_FROM, (out ? state.wanted : state.given)[i]->memory.get()},
        dnnl_exec_arg_t{DNNL_ARG_TO, (out ? state.given : state.wanted)[i]->memory.get()}};
    bound_[i].reorder->execute(state.stream, pair);
  };
  for (size_t i = 0; i < bound_.size(); ++i) {
    const Bound& bound = bound_[i];
    if (bound.packed) continue;
    const auto& tensors = bound.argument.is_output ? args.outputs : args.inputs;
    state.given[i]->move_to(tensors[bound.argument.slot].raw());
    if (!bound.reorder) continue;
    state.wanted[i]->move_to(scratch + bound.scratch_offset);
    if (!bound.argument.is_output) reorder(i);
  }
  if (accumulated_input_ >= 0) accumulate(args, state);
  compute(args, state);
  for (size_t i = 0; i < bound_.size(); ++i) {
    if (bound_[i].reorder && bound_[i].argument.is_output) reorder(i);
  }
  check(dnnl_stream_wait(state.stream.get()), "wait");
  if (last_pass_.kind == simd::ActivationPass::Kind::none && added_input_ < 0) return;
  float* y = args.outputs[0].mutable_data<float>();
  const float* residual =
      added_input_ < 0 ? nullptr : static_cast<const float*>(args.inputs[static_cast<size_t>(added_input_)].raw());
  for_shares(last_pass_threads_, static_cast<int64_t>(output_bytes_ / sizeof(float)),
             [&](int64_t begin, int64_t end, int) {
               simd::run_activation(last_pass_, y + begin, end - begin, residual ? residual + begin : nullptr);
             });
}

}  // namespace autograph::onednn
