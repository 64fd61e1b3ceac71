// lstm, gru and rnn in f32 with their usual activation functions.
//
// W x is one product for many positions at once; R h is one product per position, whose columns the threads share. A
// thread that has computed the gates of its hidden elements goes on to their new h, so that the threads meet once per
// position (twice in a GRU that resets before R); in between they stay together. Both directions walk side by side.
//
// A sequence shorter than the longest one keeps its state beyond its end. Walking backwards the positions beyond the
// end come first, so that the state is still the initial one where the sequence begins.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/parallel_steps.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/recurrent_cells.h"
#include "base/check.h"

namespace autograph::simd {
namespace {

enum Slot : size_t { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes };

// Rows of x whose products with W are computed at a time: enough for full speed, few enough to stay in cache.
constexpr int64_t kProjectedRows = 128;
constexpr int64_t kNumPeepholes = 3;
// So many that making a team of threads once for all of them takes next to nothing of the time.
constexpr int64_t kManySteps = 8;

int64_t num_gates(std::string_view op) { return op == "lstm" ? 4 : op == "gru" ? 3 : 1; }

std::vector<std::string> activation_names(const KernelCall& call) {
  return call.attributes.get_or<std::vector<std::string>>("activations", {});
}

bool all_are(const std::vector<std::string>& names, std::span<const std::string_view> expected) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != expected[i % expected.size()]) return false;
  }
  return true;
}

bool is_relu(const KernelCall& call) {
  constexpr std::string_view kRelu[] = {"Relu"};
  const auto names = activation_names(call);
  return !names.empty() && all_are(names, kRelu);
}

bool has_usual_activations(const KernelCall& call) {
  constexpr std::string_view kUsual[] = {"Sigmoid", "Tanh", "Tanh"};
  const auto names = activation_names(call);
  if (call.op.name == "rnn") return is_relu(call) || all_are(names, std::span(kUsual).subspan(1, 1));
  return all_are(names, std::span(kUsual).first(call.op.name == "gru" ? 2 : 3));
}

// Extents of a call, and where things begin in x, y and the states.
struct Extents {
  explicit Extents(const KernelCall& call)
      : batch_first(call.attributes.flag("layout")),
        length(call.input_dims(kX)[batch_first ? 1 : 0]),
        batch(call.input_dims(kX)[batch_first ? 0 : 1]),
        input(call.input_dims(kX)[2]),
        directions(call.input_dims(kR)[0]),
        hidden(call.input_dims(kR)[2]),
        gates(num_gates(call.op.name)),
        width(gate_width()),
        blocks((hidden + width - 1) / width) {}

  int64_t x(int64_t t, int64_t b) const { return (batch_first ? b * length + t : t * batch + b) * input; }
  int64_t y(int64_t t, int64_t d, int64_t b) const {
    return (batch_first ? (b * length + t) * directions + d : (t * directions + d) * batch + b) * hidden;
  }
  int64_t state(int64_t d, int64_t b) const { return (batch_first ? b * directions + d : d * batch + b) * hidden; }
  int64_t padded() const { return blocks * width; }

  bool batch_first;
  int64_t length, batch, input, directions, hidden, gates, width, blocks;
};

// Both weights of all directions, packed.
class PackedWeights {
 public:
  explicit PackedWeights(const Extents& e)
      : e_(e),
        w_size_(packed_gates_size(e.gates, e.hidden, e.input)),
        r_size_(packed_gates_size(e.gates, e.hidden, e.hidden)) {}

  int64_t size() const { return e_.directions * (w_size_ + r_size_); }
  /// What pack() needs besides.
  int64_t scratch_size() const { return e_.width * std::max(e_.input, e_.hidden); }
  void pack(const float* w, const float* r, float* scratch, float* packed) const {
    for (int64_t d = 0; d < e_.directions; ++d) {
      const int64_t rows = e_.gates * e_.hidden;
      pack_gates(w + d * rows * e_.input, e_.gates, e_.hidden, e_.input, scratch, packed + w_at(d, 0));
      pack_gates(r + d * rows * e_.hidden, e_.gates, e_.hidden, e_.hidden, scratch, packed + r_at(d, 0, 0));
    }
  }
  /// Where the gates of a block begin.
  int64_t w_at(int64_t d, int64_t block) const { return d * w_size_ + block * e_.gates * e_.width * e_.input; }
  int64_t r_at(int64_t d, int64_t block, int64_t gate) const {
    return e_.directions * w_size_ + d * r_size_ + (block * e_.gates + gate) * e_.width * e_.hidden;
  }

