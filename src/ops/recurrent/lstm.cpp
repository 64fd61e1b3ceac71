// lstm: long short-term memory, gates in the order i (input), o (output), f (forget), c (candidate):
//   i = f(Wi x + Ri h + Pi * c + b), f = f(Wf x + Rf h + Pf * c + b), n = g(Wc x + Rc h + b),
//   c' = f * c + i * n, o = f(Wo x + Ro h + Po * c' + b), h' = o * k(c').
// The functions are sigmoid, tanh, tanh unless `activations` says otherwise; P holds the peepholes of i, o, f.
// input_forget couples the gates: f = 1 - i. Layouts, directions and lengths: recurrent.h.
//
// The output `sums`, W x + R h + b of all gates, is for gradients, which would have to form it again: a third of what
// the backward pass takes. ONNX does not know it.
#include <algorithm>
#include <array>

#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/gradients.h"
#include "ops/real_values.h"
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

enum Slot : size_t { kX, kW, kR, kB, kLengths, kFirstH, kFirstC, kPeepholes };
constexpr size_t kSums = 3;  // the output

void infer(InferContext& context) {
  infer_recurrent(context, kind());
  if (context.num_outputs() <= kSums) return;
  context.require<ValueError>(!context.attributes().flag("layout") && !context.has_input(kLengths), "sums",
                              "expected layout 0 and no sequence_lens");
  const Shape y = context.output_types()[0].shape();
  const Dim rows = y[3].is_unknown() ? y[3] : Dim(kind().gates) * y[3];
  context.set_output(kSums, context.dtype(kX), Shape{y[1], y[0], y[2], rows});
}

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

// From [direction, instance, step], as the reference walks, to [direction, position, instance].
void store_sums(const OpCall& call, const std::vector<double>& walked) {
  const TensorView to = call.output(kSums);
  const int64_t length = to.dim(1), batch = to.dim(2), rows = to.dim(3);
  std::vector<double> sums(walked.size());
  for (int64_t row = 0; row < to.dim(0) * batch * length; ++row) {
    const int64_t d = row / (batch * length), b = row / length % batch, i = row % length;
    const bool backwards = d == 1 || call.attributes.text("direction") == "reverse";
    const int64_t t = backwards ? length - 1 - i : i;
    std::copy_n(walked.begin() + row * rows, rows, sums.begin() + ((d * length + t) * batch + b) * rows);
  }
  store_reals(sums, to);
}

void reference(const OpCall& call) {
  const bool input_forget = call.attributes.flag("input_forget"), keeps_sums = call.has_output(kSums);
  std::vector<double> sums;
  run_recurrent(call, kind(),
                [&](const RecurrentDirection& d, const double* x, std::vector<double>& h, std::vector<double>& c) {
                  for (int64_t row = 0; keeps_sums && row < d.gates * d.hidden; ++row) {
                    sums.push_back(d.sum(row / d.hidden, row % d.hidden, x, h.data()));
                  }
                  step(d, input_forget, x, h, c);
                });
  if (keeps_sums) store_sums(call, sums);
}

OpSample sample(Random& random) {
  OpSample result = sample_recurrent(random, kind());
  result.attributes.set("input_forget", draw(random, 0, 1));
  const bool may_keep_sums = !result.attributes.flag("layout") && !result.inputs[kLengths].is_present();
  if (may_keep_sums && draw_bool(random)) result.num_outputs = static_cast<int>(kSums) + 1;
  return result;
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> list = recurrent_attributes();
  list.push_back({"input_forget", AttributeType::integer, "1: the forget gate is 1 - input gate.", int64_t{0}});
  return list;
}

