// lstm: long short-term memory, gates in the order i (input), o (output), f (forget), c (candidate):
//   i = f(Wi x + Ri h + Pi * c + b), f = f(Wf x + Rf h + Pf * c + b), n = g(Wc x + Rc h + b),
//   c' = f * c + i * n, o = f(Wo x + Ro h + Po * c' + b), h' = o * k(c').
// The functions are sigmoid, tanh, tanh unless `activations` says otherwise; P holds the peepholes of i, o, f.
// input_forget couples the gates: f = 1 - i. Layouts, directions and lengths: recurrent.h.
#include <array>

#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Gate : int64_t { kInput, kOutput, kForget, kCandidate };

const RecurrentKind& kind() {
  static const RecurrentKind kind{4, true, {"Sigmoid", "Tanh", "Tanh"}};
  return kind;
}

void infer(InferContext& context) { infer_recurrent(context, kind()); }

void step(const RecurrentDirection& d, bool input_forget, const double* x, std::vector<double>& h,
          std::vector<double>& c) {
  std::vector<double> next(h.size());
  for (int64_t j = 0; j < d.hidden; ++j) {
    const auto at = static_cast<size_t>(j);
    // A gate with its peephole on the cell state `cell`.
    const auto gate = [&](Gate which, double cell) {
      const double peephole = d.peepholes.empty() ? 0.0 : d.peepholes[static_cast<size_t>(which * d.hidden + j)];
      return d.activate(0, d.sum(which, j, x, h.data()) + peephole * cell);
    };
    const double input = gate(kInput, c[at]);
    const double forget = input_forget ? 1 - input : gate(kForget, c[at]);
    const double candidate = d.activate(1, d.sum(kCandidate, j, x, h.data()));
    c[at] = forget * c[at] + input * candidate;
    next[at] = gate(kOutput, c[at]) * d.functions[2](c[at]);
  }
  h = std::move(next);
}

void reference(const OpCall& call) {
  const bool input_forget = call.attributes.flag("input_forget");
  run_recurrent(call, kind(),
                [input_forget](const RecurrentDirection& d, const double* x, std::vector<double>& h,
                               std::vector<double>& c) { step(d, input_forget, x, h, c); });
}

OpSample sample(Random& random) {
  OpSample result = sample_recurrent(random, kind());
  result.attributes.set("input_forget", draw(random, 0, 1));
  return result;
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> list = recurrent_attributes();
  list.push_back({"input_forget", AttributeType::integer, "1: the forget gate is 1 - input gate.", int64_t{0}});
  return list;
}

std::vector<Var> decompose(DecomposeContext& context) {
  return recurrent_body(context, kind(), [](const Attributes& attributes, RecurrentPosition& cell) {
    const Var sums = cell.from_input + cell.from_hidden(cell.h);
    const auto gate = [&](Gate which, const Var& c) {
      const Var sum = cell.gate(sums, which, 1);
      return cell.activate(0, cell.peepholes.is_valid() ? sum + cell.gate(cell.peepholes, which, 0) * c : sum);
    };
    const Var input = gate(kInput, cell.c);
    const Var forget = attributes.flag("input_forget") ? 1 - input : gate(kForget, cell.c);
    cell.c = forget * cell.c + input * cell.activate(1, cell.gate(sums, kCandidate, 1));
    cell.h = gate(kOutput, cell.c) * cell.output(cell.c);
  });
}

// ---- Gradient ------------------------------------------------------------------------------------------------------

enum Slot : size_t { kX, kW, kR, kB, kLengths, kFirstH, kFirstC, kPeepholes };

// Of a layer as most are; all others are differentiated as what they stand for.
bool is_plain(VjpContext& c) {
  const Attributes& attributes = c.attributes();
  const auto* activations = attributes.find_as<std::vector<std::string>>("activations");
  const bool has_length = c.has_input(kX) && c.in(kX).shape().has_rank() && c.in(kX).shape()[0].is_known();
  return has_length && !activations && !attributes.flag("layout") && !attributes.flag("input_forget") &&
         attributes.get_or<float>("clip", 0) == 0 && !c.has_input(kLengths) && !c.has_input(kPeepholes) &&
         c.in(kR).type().is_static();
}

// Adds up what the directions give to the inputs they share, and joins what each has for itself.
class LayerGradient {
 public:
  explicit LayerGradient(VjpContext& c) : c_(c), outputs_(c.num_outputs() == 3 ? given() : c.with_outputs(3)) {}

  void add(int64_t number, bool reverse) {
    const auto of_direction = [&](const Var& x, int64_t axis) {
      return squeeze(slice(x, {number}, {number + 1}, {axis}), {axis});
    };
    const Var x = c_.in(kX), w = of_direction(c_.in(kW), 0), r = of_direction(c_.in(kR), 0);
    const Var y = of_direction(outputs_[0], 1);
    const auto first = [&](size_t slot) {
      return c_.has_input(slot) ? of_direction(c_.in(slot), 0) : filled_like(of_direction(outputs_[1], 0), 0);
    };
    const Var before = states_before(y, first(kFirstH), reverse);
    Var sums = matmul(x, transpose(w, {1, 0})) + matmul(before, transpose(r, {1, 0}));
    if (c_.has_input(kB)) {
      const Var bias = of_direction(c_.in(kB), 0);
      const int64_t rows = r.dim(0);
      sums = sums + (slice(bias, {0}, {rows}, {0}) + slice(bias, {rows}, {2 * rows}, {0}));
    }
    const std::vector<Var> gates = lstm_gates_grad(sums, r, first(kFirstC), into_states(y, of_direction, reverse),
                                                   of_direction(c_.gy(2), 0), reverse);
    collect(gates, w, x, before);
  }

