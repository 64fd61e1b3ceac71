// lstm_gates_grad, gru_gates_grad and rnn_gates_grad: one group for each instance walks from the last position to the
// first. What flows into the gates of a position stands in local memory, since each item needs all of it for the
// product with R; what flows into an element of a state is read and written by one item alone.
#include <array>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/scalar_text.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

// The gates as rows of R, in memory one behind the other.
enum LstmGate : int64_t { kInput, kOutput, kForget, kCell, kLstmGates };
enum GruGate : int64_t { kUpdate, kReset, kCandidate, kGruGates };
constexpr int64_t kMemory = kGruGates;  // what a linear reset gate is multiplied with stands behind the gates of a gru

std::string slope_of_sigmoid(const std::string& y) { return fmt::format("{0} * (1 - {0})", y); }
std::string slope_of_tanh(const std::string& y) { return fmt::format("(1 - {0} * {0})", y); }

class GatesGradientWriter {
 public:
  GatesGradientWriter(const KernelCall& call, const Target& target)
      : call_(call),
        w_(target),
        length_(call.input_dims(0)[0]),
        batch_(call.input_dims(0)[1]),
        hidden_(call.input_dims(1)[1]),
        group_(group_size_for(target, hidden_)),
        dtype_(call.inputs[0].dtype()),
        type_(compute_type(dtype_)) {
    cover_operands(w_.index(), call);
  }

  std::string why_not() const {
    if (!can_compute(dtype_, w_.target())) return "dtype";
    if (hidden_ == 0) return "a state without elements";
    const int64_t elements = (num_gates() + (is_lstm() ? 2 : 1)) * hidden_;
    const size_t needed = static_cast<size_t>(elements) * compute_bytes(dtype_);
    const size_t there = w_.target().local_bytes;
    return needed > there ? fmt::format("gates of {} bytes, more than the {} of local memory", needed, there) : "";
  }

  Emitted write() {
    w_.begin_groups(parameters(), batch_, group_);
    w_.line("LOCAL {} into[{}];", type_, num_gates() * hidden_);
    w_.line("LOCAL {} into_state[{}];", type_, hidden_);
    if (is_lstm()) w_.line("LOCAL {} into_cell[{}];", type_, hidden_);
    write_first();
    w_.open("for (Index step = {} - 1; step >= 0; --step)", lit(length_));
    write_row();
    write_position();
    w_.close();
    for_each_element();
    write_output(is_gru() ? 2 : 1, state_at(), "into_state[j]");
    if (is_lstm()) write_output(2, state_at(), "into_cell[j]");
    w_.close();
    w_.end();
    return w_.finish();
  }

 private:
  bool is_lstm() const { return &call_.op == &lstm_gates_grad_def(); }
  bool is_gru() const { return &call_.op == &gru_gates_grad_def(); }
  bool is_linear() const { return call_.attributes.flag("linear_before_reset"); }
  int64_t num_gates() const {
    if (is_lstm()) return kLstmGates;
    return is_gru() ? int64_t{kGruGates} : 1;
  }
  // In each row of the first input.
  int64_t num_kept() const { return num_gates() + (is_gru() && is_linear() ? 1 : 0); }

  std::string lit(int64_t value) const { return const_cast<Writer&>(w_).index().literal(value); }
  bool gives(size_t k) const { return k < call_.outputs.size() && call_.outputs[k].is_tensor(); }

  std::vector<Parameter> parameters() {
    std::vector<Parameter> list;
    const std::vector<const char*> names = is_lstm()  ? std::vector{"kept", "r", "first_cell", "gy", "last_cell"}
                                           : is_gru() ? std::vector{"kept", "r", "before", "gy"}
                                                      : std::vector{"kept", "r", "gy"};
    const std::string_view storage = storage_type(dtype_);
    for (size_t slot = 0; slot < names.size(); ++slot) list.push_back(input_parameter(names[slot], storage, slot));
    for (size_t k = 0; k < call_.outputs.size(); ++k) {
      if (gives(k)) list.push_back(output_parameter(fmt::format("y{}", k), storage, k));
    }
    if (is_lstm()) {
      list.push_back(scratch_parameter("cells", type_));
      w_.scratch_bytes = static_cast<size_t>(length_ * batch_ * hidden_) * compute_bytes(dtype_);
    }
    return list;
  }

  // A loop in which the items of the group take turns.
  void for_each_element() { w_.open("for (Index j = t; j < {}; j += {})", lit(hidden_), group_); }

  // Where the position of `step` stands.
  void write_row() {
    const bool reverses = call_.attributes.flag("reverse");
    w_.line("const Index row = ({}) * {} + g;", reverses ? fmt::format("{} - 1 - step", lit(length_)) : "step",
            lit(batch_));
  }

  std::string state_at() const { return fmt::format("g * {} + j", lit(hidden_)); }
  std::string element_at() const { return fmt::format("row * {} + j", lit(hidden_)); }
  std::string gate_at(int64_t gates, int64_t gate) const {
    return fmt::format("row * {} + {} + j", lit(gates * hidden_), lit(gate * hidden_));
  }
  std::string kept(int64_t gate) const { return load(dtype_, "kept", gate_at(num_kept(), gate)); }

  std::string function(const OpDef& op, const std::string& x) {
    return scalar_text(w_, op, {}, std::array{ScalarOperand{dtype_, x}}, dtype_).value();
  }

