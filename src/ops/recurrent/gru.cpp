// gru: gated recurrent unit, gates in the order z (update), r (reset), h (candidate):
//   z = f(Wz x + Rz h + b), r = f(Wr x + Rr h + b),
//   n = g(Wh x + Rh (r * h) + Rbh + Wbh), or g(Wh x + r * (Rh h + Rbh) + Wbh) with linear_before_reset,
//   h' = (1 - z) * n + z * h.
// f is sigmoid and g tanh unless `activations` says otherwise. Layouts, directions and lengths: recurrent.h.
#include "autograph/op_def.h"
#include "autograph/ops/recurrent.h"
#include "ops/defs.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Gate : int64_t { kUpdate, kReset, kCandidate };

const RecurrentKind& kind() {
  static const RecurrentKind kind{3, false, {"Sigmoid", "Tanh"}};
  return kind;
}

void infer(InferContext& context) { infer_recurrent(context, kind()); }

void step(const RecurrentDirection& d, bool linear_before_reset, const double* x, std::vector<double>& h) {
  const auto hidden = static_cast<size_t>(d.hidden);
  std::vector<double> update(hidden), reset(hidden), reset_h(hidden), next(hidden);
  for (size_t j = 0; j < hidden; ++j) {
    const auto row = static_cast<int64_t>(j);
    update[j] = d.activate(0, d.sum(kUpdate, row, x, h.data()));
    reset[j] = d.activate(0, d.sum(kReset, row, x, h.data()));
    reset_h[j] = reset[j] * h[j];
  }
  for (size_t j = 0; j < hidden; ++j) {
    const auto row = static_cast<int64_t>(j);
    const double bias = d.hidden_bias(kCandidate, row);
    const double memory = linear_before_reset ? reset[j] * (d.from_hidden(kCandidate, row, h.data()) + bias)
                                              : d.from_hidden(kCandidate, row, reset_h.data()) + bias;
    const double candidate = d.activate(1, d.from_input(kCandidate, row, x) + memory);
    next[j] = (1 - update[j]) * candidate + update[j] * h[j];
  }
  h = std::move(next);
}

void reference(const OpCall& call) {
  const bool linear = call.attributes.flag("linear_before_reset");
  run_recurrent(call, kind(),
                [linear](const RecurrentDirection& d, const double* x, std::vector<double>& h, std::vector<double>&) {
                  step(d, linear, x, h);
                });
}

OpSample sample(Random& random) {
  OpSample result = sample_recurrent(random, kind());
  result.attributes.set("linear_before_reset", draw(random, 0, 1));
  return result;
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> list = recurrent_attributes();
  list.push_back({"linear_before_reset", AttributeType::integer, "1: apply the reset gate after R.", int64_t{0}});
  return list;
}

std::vector<Var> decompose(DecomposeContext& context) {
  return recurrent_body(context, kind(), [](const Attributes& attributes, RecurrentPosition& cell) {
    const Var from_hidden = cell.from_hidden(cell.h);
    const auto sum = [&](Gate which) {
      return cell.gate(cell.from_input, which, 1) + cell.gate(from_hidden, which, 1);
    };
    const Var update = cell.activate(0, sum(kUpdate)), reset = cell.activate(0, sum(kReset));
    const Var memory = attributes.flag("linear_before_reset")
                           ? reset * cell.gate(from_hidden, kCandidate, 1)
                           : cell.gate(cell.from_hidden(reset * cell.h), kCandidate, 1);
    const Var candidate = cell.activate(1, cell.gate(cell.from_input, kCandidate, 1) + memory);
    cell.h = (1 - update) * candidate + update * cell.h;
  });
}

}  // namespace

std::vector<Var> gru(Var x, Var w, Var r, Var b, const std::string& direction) {
  return apply_all(gru_def(), {x, w, r, b}, {{"direction", direction}}, 2);
}

const OpDef& gru_def() {
  static const OpDef def{
      .name = "gru",
      .doc = "Gated recurrent unit: h = (1 - z) * n + z * h, position by position.",
      .inputs = {{"x", "T", "[length, batch, input], or batch first with layout 1."},
                 {"w", "T", "[directions, 3 * hidden, input], gates z, r, h."},
                 {"r", "T", "[directions, 3 * hidden, hidden]."},
                 {"b", "T", "[directions, 6 * hidden]: biases of w, then of r.", Arity::optional},
                 {"sequence_lens", "I", "[batch], length of each sequence.", Arity::optional},
                 {"initial_h", "T", "[directions, batch, hidden], or batch first.", Arity::optional}},
      .outputs = {{"y", "T", "[length, directions, batch, hidden], or [batch, length, ...].", Arity::optional},
                  {"y_h", "T", "The last h, shape of initial_h.", Arity::optional}},
      .types = {{"T", dtypes::kFloat}, {"I", DTypeSet{DType::i32}}},
      .attributes = attributes(),
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = recurrent_cost,
      .onnx = {{.name = "GRU", .since = 7, .export_since = 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