  void set() {
    if (c_.wants(kX)) c_.set(kX, of_x_);
    for (size_t slot = kW; slot <= kFirstC; ++slot) {
      if (c_.has_input(slot) && c_.wants(slot))
        c_.set(slot, parts_[slot].size() == 1 ? parts_[slot][0] : concat(parts_[slot], 0));
    }
  }

 private:
  std::vector<Var> given() { return {c_.out(0), c_.out(1), c_.out(2)}; }

  // h before each position.
  static Var states_before(const Var& y, const Var& first, bool reverse) {
    const Var own = unsqueeze(first, {0});
    const int64_t length = y.dim(0);
    if (length == 1) return own;
    return reverse ? concat({slice(y, {1}, {length}, {0}), own}, 0)
                   : concat({own, slice(y, {0}, {length - 1}, {0})}, 0);
  }

  // What flows into each h: the last one is an output of its own as well.
  template <class OfDirection>
  Var into_states(const Var& y, const OfDirection& of_direction, bool reverse) {
    const Var flow = of_direction(c_.gy(0), 1);
    if (!c_.has_gy(1)) return flow;
    const Var last = unsqueeze(of_direction(c_.gy(1), 0), {0});
    const int64_t length = y.dim(0);
    if (length == 1) return flow + last;
    const Var rest = filled_like(slice(y, {1}, {length}, {0}), 0);
    return flow + (reverse ? concat({last, rest}, 0) : concat({rest, last}, 0));
  }

  void collect(const std::vector<Var>& gates, const Var& w, const Var& x, const Var& before) {
    const Var& flow = gates[0];
    const auto rows = [](const Var& v) { return reshape(v, {-1, v.dim(2)}); };
    const Var of_rows = transpose(rows(flow), {1, 0});
    const Var through = matmul(flow, w);
    of_x_ = of_x_.is_valid() ? of_x_ + through : through;
    parts_[kW].push_back(unsqueeze(matmul(of_rows, rows(x)), {0}));
    parts_[kR].push_back(unsqueeze(matmul(of_rows, rows(before)), {0}));
    const Var bias = reduce_sum(flow, {0, 1}, false);
    parts_[kB].push_back(unsqueeze(concat({bias, bias}, 0), {0}));
    parts_[kFirstH].push_back(unsqueeze(gates[1], {0}));
    parts_[kFirstC].push_back(unsqueeze(gates[2], {0}));
  }

  VjpContext& c_;
  std::vector<Var> outputs_;
  Var of_x_;
  std::array<std::vector<Var>, kPeepholes> parts_;
};

void vjp(VjpContext& c) {
  if (!is_plain(c)) c.unsupported("its rule needs the usual functions, no peepholes, lengths or clipping");
  const std::string direction = c.attributes().text("direction");
  LayerGradient gradient(c);
  gradient.add(0, direction == "reverse");
  if (direction == "bidirectional") gradient.add(1, true);
  gradient.set();
}

}  // namespace

std::vector<Var> lstm(Var x, Var w, Var r, Var b, const std::string& direction) {
  return apply_all(lstm_def(), {x, w, r, b}, {{"direction", direction}}, 3);
}

const OpDef& lstm_def() {
  static const OpDef def{
      .name = "lstm",
      .doc = "Long short-term memory: c = f * c + i * n, h = o * k(c), position by position.",
      .inputs = {{"x", "T", "[length, batch, input], or batch first with layout 1."},
                 {"w", "T", "[directions, 4 * hidden, input], gates i, o, f, c."},
                 {"r", "T", "[directions, 4 * hidden, hidden]."},
                 {"b", "T", "[directions, 8 * hidden]: biases of w, then of r.", Arity::optional},
                 {"sequence_lens", "I", "[batch], length of each sequence.", Arity::optional},
                 {"initial_h", "T", "[directions, batch, hidden], or batch first.", Arity::optional},
                 {"initial_c", "T", "Shape of initial_h.", Arity::optional},
                 {"p", "T", "[directions, 3 * hidden], peepholes of i, o, f.", Arity::optional}},
      .outputs = {{"y", "T", "[length, directions, batch, hidden], or [batch, length, ...].", Arity::optional},
                  {"y_h", "T", "The last h, shape of initial_h.", Arity::optional},
                  {"y_c", "T", "The last c, shape of initial_h.", Arity::optional}},
      .types = {{"T", dtypes::kFloat}, {"I", DTypeSet{DType::i32}}},
      .attributes = attributes(),
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .vjp = vjp,
      .cost = recurrent_cost,
      .onnx = {{.name = "LSTM", .since = 7, .export_since = 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