  void define(const char* name, const std::string& value) { w_.line("const {} {} = {};", type_, name, value); }

  void write_output(size_t k, const std::string& at, const std::string& value) {
    if (gives(k)) w_.line("{}", store(dtype_, fmt::format("y{}", k), at, value));
  }

  // What flows into a gate of element j, by way of the input; by way of R it may be something else.
  void write_gate(int64_t gate, const std::string& value, const std::string& by_hidden = "") {
    const std::string local = fmt::format("into[{} + j]", lit(gate * hidden_)), at = gate_at(num_gates(), gate);
    w_.line("{} = {};", local, value);
    write_output(0, at, local);
    if (!by_hidden.empty()) w_.line("{} = {};", local, by_hidden);
    if (is_gru()) write_output(1, at, local);
  }

  // Declares `through`: what flows through R into element j of the state before, from gates [first, end).
  void write_through(int64_t first, int64_t end) {
    w_.line("{} through = 0;", type_);
    w_.line("for (Index k = {}; k < {}; ++k) through += into[k] * {};", lit(first * hidden_), lit(end * hidden_),
            load(dtype_, "r", fmt::format("k * {} + j", lit(hidden_))));
  }

  void write_first() {
    for_each_element();
    w_.line("into_state[j] = 0;");
    if (is_lstm()) write_cells();
    w_.close();
  }

  // An element of the cells before each position depends on none of its neighbours.
  void write_cells() {
    w_.line("into_cell[j] = {};", load(dtype_, "last_cell", state_at()));
    w_.line("{} cell = {};", type_, load(dtype_, "first_cell", state_at()));
    w_.open("for (Index step = 0; step < {}; ++step)", lit(length_));
    write_row();
    w_.line("cells[{}] = cell;", element_at());
    write_next_cell("cell");
    w_.line("cell = next;");
    w_.close();
  }

  // Declares the gates that a cell goes on by, and what it becomes.
  void write_next_cell(const char* cell) {
    define("in", function(sigmoid_def(), kept(kInput)));
    define("forget", function(sigmoid_def(), kept(kForget)));
    define("candidate", function(tanh_def(), kept(kCell)));
    define("next", fmt::format("forget * {} + in * candidate", cell));
  }

  void write_position() {
    for_each_element();
    define("flow", fmt::format("into_state[j] + {}", load(dtype_, "gy", element_at())));
    is_lstm() ? write_lstm() : is_gru() ? write_gru() : write_rnn();
    w_.close();
    w_.line("BARRIER();");
    const bool resets = is_gru() && !is_linear();
    if (resets) write_reset();
    for_each_element();
    write_through(0, resets ? kCandidate : num_gates());
    w_.line("into_state[j] += through;");
    w_.close();
    w_.line("BARRIER();");
  }

  void write_lstm() {
    define("cell", fmt::format("cells[{}]", element_at()));
    write_next_cell("cell");
    define("out", function(sigmoid_def(), kept(kOutput)));
    define("y", function(tanh_def(), "next"));
    define("into_next", fmt::format("into_cell[j] + flow * out * {}", slope_of_tanh("y")));
    write_gate(kInput, "into_next * candidate * " + slope_of_sigmoid("in"));
    write_gate(kOutput, "flow * y * " + slope_of_sigmoid("out"));
    write_gate(kForget, "into_next * cell * " + slope_of_sigmoid("forget"));
    write_gate(kCell, "into_next * in * " + slope_of_tanh("candidate"));
    w_.line("into_cell[j] = into_next * forget;");
    w_.line("into_state[j] = 0;");
  }

  // A reset gate behind R is done here, one before R waits for what flows through R.
  void write_gru() {
    define("update", kept(kUpdate));
    define("candidate", kept(kCandidate));
    define("into_candidate", "flow * (1 - update) * " + slope_of_tanh("candidate"));
    write_gate(kUpdate, fmt::format("flow * ({} - candidate) * {}", load(dtype_, "before", element_at()),
                                    slope_of_sigmoid("update")));
    if (is_linear()) {
      define("reset", kept(kReset));
      write_gate(kReset, fmt::format("into_candidate * {} * {}", kept(kMemory), slope_of_sigmoid("reset")));
      write_gate(kCandidate, "into_candidate", "into_candidate * reset");
    } else {
      write_gate(kCandidate, "into_candidate");
    }
    w_.line("into_state[j] = flow * update;");
  }

  void write_reset() {
    for_each_element();
    write_through(kCandidate, kGruGates);
    define("reset", kept(kReset));
    write_gate(kReset,
               fmt::format("through * {} * {}", load(dtype_, "before", element_at()), slope_of_sigmoid("reset")));
    w_.line("into_state[j] += through * reset;");
    w_.close();
    w_.line("BARRIER();");
  }

  void write_rnn() {
    define("y", kept(0));
    write_gate(0, "flow * " + slope_of_tanh("y"));
    w_.line("into_state[j] = 0;");
  }

  const KernelCall& call_;
  Writer w_;
  const int64_t length_, batch_, hidden_;
  const size_t group_;
  const DType dtype_;
  const std::string_view type_;
};

}  // namespace

Emitted emit_gates_gradient(const KernelCall& call, const Target& target) {
  GatesGradientWriter writer(call, target);
  const std::string reason = writer.why_not();
  if (!reason.empty()) return refused(reason);
  return writer.write();
}

}  // namespace autograph::gpu