 private:
  Extents e_;
  int64_t w_size_, r_size_;
};

// Where things begin in the scratch memory of a run, in elements.
struct Workspace {
  Workspace() = default;
  Workspace(const Extents& e, int64_t positions, int threads, const PackedWeights& weights, bool packs) {
    const int64_t states = e.directions * e.batch * e.padded();
    projected = take(e.directions * positions * e.batch * e.gates * e.padded());
    bias = take(e.directions * e.gates * e.padded());
    hidden_bias = take(e.directions * e.padded());
    peepholes = take(e.directions * kNumPeepholes * e.padded());
    for (int64_t& at : h) at = take(states);
    cell = take(states);
    reset_h = take(states);
    gates_size = e.batch * e.gates * e.width;
    gates = take(threads * gates_size);
    if (packs) packed = take(weights.size());
    if (packs) packing = take(weights.scratch_size());
  }

  int64_t take(int64_t count) { return std::exchange(total, total + (count + kAlign - 1) / kAlign * kAlign); }

  static constexpr int64_t kAlign = 16;
  int64_t total = 0;
  int64_t projected = 0;              // [direction, position, instance, block, gate, width]: W x
  int64_t bias = 0, peepholes = 0;    // [direction, block, gate, width]
  int64_t hidden_bias = 0;            // [direction, block, width]
  std::array<int64_t, 2> h{};         // [direction, instance, block, width], the last and the next one in turns
  int64_t cell = 0, reset_h = 0;      // the same
  int64_t gates = 0, gates_size = 0;  // of each thread: [instance, gate, width], R h
  int64_t packed = 0, packing = 0;
};

// One run of the kernel.
class RecurrentRun {
 public:
  RecurrentRun(const KernelArgs& args, const CellTask& cell, const Extents& e, const PackedWeights& weights,
               const Workspace& at, const float* packed, bool starts_backwards)
      : args_(args),
        cell_(cell),
        e_(e),
        weights_(weights),
        at_(at),
        memory_(static_cast<float*>(args.scratch)),
        packed_(packed),
        starts_backwards_(starts_backwards) {}

  void prepare() {
    fill_lengths();
    for (int64_t d = 0; d < e_.directions; ++d) {
      fill_bias(d);
      if (has_input(kPeepholes)) fill_peepholes(d);
      fill_state(d, kInitialH, memory_ + at_.h[0]);
      fill_state(d, kInitialC, memory_ + at_.cell);
    }
  }

