// lstm: long short-term memory, gates in the order i (input), o (output), f (forget), c (candidate):
//   i = f(Wi x + Ri h + Pi * c + b), f = f(Wf x + Rf h + Pf * c + b), n = g(Wc x + Rc h + b),
//   c' = f * c + i * n, o = f(Wo x + Ro h + Po * c' + b), h' = o * k(c').
// The functions are sigmoid, tanh, tanh unless `activations` says otherwise; P holds the peepholes of i, o, f.
// input_forget couples the gates: f = 1 - i. Layouts, directions and lengths: recurrent.h.
//
// The output `sums`, W x + R h + b of all gates, is for gradients, which would have to form it again: a third of what
// the backward pass takes. ONNX does not know it.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/real_values.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/recurrent/recurrent_gradient.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Gate : int64_t { kInput, kOutput, kForget, kCandidate };

constexpr size_t kSums = 3;  // the output

void infer(InferContext& context) {
  infer_recurrent(context, lstm_kind());
  if (context.num_outputs() > kSums) infer_kept(context, kSums, lstm_kind().gates, "sums");
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

void reference(const OpCall& call) {
  const bool input_forget = call.attributes.flag("input_forget"), keeps_sums = call.has_output(kSums);
  std::vector<double> sums;
  run_recurrent(call, lstm_kind(),
                [&](const RecurrentDirection& d, const double* x, std::vector<double>& h, std::vector<double>& c) {
                  for (int64_t row = 0; keeps_sums && row < d.gates * d.hidden; ++row) {
                    sums.push_back(d.sum(row / d.hidden, row % d.hidden, x, h.data()));
                  }
                  step(d, input_forget, x, h, c);
                });
  if (keeps_sums) store_kept(call, kSums, sums);
}

OpSample sample(Random& random) {
  OpSample result = sample_recurrent(random, lstm_kind());
  result.attributes.set("input_forget", draw(random, 0, 1));
  sample_kept(random, kSums, result);
  return result;
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> list = recurrent_attributes();
  list.push_back({"input_forget", AttributeType::integer, "1: the forget gate is 1 - input gate.", int64_t{0}});
  return list;
}

std::vector<Var> scan_of(DecomposeContext& context) {
  return recurrent_body(context, lstm_kind(), [](const Attributes& attributes, RecurrentPosition& cell) {
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

// The layer without its sums, and those as products for all positions.
std::vector<Var> layer_and_sums(DecomposeContext& context) {
  const std::vector<Var>& in = context.inputs;
  AG_CHECK_USER(in[RecurrentInput::x].shape().has_rank() && in[RecurrentInput::x].shape()[0].is_known() &&
                    in[RecurrentInput::r].type().is_static(),
                UnsupportedError, "[lstm] body: expected a known length and weights of known extents, got {} and {}",
                to_string(in[RecurrentInput::x].type()), to_string(in[RecurrentInput::r].type()));
  std::vector<Var> outputs = apply_all(lstm_def(), in, context.attributes, static_cast<int>(kSums));
  const std::string& direction = context.attributes.text("direction");
  const int64_t rows = in[RecurrentInput::r].dim(1);
  std::vector<Var> parts;
  for (int64_t number = 0; number < in[RecurrentInput::r].dim(0); ++number) {
    const Var y = of_direction(outputs[0], number, 1),
              first = first_state(in[RecurrentInput::first_h], outputs[1], number);
    const Var before = states_before(y, first, number == 1 || direction == "reverse");
    Var sums = matmul(in[RecurrentInput::x], transpose(of_direction(in[RecurrentInput::w], number, 0), {1, 0})) +
               matmul(before, transpose(of_direction(in[RecurrentInput::r], number, 0), {1, 0}));
    if (in[RecurrentInput::b].is_valid()) {
      const Var bias = of_direction(in[RecurrentInput::b], number, 0);
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

// Of one direction. Gradients of gradients flow into the sums as well.
GatesFlow gates_flow(VjpContext& c, const std::vector<Var>& outputs, const DirectionFlow& direction) {
  const int64_t number = direction.number;
  Var into_states = direction.into_states, of_sums, through;
  if (c.has_gy(kSums)) {
    of_sums = of_direction(c.gy(kSums), number, 0);
    through = matmul(of_sums, direction.r);  // what flows into the states before
    into_states = into_states + to_states_behind(through, direction.reverse);
  }
  const Var cell =
      first_state(c.has_input(RecurrentInput::first_c) ? c.in(RecurrentInput::first_c) : Var(), outputs[1], number);
  std::vector<Var> gates = lstm_gates_grad(of_direction(outputs[kSums], number, 0), direction.r, cell, into_states,
                                           of_direction(c.gy(2), number, 0), direction.reverse);
  if (of_sums.is_valid()) {
    const int64_t at = direction.reverse ? of_sums.dim(0) - 1 : 0;
    gates[0] = gates[0] + of_sums;
    gates[1] = gates[1] + of_direction(through, at, 0);
  }
  return {.into_input = gates[0], .into_hidden = {}, .of_r = {}, .into_first = {gates[1], gates[2]}};
}

void vjp(VjpContext& c) {
  require_usual_layer(c, lstm_kind());
  if (c.attributes().flag("input_forget")) c.unsupported("its rule needs a forget gate of its own");
  const std::vector<Var> outputs = first_outputs(c, kSums + 1);
  recurrent_vjp(c, outputs, [&](const DirectionFlow& direction) { return gates_flow(c, outputs, direction); });
}

}  // namespace

const RecurrentKind& lstm_kind() {
  static const RecurrentKind kind{4, true, {"Sigmoid", "Tanh", "Tanh"}};
  return kind;
}

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
                   Arity::internal}},
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
