#include "backends/cpu/simd/recurrent/recurrent_layer.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "backends/cpu/threads/parallel_steps.h"
#include "base/check.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

// Rows of x whose products with W are computed at a time: enough for full speed, few enough to stay in cache.
constexpr int64_t kProjectedRows = 128;
constexpr int64_t kNumPeepholes = 3;
// So many that making a team of threads once for all of them takes next to nothing of the time.
constexpr int64_t kManySteps = 8;
// Multiplications in a block of a step from which on threads help each other: some microseconds.
constexpr int64_t kHelpfulProducts = 1 << 17;
// Elements to which parts of the scratch memory are aligned.
constexpr int64_t kAlign = 16;

bool is_lstm(const KernelCall& call) { return call.op.name.ends_with(lstm_def().name); }
bool is_gru(const KernelCall& call) { return &call.op == &gru_def(); }

int64_t num_gates(const KernelCall& call) { return is_lstm(call) ? 4 : is_gru(call) ? 3 : 1; }

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
  if (&call.op == &rnn_def()) return is_relu(call) || all_are(names, std::span(kUsual).subspan(1, 1));
  return all_are(names, std::span(kUsual).first(is_gru(call) ? 2 : 3));
}

CellTask cell_of(const KernelCall& call) {
  CellTask cell{};
  const bool linear = is_gru(call) && call.attributes.flag("linear_before_reset");
  cell.kind = is_lstm(call)            ? CellKind::lstm
              : &call.op == &rnn_def() ? CellKind::rnn
              : linear                 ? CellKind::gru
                                       : CellKind::gru_gates;
  const float clip = call.attributes.get_or<float>("clip", 0);
  cell.clip = clip > 0 ? clip : std::numeric_limits<float>::infinity();
  cell.input_forget = is_lstm(call) && call.attributes.flag("input_forget");
  cell.relu = is_relu(call);
  return cell;
}

}  // namespace

std::string why_not_recurrent(const KernelCall& call) {
  if (!has_usual_activations(call)) return "activation functions other than the usual ones";
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
    if (!call.has_input(slot) || slot == kLengths) continue;
    const DType dtype = call.inputs[slot].dtype();
    if (dtypes::kFloat.contains(dtype) && dtype != DType::f32) return "only f32";
    if (call.inputs[slot].shape().num_elements() == 0) return "a tensor without elements";
  }
  return "";
}

RecurrentExtents::RecurrentExtents(const KernelCall& call, int64_t hidden_elements)
    : batch_first(call.attributes.get_or<int64_t>("layout", 0) != 0),
      length(call.input_dims(kX)[batch_first ? 1 : 0]),
      batch(call.input_dims(kX)[batch_first ? 0 : 1]),
      input(call.input_dims(kX)[2]),
      directions(call.input_dims(kR)[0]),
      hidden(hidden_elements),
      gates(num_gates(call)),
      width(gate_width()),
      blocks((hidden + width - 1) / width) {}

void GateWeights::prepare(const GateRows&, bool, float*) const {}

// One run of the kernel.
class RecurrentRun {
 public:
  RecurrentRun(const RecurrentLayer& layer, const KernelArgs& args, const GateWeights& weights, float* scratch)
      : layer_(layer), e_(layer.e_), at_(layer.workspace_), args_(args), weights_(weights), memory_(scratch) {}

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
  void project(int64_t first, int64_t steps) {
    first_ = first, steps_ = steps;
    if (layer_.rows_.input > 0) prepare_inputs();
    for_units_in_steps(layer_.threads_, /*steps=*/1, e_.directions * e_.blocks, /*help=*/true,
                       [&](int64_t, StepUnits& units, int) {
                         for (int64_t unit = units.next(); unit >= 0; unit = units.next()) {
                           project_block(unit / e_.blocks, unit % e_.blocks);
                         }
                       });
  }