  // W x of the positions that are walked over in steps [first, first + steps).
  void project(int64_t first, int64_t steps, int threads) {
    for_shares(threads, e_.directions * e_.blocks, [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) project_block(unit / e_.blocks, unit % e_.blocks, first, steps);
    });
    first_ = first, steps_ = steps;
  }

  // The steps [first, first + steps), whose W x is there.
  void walk(int64_t first, int64_t steps, int threads) {
    const bool resets_first = cell_.kind == CellKind::gru_gates;
    const int64_t phases = resets_first ? 2 : 1;
    for_shares_in_steps(threads, steps * phases, e_.directions * e_.blocks,
                        [&](int64_t number, int64_t begin, int64_t end, int thread) {
                          const bool is_second = number % phases == 1;
                          const CellKind kind = is_second ? CellKind::gru_reset : cell_.kind;
                          float* gates = memory_ + at_.gates + thread * at_.gates_size;
                          for (int64_t unit = begin; unit < end; ++unit) {
                            run_block(kind, unit / e_.blocks, unit % e_.blocks, first + number / phases, gates);
                          }
                        });
  }

  void finish() {
    const int64_t states[] = {at_.h[last_of(e_.length)], at_.cell};
    for (size_t k = 0; k < 2; ++k) {
      if (args_.outputs.size() <= k + 1 || !args_.outputs[k + 1].is_present()) continue;
      float* to = args_.outputs[k + 1].mutable_data<float>();
      for (int64_t d = 0; d < e_.directions; ++d) {
        for (int64_t b = 0; b < e_.batch; ++b) {
          const float* from = memory_ + states[k] + (d * e_.batch + b) * e_.padded();
          std::copy(from, from + e_.hidden, to + e_.state(d, b));
        }
      }
    }
  }

 private:
  // Which h is the last one before a step.
  static size_t last_of(int64_t step) { return static_cast<size_t>(step % 2); }
  bool has_input(size_t slot) const { return slot < args_.inputs.size() && args_.inputs[slot].is_present(); }
  bool is_backwards(int64_t d) const { return d == 1 || starts_backwards_; }
  int64_t position(int64_t d, int64_t step) const { return is_backwards(d) ? e_.length - 1 - step : step; }

  void fill_lengths() {
    if (!has_input(kLengths)) return;
    lengths_ = args_.inputs[kLengths].data<int32_t>();
    for (int64_t b = 0; b < e_.batch; ++b) {
      AG_CHECK_USER(lengths_[b] >= 0 && lengths_[b] <= e_.length, ValueError,
                    "[recurrent] sequence_lens: expected 0..{}, got {}", e_.length, lengths_[b]);
    }
  }

  // to[block, gate, width] = from[gate, hidden], padded with zeros; `add` adds instead.
  void spread(const float* from, int64_t gates, float* to, bool add = false) const {
    for (int64_t gate = 0; gate < gates; ++gate) {
      for (int64_t j = 0; j < e_.padded(); ++j) {
        float& element = to[(j / e_.width * gates + gate) * e_.width + j % e_.width];
        const float value = j < e_.hidden ? from[gate * e_.hidden + j] : 0.0F;
        element = add ? element + value : value;
      }
    }
  }

  void fill_bias(int64_t d) {
    float* bias = memory_ + at_.bias + d * e_.gates * e_.padded();
    float* hidden_bias = memory_ + at_.hidden_bias + d * e_.padded();
    std::fill_n(bias, e_.gates * e_.padded(), 0.0F);
    std::fill_n(hidden_bias, e_.padded(), 0.0F);
    if (!has_input(kB)) return;
    const int64_t rows = e_.gates * e_.hidden;
    const float* given = args_.inputs[kB].data<float>() + d * 2 * rows;
    spread(given, e_.gates, bias);
    if (!is_gru()) return spread(given + rows, e_.gates, bias, /*add=*/true);
    // The candidate's bias of R stays by itself.
    const int64_t candidate = 2;
    for (int64_t j = 0; j < candidate * e_.hidden; ++j) {
      const int64_t gate = j / e_.hidden, at = j % e_.hidden;
      bias[(at / e_.width * e_.gates + gate) * e_.width + at % e_.width] += given[rows + j];
    }
    spread(given + rows + candidate * e_.hidden, 1, hidden_bias);
  }

  void fill_peepholes(int64_t d) {
    spread(args_.inputs[kPeepholes].data<float>() + d * kNumPeepholes * e_.hidden, kNumPeepholes,
           memory_ + at_.peepholes + d * kNumPeepholes * e_.padded());
  }

  void fill_state(int64_t d, size_t slot, float* states) {
    for (int64_t b = 0; b < e_.batch; ++b) {
      float* to = states + (d * e_.batch + b) * e_.padded();
      std::fill_n(to, e_.padded(), 0.0F);
      if (!has_input(slot)) continue;
      const float* from = args_.inputs[slot].data<float>() + e_.state(d, b);
      std::copy(from, from + e_.hidden, to);
    }
  }

  void project_block(int64_t d, int64_t block, int64_t first, int64_t steps) {
    const int64_t begin = is_backwards(d) ? e_.length - first - steps : first;
    const float* x = args_.inputs[kX].data<float>();
    const int64_t row = e_.gates * e_.padded();
    float* to = memory_ + at_.projected + d * steps * e_.batch * row + block * e_.gates * e_.width;
    GateProduct product{.a = x + e_.x(begin, 0),
                        .a_stride = e_.input,
                        .rows = steps * e_.batch,
                        .depth = e_.input,
                        .packed = packed_ + weights_.w_at(d, block),
                        .panels = e_.gates,
                        .c = to,
                        .c_stride = row};
    if (!e_.batch_first) return multiply_gates(product);
    product.rows = steps;
    product.c_stride = e_.batch * row;
    for (int64_t b = 0; b < e_.batch; ++b) {
      product.a = x + e_.x(begin, b);
      product.c = to + b * row;
      multiply_gates(product);
    }
  }

  bool is_gru() const { return cell_.kind == CellKind::gru || cell_.kind == CellKind::gru_gates; }

  void run_block(CellKind kind, int64_t d, int64_t block, int64_t step, float* gates) {
    const int64_t t = position(d, step);
    const int64_t states = d * e_.batch * e_.padded();
    const bool is_reset = kind == CellKind::gru_reset;
    const size_t last_h = last_of(step);
    const float* last = memory_ + at_.h[last_h] + states;
    float* next = memory_ + (kind == CellKind::gru_gates ? at_.reset_h : at_.h[1 - last_h]) + states;
    const int64_t first_gate = is_reset ? 2 : 0;
    const int64_t panels = is_reset ? 1 : kind == CellKind::gru_gates ? 2 : e_.gates;
    multiply_gates({.a = is_reset ? memory_ + at_.reset_h + states : last,
                    .a_stride = e_.padded(),
                    .rows = e_.batch,
                    .depth = e_.hidden,
                    .packed = packed_ + weights_.r_at(d, block, first_gate),
                    .panels = panels,
                    .c = gates,
                    .c_stride = panels * e_.width});
    for (int64_t b = 0; b < e_.batch; ++b) {
      const int64_t at = b * e_.padded() + block * e_.width;
      float* y = output(t, d, b, block);
      if (lengths_ && t >= lengths_[b]) {
        std::copy(last + at, last + at + e_.width, next + at);
        if (y) std::fill_n(y, elements(block), 0.0F);
        continue;
      }
      CellTask task = cell_;
      task.kind = kind;
      task.from_input = projected(d, step, b, block);
      task.from_hidden = gates + b * panels * e_.width;
      task.bias = memory_ + at_.bias + (d * e_.blocks + block) * e_.gates * e_.width;
      task.hidden_bias = memory_ + at_.hidden_bias + d * e_.padded() + block * e_.width;
      if (has_input(kPeepholes)) {
        task.peepholes = memory_ + at_.peepholes + (d * e_.blocks + block) * kNumPeepholes * e_.width;
      }
      task.h = last + at;
      task.next_h = next + at;
      task.cell = memory_ + at_.cell + states + at;
      task.y = kind == CellKind::gru_gates ? nullptr : y;
      task.y_count = elements(block);
      run_cell(task);
    }
  }

  // Hidden elements that a block really has.
  int64_t elements(int64_t block) const { return std::min(e_.width, e_.hidden - block * e_.width); }

  const float* projected(int64_t d, int64_t step, int64_t b, int64_t block) const {
    const int64_t at = is_backwards(d) ? steps_ - 1 - (step - first_) : step - first_;
    return memory_ + at_.projected + ((d * steps_ + at) * e_.batch + b) * e_.gates * e_.padded() +
           block * e_.gates * e_.width;
  }

  float* output(int64_t t, int64_t d, int64_t b, int64_t block) const {
    if (args_.outputs.empty() || !args_.outputs[0].is_present()) return nullptr;
    return args_.outputs[0].mutable_data<float>() + e_.y(t, d, b) + block * e_.width;
  }

  const KernelArgs& args_;
  const CellTask cell_;  // what all cells have in common
  const Extents& e_;
  const PackedWeights& weights_;
  const Workspace& at_;
  float* const memory_;
  const float* const packed_;
  const bool starts_backwards_;
  const int32_t* lengths_ = nullptr;
  int64_t first_ = 0, steps_ = 0;  // whose W x is there
};

