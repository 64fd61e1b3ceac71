// lstm, gru and rnn: the products with the input of all positions first, at once; then one group for each direction and
// instance walks over the positions, its state in local memory.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/cell_functions.h"
#include "backends/gpu/emit/text/product.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

constexpr size_t kX = 0, kW = 1, kR = 2, kB = 3, kLengths = 4, kInitialH = 5, kInitialC = 6, kPeepholes = 7;

struct Sizes {
  int64_t directions, gates, hidden, input, length, batch;
  bool batch_first;
  int64_t rows() const { return gates * hidden; }
};

const RecurrentKind& kind_of(const KernelCall& call) {
  if (&call.op == &lstm_def()) return lstm_kind();
  return &call.op == &gru_def() ? gru_kind() : rnn_kind();
}

Sizes sizes_of(const KernelCall& call) {
  const Dims x = call.input_dims(kX);
  const Dims r = call.input_dims(kR);
  const auto* layout = call.attributes.find_as<int64_t>("layout");
  const bool batch_first = layout && *layout != 0;
  return {r[0], kind_of(call).gates, r[2], x[2], x[batch_first ? 1 : 0], x[batch_first ? 0 : 1], batch_first};
}

constexpr size_t kSums = 3;   // of an LSTM's gates: the output behind y and the last states
constexpr size_t kGates = 2;  // of a GRU

class RecurrentWriter {
 public:
  RecurrentWriter(const KernelCall& call, const Target& target)
      : call_(call), w_(target), s_(sizes_of(call)), dtype_(call.inputs[kX].dtype()), type_(compute_type(dtype_)) {
    cover_operands(w_.index(), call);
    w_.index().cover(s_.directions * s_.length * s_.batch * s_.rows());
  }

  std::string why_not() const {
    if (!can_multiply(dtype_, w_.target())) return "dtype";
    if (s_.hidden == 0) return "a state without elements";
    const size_t states = 3;
    if (states * static_cast<size_t>(s_.hidden) * element_size(DType::f64) > w_.target().local_bytes) {
      return "a state that is larger than local memory";
    }
    return "";
  }

  Emitted write() {
    write_projection();
    write_walk();
    w_.scratch_bytes = static_cast<size_t>(s_.directions * s_.length * s_.batch * s_.rows()) * compute_bytes(dtype_);
    return w_.finish();
  }

 private:
  std::string lit(int64_t value) const { return const_cast<Writer&>(w_).index().literal(value); }
  std::string_view storage() const { return storage_type(dtype_); }
  bool has(size_t slot) const { return call_.has_input(slot); }
  bool gives(size_t k) const { return k < call_.outputs.size() && call_.outputs[k].is_tensor(); }

  // projected[d, row of x, gate row] = W x + bias.
  void write_projection() {
    Product product;
    product.batches = s_.directions;
    product.rows = s_.length * s_.batch;
    product.inner = s_.input;
    product.columns = s_.rows();
    product.type = std::string(type_);
    product.left = [&](const std::string&, const std::string& m, const std::string& k) {
      return load(dtype_, "x", fmt::format("{} * {} + {}", m, lit(s_.input), k));
    };
    product.right = [&](const std::string& d, const std::string& k, const std::string& n) {
      return load(dtype_, "w", fmt::format("({} * {} + {}) * {} + {}", d, lit(s_.rows()), n, lit(s_.input), k));
    };
    product.write = [&](const std::string& d, const std::string& m, const std::string& n, const std::string& sum) {
      const std::string bias =
          has(kB) ? " + " + load(dtype_, "bias", fmt::format("{} * {} + {}", d, lit(2 * s_.rows()), n)) : "";
      w_.line("projected[({} * {} + {}) * {} + {}] = {}{};", d, lit(product.rows), m, lit(s_.rows()), n, sum, bias);
    };
    std::vector<Parameter> parameters{input_parameter("x", storage(), kX), input_parameter("w", storage(), kW)};
    if (has(kB)) parameters.push_back(input_parameter("bias", storage(), kB));
    parameters.push_back(scratch_parameter("projected", type_));
    write_product(w_, parameters, product);
  }

  std::vector<Parameter> walk_parameters() const {
    std::vector<Parameter> list{scratch_parameter("projected", type_), input_parameter("r", storage(), kR)};
    if (has(kB)) list.push_back(input_parameter("bias", storage(), kB));
    if (has(kLengths)) {
      list.push_back(input_parameter("lengths", "i32", kLengths));
      list.push_back(fault_parameter("faults"));
    }
    if (has(kInitialH)) list.push_back(input_parameter("initial_h", storage(), kInitialH));
    if (has(kInitialC)) list.push_back(input_parameter("initial_c", storage(), kInitialC));
    if (has(kPeepholes)) list.push_back(input_parameter("peepholes", storage(), kPeepholes));
    for (size_t k = 0; k < call_.outputs.size(); ++k) {
      if (gives(k)) list.push_back(output_parameter(fmt::format("y{}", k), storage(), k));
    }
    return list;
  }

