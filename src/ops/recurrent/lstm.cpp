// lstm: long short-term memory, gates in the order i (input), o (output), f (forget), c (candidate):
//   i = f(Wi x + Ri h + Pi * c + b), f = f(Wf x + Rf h + Pf * c + b), n = g(Wc x + Rc h + b),
//   c' = f * c + i * n, o = f(Wo x + Ro h + Po * c' + b), h' = o * k(c').
// The functions are sigmoid, tanh, tanh unless `activations` says otherwise; P holds the peepholes of i, o, f.
// input_forget couples the gates: f = 1 - i. Layouts, directions and lengths: recurrent.h.
#include "autograph/op_def.h"
#include "autograph/ops/recurrent.h"
#include "ops/defs.h"
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
      .cost = recurrent_cost,
      .onnx = {{.name = "LSTM", .since = 7, .export_since = 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