class RecurrentKernel : public Kernel {
 public:
  explicit RecurrentKernel(const KernelCall& call)
      : e_(call),
        weights_(e_),
        positions_(std::clamp<int64_t>(kProjectedRows / e_.batch, 1, e_.length)),
        starts_backwards_(call.attributes.text("direction") == "reverse"),
        cell_(cell_of(call)) {
    const int64_t step_products = e_.directions * e_.batch * e_.gates * e_.hidden * e_.hidden;
    step_threads_ = useful_threads(call.threads, e_.length < kManySteps ? step_products / 8 : step_products);
    threads_ = useful_threads(call.threads, step_products / 8 * e_.input / e_.hidden * positions_);
    const Tensor* w = call.constant(kW);
    const Tensor* r = call.constant(kR);
    if (w && r) {
      std::vector<float> scratch(static_cast<size_t>(weights_.scratch_size()));
      packed_ = Tensor::empty(DType::f32, {weights_.size()});
      weights_.pack(w->data<float>(), r->data<float>(), scratch.data(), packed_.mutable_data<float>());
    }
    workspace_ = Workspace(e_, positions_, std::max(threads_, step_threads_), weights_, !packed_.is_present());
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(workspace_.total) * sizeof(float); }
  size_t weight_bytes() const override { return packed_.is_present() ? packed_.size_bytes() : 0; }
  bool reads_input(size_t slot) const override { return !packed_.is_present() || (slot != kW && slot != kR); }