  bool is_lstm() const { return &call_.op == &lstm_def(); }
  bool is_gru() const { return &call_.op == &gru_def(); }

  // Element j of the states of direction d and instance b.
  std::string state_at() const {
    return s_.batch_first ? fmt::format("(b * {} + d) * {} + j", lit(s_.directions), lit(s_.hidden))
                          : fmt::format("(d * {} + b) * {} + j", lit(s_.batch), lit(s_.hidden));
  }
  std::string output_at() const {
    return s_.batch_first ? fmt::format("((b * {} + position) * {} + d) * {} + j", lit(s_.length), lit(s_.directions),
                                        lit(s_.hidden))
                          : fmt::format("((position * {} + d) * {} + b) * {} + j", lit(s_.directions), lit(s_.batch),
                                        lit(s_.hidden));
  }

  // A loop in which the items of the group take turns.
  void for_each_element(size_t group) { w_.open("for (Index j = t; j < {}; j += {})", lit(s_.hidden), group); }

  void write_walk() {
    const size_t group = group_size_for(w_.target(), s_.hidden);
    w_.begin_groups(walk_parameters(), s_.directions * s_.batch, group);
    w_.line("LOCAL {} h[{}];", type_, s_.hidden);
    w_.line("LOCAL {} next[{}];", type_, s_.hidden);
    w_.line("LOCAL {} c[{}];", type_, s_.hidden);
    w_.line("const Index d = g / {0}, b = g % {0};", lit(s_.batch));
    const std::string length = lit(s_.length);
    w_.line("{}Index count = {};", has(kLengths) ? "" : "const ", has(kLengths) ? "lengths[b]" : length);
    if (has(kLengths)) write_check_of_length();
    for_each_element(group);
    w_.line("h[j] = {};", has(kInitialH) ? load(dtype_, "initial_h", state_at()) : "0");
    w_.line("c[j] = {};", has(kInitialC) ? load(dtype_, "initial_c", state_at()) : "0");
    w_.close();
    w_.line("BARRIER();");
    w_.open("for (Index step = 0; step < {}; ++step)", length);
    const std::string& direction = call_.attributes.text("direction");
    const std::string reverses = direction == "forward" ? "0" : direction == "reverse" ? "1" : "d == 1";
    w_.line("const i32 is_inside = step < count;");
    w_.line("const Index position = !is_inside ? step : {} ? count - 1 - step : step;", reverses);
    w_.line("const Index row = {};", s_.batch_first ? fmt::format("b * {} + position", length)
                                                    : fmt::format("position * {} + b", lit(s_.batch)));
    w_.line("const Index from = (d * {} + row) * {};", lit(s_.length * s_.batch), lit(s_.rows()));
    if (is_gru()) write_reset(group);
    for_each_element(group);
    w_.open("if (is_inside)");
    write_cell();
    w_.close();
    w_.close();
    w_.line("BARRIER();");
    for_each_element(group);
    w_.line("if (is_inside) h[j] = next[j];");
    if (gives(0)) w_.line("{}", store(dtype_, "y0", output_at(), "is_inside ? h[j] : 0"));
    w_.close();
    w_.line("BARRIER();");
    w_.close();
    for_each_element(group);
    if (gives(1)) w_.line("{}", store(dtype_, "y1", state_at(), "h[j]"));
    if (is_lstm() && gives(2)) w_.line("{}", store(dtype_, "y2", state_at(), "c[j]"));
    w_.close();
    w_.end();
  }

  // What is wrong counts as empty. The group must not leave: OpenCL wants every item at every barrier that one may
  // reach, and PoCL writes beyond its memory where a return stands before one.
  void write_check_of_length() {
    w_.fault = fmt::format("[recurrent] sequence_lens: expected 0..{}, got ", s_.length);
    w_.open("if (count < 0 || count > {})", lit(s_.length));
    w_.line("faults[0] = 1;");
    w_.line("faults[1] = count;");
    w_.line("count = 0;");
    w_.close();
  }

  // Declares `name`: R times `state` for element j of a gate, with its bias.
  void write_from_hidden(const std::string& name, int64_t gate, const char* state) {
    const std::string gate_row = fmt::format("(d * {} + {} + j)", lit(s_.rows()), lit(gate * s_.hidden));
    const std::string bias =
        has(kB) ? load(dtype_, "bias",
                       fmt::format("d * {} + {} + j", lit(2 * s_.rows()), lit(s_.rows() + gate * s_.hidden)))
                : "0";
    w_.line("{} {} = {};", type_, name, bias);
    w_.line("for (Index k = 0; k < {0}; ++k) {1} += {2} * {3}[k];", lit(s_.hidden), name,
            load(dtype_, "r", fmt::format("{} * {} + k", gate_row, lit(s_.hidden))), state);
  }

  std::string from_input(int64_t gate) const { return fmt::format("projected[from + {} + j]", lit(gate * s_.hidden)); }