  // The steps [first, first + steps), whose W x is there.
  void walk(int64_t first, int64_t steps) {
    const bool resets_first = layer_.cell_.kind == CellKind::gru_gates;
    const int64_t phases = resets_first ? 2 : 1;
    const auto run = [&](int64_t number, StepUnits& units, int thread) {
      const bool is_second = number % phases == 1;
      run_blocks({is_second ? CellKind::gru_reset : layer_.cell_.kind, first + number / phases,
                  memory_ + at_.gates + thread * at_.gates_size, memory_ + at_.h_rows + thread * at_.h_rows_size},
                 units);
    };
    if (e_.directions > 1 && layer_.step_threads_ == e_.directions) return walk_apart(steps * phases, run);
    const bool help = e_.batch * e_.gates * e_.width * e_.hidden >= kHelpfulProducts;
    for_units_in_steps(layer_.step_threads_, steps * phases, e_.directions * e_.blocks, help, run);
  }

  void finish() {
    const int64_t states[] = {at_.h[last_of(e_.length)], at_.cell};
    for (size_t k = 0; k < num_states(); ++k) {
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
  // What one thread does of a step.
  struct Phase {
    CellKind kind;
    int64_t step;
    float* gates;   // memory for R h
    float* h_rows;  // memory for prepared rows of h
  };

  // Which h is the last one before a step.
  static size_t last_of(int64_t step) { return static_cast<size_t>(step % 2); }
  bool has_input(size_t slot) const { return slot < args_.inputs.size() && args_.inputs[slot].is_present(); }
  bool is_backwards(int64_t d) const { return d == 1 || layer_.starts_backwards_; }
  int64_t position(int64_t d, int64_t step) const { return is_backwards(d) ? e_.length - 1 - step : step; }

  void fill_lengths() {
    if (!has_input(kLengths)) return;
    lengths_ = args_.inputs[kLengths].data<int32_t>();
    for (int64_t b = 0; b < e_.batch; ++b) {
      AG_CHECK_USER(lengths_[b] >= 0 && lengths_[b] <= e_.length, ValueError,
                    "[recurrent] sequence_lens: expected 0..{}, got {}", e_.length, lengths_[b]);
    }
  }

  // to[block, gate, width] = from[gate, hidden] for the first `given` of `gates` gates; `add` adds instead.
  void spread(const float* from, int64_t given, float* to, int64_t gates, bool add = false) const {
    for (int64_t block = 0; block < e_.blocks; ++block, to += gates * e_.width) {
      for (int64_t gate = 0; gate < given; ++gate) {
        const float* part = from + gate * e_.hidden + block * e_.width;
        float* const gate_to = to + gate * e_.width;
        for (int64_t j = 0; j < elements(block); ++j) gate_to[j] = add ? gate_to[j] + part[j] : part[j];
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
    spread(given, e_.gates, bias, e_.gates);
    // A GRU's bias of R for the candidate stays by itself.
    const int64_t added = is_gru() ? 2 : e_.gates;
    spread(given + rows, added, bias, e_.gates, /*add=*/true);
    if (is_gru()) spread(given + rows + added * e_.hidden, 1, hidden_bias, 1);
  }

  void fill_peepholes(int64_t d) {
    float* peepholes = memory_ + at_.peepholes + d * kNumPeepholes * e_.padded();
    std::fill_n(peepholes, kNumPeepholes * e_.padded(), 0.0F);
    spread(args_.inputs[kPeepholes].data<float>() + d * kNumPeepholes * e_.hidden, kNumPeepholes, peepholes,
           kNumPeepholes);
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

  // The first of the positions whose W x is computed.
  int64_t first_position(int64_t d) const { return is_backwards(d) ? e_.length - first_ - steps_ : first_; }

  // Prepared rows of x; both directions read the same ones where they are at the same positions.
  float* input_rows(int64_t d) const {
    const int64_t size = steps_ * e_.batch * layer_.rows_.input;
    return memory_ + at_.x_rows + (first_position(d) == first_position(0) ? 0 : size);
  }

  void prepare_inputs() {
    const int64_t rows = steps_ * e_.batch;
    const int64_t last = e_.directions - 1;
    const int64_t copies = input_rows(last) == input_rows(0) ? 1 : 2;
    const int threads = std::min(layer_.threads_, useful_threads(layer_.threads_, copies * rows * e_.input));
    for_shares(threads, copies * rows, [&](int64_t begin, int64_t end, int) {
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t d = unit / rows * last, row = unit % rows;
        const int64_t slow = e_.batch_first ? steps_ : e_.batch;
        const int64_t t = first_position(d) + (e_.batch_first ? row % slow : row / slow);
        const float* x = args_.inputs[kX].data<float>() + e_.x(t, e_.batch_first ? row / slow : row % slow);
        weights_.prepare({x, e_.input, 1, nullptr}, /*of_hidden=*/false, input_rows(d) + row * layer_.rows_.input);
      }
    });
  }

  void project_block(int64_t d, int64_t block) {
    const int64_t begin = first_position(d);
    const float* x = args_.inputs[kX].data<float>();
    const int64_t row = e_.gates * e_.padded();
    float* to = memory_ + at_.projected + d * steps_ * e_.batch * row + block * e_.gates * e_.width;
    const GateBlock which{/*of_hidden=*/false, d, block, 0, e_.gates};
    const float* prepared = input_rows(d);
    if (!e_.batch_first) {
      return weights_.multiply(which, {x + e_.x(begin, 0), e_.input, steps_ * e_.batch, prepared}, to, row);
    }
    for (int64_t b = 0; b < e_.batch; ++b) {
      const GateRows rows{x + e_.x(begin, b), e_.input, steps_, prepared + b * steps_ * layer_.rows_.input};
      weights_.multiply(which, rows, to + b * row, e_.batch * row);
    }
  }

  // A thread for each direction. Neither reads what the other makes: nobody waits between the steps, so that a thread
  // that is late in one may catch up in the next.
  template <class Run>
  void walk_apart(int64_t count, const Run& run) const {
    const auto directions = static_cast<int>(e_.directions);
    for_shares(directions, directions, [&](int64_t begin, int64_t end, int thread) {
      for (auto d = static_cast<int>(begin); d < end; ++d) {
        for (int64_t number = 0; number < count; ++number) {
          StepUnits units(number, e_.directions * e_.blocks, directions, d, /*taken=*/nullptr);
          run(number, units, thread);
        }
      }
    });
  }

  size_t num_states() const { return layer_.cell_.kind == CellKind::lstm ? 2 : 1; }
  bool is_gru() const { return layer_.cell_.kind == CellKind::gru || layer_.cell_.kind == CellKind::gru_gates; }

  // What R is multiplied with.
  GateRows states(const Phase& phase, int64_t d) const {
    const int64_t at = phase.kind == CellKind::gru_reset ? at_.reset_h : at_.h[last_of(phase.step)];
    return {memory_ + at + d * e_.batch * e_.padded(), e_.padded(), e_.batch,
            phase.h_rows + d * e_.batch * layer_.rows_.hidden};
  }

  void run_blocks(const Phase& phase, StepUnits& units) {
    std::array<bool, 2> prepared{};  // of each direction
    for (int64_t unit = units.next(); unit >= 0; unit = units.next()) {
      const int64_t d = unit / e_.blocks;
      if (!std::exchange(prepared[static_cast<size_t>(d)], true) && layer_.rows_.hidden > 0) prepare_states(phase, d);
      run_block(phase, d, unit % e_.blocks);
    }
  }

  // Each thread does so for itself: that takes less than waiting for the others.
  void prepare_states(const Phase& phase, int64_t d) const {
    weights_.prepare(states(phase, d), /*of_hidden=*/true, phase.h_rows + d * e_.batch * layer_.rows_.hidden);
  }

  void run_block(const Phase& phase, int64_t d, int64_t block) {
    const CellKind kind = phase.kind;
    float* const gates = phase.gates;
    const int64_t t = position(d, phase.step);
    const int64_t first_state = d * e_.batch * e_.padded();
    const bool is_reset = kind == CellKind::gru_reset;
    const size_t last_h = last_of(phase.step);
    const float* last = memory_ + at_.h[last_h] + first_state;
    float* next = memory_ + (kind == CellKind::gru_gates ? at_.reset_h : at_.h[1 - last_h]) + first_state;
    const int64_t panels = is_reset ? 1 : kind == CellKind::gru_gates ? 2 : e_.gates;
    weights_.multiply({/*of_hidden=*/true, d, block, is_reset ? 2 : 0, panels}, states(phase, d), gates,
                      panels * e_.width);
    for (int64_t b = 0; b < e_.batch; ++b) {
      const int64_t at = b * e_.padded() + block * e_.width;
      float* y = output(t, d, b, block);
      if (lengths_ && t >= lengths_[b]) {
        std::copy(last + at, last + at + e_.width, next + at);
        if (y) std::fill_n(y, elements(block), 0.0F);
        continue;
      }
      CellTask task = layer_.cell_;
      task.kind = kind;
      task.from_input = projected(d, phase.step, b, block);
      task.from_hidden = gates + b * panels * e_.width;
      task.bias = memory_ + at_.bias + (d * e_.blocks + block) * e_.gates * e_.width;
      task.hidden_bias = memory_ + at_.hidden_bias + d * e_.padded() + block * e_.width;
      if (has_input(kPeepholes)) {
        task.peepholes = memory_ + at_.peepholes + (d * e_.blocks + block) * kNumPeepholes * e_.width;
      }
      task.h = last + at;
      task.next_h = next + at;
      task.cell = memory_ + at_.cell + first_state + at;
      task.y = kind == CellKind::gru_gates ? nullptr : y;
      task.y_count = elements(block);
      task.kept = kept(t, d, b, block);
      task.kept_stride = e_.hidden;
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

  // An LSTM's sums of gates or a GRU's gates, the output behind y and the states, where they are asked for.
  float* kept(int64_t t, int64_t d, int64_t b, int64_t block) const {
    const size_t slot = 1 + num_states();
    if (args_.outputs.size() <= slot || !args_.outputs[slot].is_present()) return nullptr;
    const int64_t row = (d * e_.length + t) * e_.batch + b;
    const int64_t gates = e_.gates + (layer_.cell_.kind == CellKind::gru ? 1 : 0);
    return args_.outputs[slot].mutable_data<float>() + row * gates * e_.hidden + block * e_.width;
  }

  const RecurrentLayer& layer_;
  const RecurrentExtents& e_;
  const RecurrentLayer::Workspace& at_;
  const KernelArgs& args_;
  const GateWeights& weights_;
  float* const memory_;
  const int32_t* lengths_ = nullptr;
  int64_t first_ = 0, steps_ = 0;  // whose W x is there
};

int64_t RecurrentLayer::Workspace::take(int64_t count) {
  return std::exchange(total, total + (count + kAlign - 1) / kAlign * kAlign);
}

RecurrentLayer::RecurrentLayer(const KernelCall& call, const RecurrentExtents& extents, const RowSizes& rows,
                               int64_t speed)
    : e_(extents),
      rows_(rows),
      positions_(std::clamp<int64_t>(kProjectedRows / e_.batch, 1, e_.length)),
      starts_backwards_(call.attributes.text("direction") == "reverse"),
      cell_(cell_of(call)) {
  const int64_t step_products = e_.directions * e_.batch * e_.gates * e_.hidden * e_.hidden / speed;
  step_threads_ = useful_threads(call.threads, e_.length < kManySteps ? step_products / 8 : step_products);
  threads_ = useful_threads(call.threads, step_products / 8 * e_.input / e_.hidden * positions_);
  plan_workspace();
}

void RecurrentLayer::plan_workspace() {
  Workspace& at = workspace_;
  const int64_t states = e_.directions * e_.batch * e_.padded();
  const int threads = std::max(threads_, step_threads_);
  at.projected = at.take(e_.directions * positions_ * e_.batch * e_.gates * e_.padded());
  at.bias = at.take(e_.directions * e_.gates * e_.padded());
  at.hidden_bias = at.take(e_.directions * e_.padded());
  at.peepholes = at.take(e_.directions * kNumPeepholes * e_.padded());
  for (int64_t& h : at.h) h = at.take(states);
  at.cell = at.take(states);
  at.reset_h = at.take(states);
  at.gates_size = e_.batch * e_.gates * e_.width;
  at.gates = at.take(threads * at.gates_size);
  at.x_rows = at.take(e_.directions * positions_ * e_.batch * rows_.input);
  at.h_rows_size = e_.directions * e_.batch * rows_.hidden;
  at.h_rows = at.take(threads * at.h_rows_size);
}

void RecurrentLayer::run(const KernelArgs& args, const GateWeights& weights, float* scratch) const {
  RecurrentRun run(*this, args, weights, scratch);
  run.prepare();
  for (int64_t first = 0; first < e_.length; first += positions_) {
    const int64_t steps = std::min(positions_, e_.length - first);
    run.project(first, steps);
    run.walk(first, steps);
  }
  run.finish();
}

}  // namespace autograph::simd