  void run(const KernelArgs& args) const override {
    float* memory = static_cast<float*>(args.scratch);
    const float* packed = packed_.is_present() ? packed_.data<float>() : nullptr;
    if (!packed) {
      weights_.pack(args.inputs[kW].data<float>(), args.inputs[kR].data<float>(), memory + workspace_.packing,
                    memory + workspace_.packed);
      packed = memory + workspace_.packed;
    }
    RecurrentRun run(args, cell_, e_, weights_, workspace_, packed, starts_backwards_);
    run.prepare();
    for (int64_t first = 0; first < e_.length; first += positions_) {
      const int64_t steps = std::min(positions_, e_.length - first);
      run.project(first, steps, threads_);
      run.walk(first, steps, step_threads_);
    }
    run.finish();
  }

 private:
  static CellTask cell_of(const KernelCall& call) {
    CellTask cell{};
    const bool linear = call.op.name == "gru" && call.attributes.flag("linear_before_reset");
    cell.kind = call.op.name == "lstm"  ? CellKind::lstm
                : call.op.name == "rnn" ? CellKind::rnn
                : linear                ? CellKind::gru
                                        : CellKind::gru_gates;
    const float clip = call.attributes.get_or<float>("clip", 0);
    cell.clip = clip > 0 ? clip : std::numeric_limits<float>::infinity();
    cell.input_forget = call.op.name == "lstm" && call.attributes.flag("input_forget");
    cell.relu = is_relu(call);
    return cell;
  }

  const Extents e_;
  const PackedWeights weights_;
  const int64_t positions_;  // whose W x is computed at a time
  const bool starts_backwards_;
  const CellTask cell_;
  Tensor packed_;  // absent: the weights are not known before the run
  Workspace workspace_;
  int step_threads_ = 1, threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (!has_usual_activations(call)) return "activation functions other than the usual ones";
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
    if (!call.has_input(slot) || slot == kLengths) continue;
    if (call.inputs[slot].dtype() != DType::f32) return "only f32";
    if (call.inputs[slot].shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<RecurrentKernel>(call), ""}; }

}  // namespace

std::vector<KernelDef> recurrent_kernels() {
  return {{"cpu.lstm_simd", "lstm", why_not, prepare},
          {"cpu.gru_simd", "gru", why_not, prepare},
          {"cpu.rnn_simd", "rnn", why_not, prepare}};
}

}  // namespace autograph::simd