  // Function `which` of the cell, of direction d.
  std::string function(size_t which, const std::string& x) {
    const RecurrentKind& kind = kind_of(call_);
    const auto functions = recurrent_activations(call_.attributes, kind);
    std::string forward = activation_text(w_, functions[which], dtype_, x);
    const bool is_for_both = s_.directions == 1 || !call_.attributes.contains("activations");
    if (is_for_both) return forward;
    const NamedActivation& other = functions[kind.default_activations.size() + which];
    return fmt::format("(d == 0 ? {} : {})", forward, activation_text(w_, other, dtype_, x));
  }

  std::string activated(size_t which, const std::string& sum) {
    const auto* clip = call_.attributes.find_as<float>("clip");
    if (!clip || *clip == 0) return function(which, sum);
    const std::string bound = literal(DType::f32, static_cast<double>(*clip));
    const std::string open = w_.new_name("unbounded"), name = w_.new_name("bounded");
    w_.line("const {} {} = {};", type_, open, sum);
    // fmin and fmax would lose NaN.
    w_.line("const {0} {1} = {2} < -({0}){3} ? -({0}){3} : {2} > ({0}){3} ? ({0}){3} : {2};", type_, name, open, bound);
    return function(which, name);
  }

  void write_cell() {
    if (is_lstm()) return write_lstm();
    if (is_gru()) return write_gru();
    write_from_hidden("memory", 0, "h");
    w_.line("next[j] = {};", activated(0, from_input(0) + " + memory"));
  }

  std::string peephole(int64_t gate, const char* cell) const {
    if (!has(kPeepholes)) return "";
    const std::string at = fmt::format("d * {} + {} + j", lit(3 * s_.hidden), lit(gate * s_.hidden));
    return fmt::format(" + {} * {}", load(dtype_, "peepholes", at), cell);
  }

  // Gates in the order input, output, forget, candidate.
  void write_lstm() {
    for (int64_t gate = 0; gate < 4; ++gate) {
      const std::string memory = fmt::format("m{}", gate);
      write_from_hidden(memory, gate, "h");
      if (!gives(kSums)) continue;
      // An output laid out as `projected` is.
      const std::string at = fmt::format("from + {} + j", lit(gate * s_.hidden));
      w_.line("{}", store(dtype_, fmt::format("y{}", kSums), at, from_input(gate) + " + " + memory));
    }
    w_.line("const {} in = {};", type_, activated(0, from_input(0) + " + m0" + peephole(0, "c[j]")));
    if (call_.attributes.flag("input_forget")) {
      w_.line("const {} forget = 1 - in;", type_);
    } else {
      w_.line("const {} forget = {};", type_, activated(0, from_input(2) + " + m2" + peephole(2, "c[j]")));
    }
    w_.line("const {} cell = forget * c[j] + in * {};", type_, activated(1, from_input(3) + " + m3"));
    w_.line("c[j] = cell;");
    const std::string out = activated(0, from_input(1) + " + m1" + peephole(1, "cell"));
    w_.line("next[j] = {} * {};", out, function(2, "cell"));
  }

  // Every element of the reset state is needed before any candidate: it stands in `c`, which a gru has no other use
  // for.
  void write_reset(size_t group) {
    for_each_element(group);
    w_.open("if (is_inside)");
    write_from_hidden("m1", 1, "h");
    const std::string reset = activated(0, from_input(1) + " + m1");
    w_.line("const {} reset = {};", type_, reset);
    w_.line("c[j] = {};", is_linear() ? "reset" : "reset * h[j]");
    write_kept_gate(1, "reset");
    w_.close();
    w_.close();
    w_.line("BARRIER();");
  }

  void write_gru() {
    write_from_hidden("m0", 0, "h");
    write_from_hidden("m2", 2, is_linear() ? "h" : "c");
    w_.line("const {} update = {};", type_, activated(0, from_input(0) + " + m0"));
    const std::string memory = is_linear() ? "c[j] * m2" : "m2";
    w_.line("const {} candidate = {};", type_, activated(1, from_input(2) + " + " + memory));
    w_.line("next[j] = (1 - update) * candidate + update * h[j];");
    write_kept_gate(0, "update");
    write_kept_gate(2, "candidate");
    if (is_linear()) write_kept_gate(3, "m2");
  }

  bool is_linear() const { return call_.attributes.flag("linear_before_reset"); }

  // What gradients read: rows as those of `projected`, with one gate more where the reset gate comes behind R.
  void write_kept_gate(int64_t gate, const char* value) {
    if (!gives(kGates)) return;
    const int64_t gates = s_.gates + (is_linear() ? 1 : 0);
    const std::string at = fmt::format("(d * {} + row) * {} + {} + j", lit(s_.length * s_.batch),
                                       lit(gates * s_.hidden), lit(gate * s_.hidden));
    w_.line("{}", store(dtype_, fmt::format("y{}", kGates), at, value));
  }

  const KernelCall& call_;
  Writer w_;
  const Sizes s_;
  const DType dtype_;
  const std::string_view type_;
};

}  // namespace

Emitted emit_recurrent(const KernelCall& call, const Target& target) {
  RecurrentWriter writer(call, target);
  const std::string reason = writer.why_not();
  if (!reason.empty()) return refused(reason);
  return writer.write();
}

}  // namespace autograph::gpu