std::vector<Var> scan_of(DecomposeContext& context) {
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

Var of_direction(const Var& x, int64_t number, int64_t axis) {
  return squeeze(slice(x, {number}, {number + 1}, {axis}), {axis});
}

// The states before each position of a direction, from those behind it, y [length, batch, hidden].
Var states_before(const Var& y, const Var& first, bool reverse) {
  const Var own = unsqueeze(first, {0});
  const int64_t length = y.dim(0);
  if (length == 1) return own;
  return reverse ? concat({slice(y, {1}, {length}, {0}), own}, 0) : concat({own, slice(y, {0}, {length - 1}, {0})}, 0);
}

// The state in front of a direction, zeros unless it is given.
Var first_state(const Var& given, const Var& last, int64_t number) {
  return given.is_valid() ? of_direction(given, number, 0) : filled_like(of_direction(last, number, 0), 0);
}

// The layer without its sums, and those as products for all positions.
std::vector<Var> layer_and_sums(DecomposeContext& context) {
  const std::vector<Var>& in = context.inputs;
  AG_CHECK_USER(in[kX].shape().has_rank() && in[kX].shape()[0].is_known() && in[kR].type().is_static(),
                UnsupportedError, "[lstm] body: expected a known length and weights of known extents, got {} and {}",
                to_string(in[kX].type()), to_string(in[kR].type()));
  std::vector<Var> outputs = apply_all(lstm_def(), in, context.attributes, static_cast<int>(kSums));
  const std::string& direction = context.attributes.text("direction");
  const int64_t rows = in[kR].dim(1);
  std::vector<Var> parts;
  for (int64_t number = 0; number < in[kR].dim(0); ++number) {
    const Var y = of_direction(outputs[0], number, 1), first = first_state(in[kFirstH], outputs[1], number);
    const Var before = states_before(y, first, number == 1 || direction == "reverse");
    Var sums = matmul(in[kX], transpose(of_direction(in[kW], number, 0), {1, 0})) +
               matmul(before, transpose(of_direction(in[kR], number, 0), {1, 0}));
    if (in[kB].is_valid()) {
      const Var bias = of_direction(in[kB], number, 0);
      sums = sums + (slice(bias, {0}, {rows}, {0}) + slice(bias, {rows}, {2 * rows}, {0}));
    }
    parts.push_back(unsqueeze(sums, {0}));
  }
  outputs.push_back(parts.size() == 1 ? parts[0] : concat(parts, 0));
  return outputs;
}

std::vector<Var> decompose(DecomposeContext& context) {
  return context.num_outputs > kSums ? layer_and_sums(context) : scan_of(context);
}

// ---- Gradient ------------------------------------------------------------------------------------------------------

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
  explicit LayerGradient(VjpContext& c) : c_(c), outputs_(c.num_outputs() > kSums ? given() : c.with_outputs(4)) {}

  void add(int64_t number, bool reverse) {
    const Var w = of_direction(c_.in(kW), number, 0), r = of_direction(c_.in(kR), number, 0);
    const Var y = of_direction(outputs_[0], number, 1);
    const auto first = [&](size_t slot) {
      return first_state(c_.has_input(slot) ? c_.in(slot) : Var(), outputs_[1], number);
    };
    const Var before = states_before(y, first(kFirstH), reverse);
    Var into_states = flow_into_states(y, number, reverse), of_sums, through;
    if (c_.has_gy(kSums)) {
      of_sums = of_direction(c_.gy(kSums), number, 0);
      through = matmul(of_sums, r);  // what flows into the states before
      into_states = into_states + to_states_behind(through, reverse);
    }
    std::vector<Var> gates = lstm_gates_grad(of_direction(outputs_[kSums], number, 0), r, first(kFirstC), into_states,
                                             of_direction(c_.gy(2), number, 0), reverse);
    if (of_sums.is_valid()) {
      const int64_t at = reverse ? y.dim(0) - 1 : 0;
      gates[0] = gates[0] + of_sums;
      gates[1] = gates[1] + of_direction(through, at, 0);
    }
    collect(gates, w, c_.in(kX), before);
  }

  void set() {
    if (c_.wants(kX)) c_.set(kX, of_x_);
    for (size_t slot = kW; slot <= kFirstC; ++slot) {
      if (c_.has_input(slot) && c_.wants(slot))
        c_.set(slot, parts_[slot].size() == 1 ? parts_[slot][0] : concat(parts_[slot], 0));
    }
  }

 private:
  std::vector<Var> given() { return {c_.out(0), c_.out(1), c_.out(2), c_.out(kSums)}; }

  // What flows into each h: the last one is an output of its own as well.
  Var flow_into_states(const Var& y, int64_t number, bool reverse) {
    const Var flow = of_direction(c_.gy(0), number, 1);
    if (!c_.has_gy(1)) return flow;
    const Var last = unsqueeze(of_direction(c_.gy(1), number, 0), {0});
    const int64_t length = y.dim(0);
    if (length == 1) return flow + last;
    const Var rest = filled_like(slice(y, {1}, {length}, {0}), 0);
    return flow + (reverse ? concat({last, rest}, 0) : concat({rest, last}, 0));
  }

  // From the states before each position to those behind: the last one is before none.
  static Var to_states_behind(const Var& flow, bool reverse) {
    const int64_t length = flow.dim(0);
    if (length == 1) return flow * 0;
    const Var none = filled_like(slice(flow, {0}, {1}, {0}), 0);
    return reverse ? concat({none, slice(flow, {0}, {length - 1}, {0})}, 0)
                   : concat({slice(flow, {1}, {length}, {0}), none}, 0);
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
  if (!is_plain(c))
    c.unsupported(
        "its rule needs the usual functions, no peepholes, lengths "
        "or clipping");
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
      .doc =
          "Long short-term memory: c = f * c + i * n, h = o * k(c), "
          "position by position.",
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
                  {"y_c", "T", "The last c, shape of initial_h.", Arity::optional},
                  {"sums", "T",
                   "[directions, length, batch, 4 * hidden]: W x + R h + b, before "
                   "clipping and peepholes.",
                   Arity::optional}},
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
