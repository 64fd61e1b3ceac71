// rnn: h_t = f(W x_t + R h_{t-1} + Wb + Rb), the plain recurrent layer; f is tanh unless `activations` says otherwise.
// Layouts, directions and sequence lengths: recurrent.h.
#include "autograph/op_def.h"
#include "autograph/ops/recurrent.h"
#include "ops/defs.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/recurrent/recurrent_gradient.h"

namespace autograph {
namespace {

void infer(InferContext& context) { infer_recurrent(context, rnn_kind()); }

void step(const RecurrentDirection& d, const double* x, std::vector<double>& h, std::vector<double>&) {
  std::vector<double> next(h.size());
  for (int64_t j = 0; j < d.hidden; ++j) next[static_cast<size_t>(j)] = d.activate(0, d.sum(0, j, x, h.data()));
  h = std::move(next);
}

void reference(const OpCall& call) { run_recurrent(call, rnn_kind(), step); }

OpSample sample(Random& random) { return sample_recurrent(random, rnn_kind()); }

std::vector<Var> decompose(DecomposeContext& context) {
  return recurrent_body(context, rnn_kind(), [](const Attributes&, RecurrentPosition& cell) {
    cell.h = cell.activate(0, cell.from_input + cell.from_hidden(cell.h));
  });
}

void vjp(VjpContext& c) {
  require_usual_layer(c, rnn_kind());
  const std::vector<Var> outputs = first_outputs(c, 2);
  recurrent_vjp(c, outputs, [](const DirectionFlow& direction) -> GatesFlow {
    const std::vector<Var> flow = rnn_gates_grad(direction.y, direction.r, direction.into_states, direction.reverse);
    return {.into_input = flow[0], .into_hidden = {}, .of_r = {}, .into_first = {flow[1]}};
  });
}

}  // namespace

const RecurrentKind& rnn_kind() {
  static const RecurrentKind kind{1, false, {"Tanh"}};
  return kind;
}

std::vector<Var> rnn(Var x, Var w, Var r, Var b, const std::string& direction) {
  return apply_all(rnn_def(), {x, w, r, b}, {{"direction", direction}}, 2);
}

const OpDef& rnn_def() {
  static const OpDef def{
      .name = "rnn",
      .doc = "Recurrent layer: h = f(W x + R h + b), position by position.",
      .inputs = {{"x", "T", "[length, batch, input], or batch first with layout 1."},
                 {"w", "T", "[directions, hidden, input]."},
                 {"r", "T", "[directions, hidden, hidden]."},
                 {"b", "T", "[directions, 2 * hidden]: biases of w, then of r.", Arity::optional},
                 {"sequence_lens", "I", "[batch], length of each sequence.", Arity::optional},
                 {"initial_h", "T", "[directions, batch, hidden], or batch first.", Arity::optional}},
      .outputs = {{"y", "T", "[length, directions, batch, hidden], or [batch, length, ...].", Arity::optional},
                  {"y_h", "T", "The last h, shape of initial_h.", Arity::optional}},
      .types = {{"T", dtypes::kFloat}, {"I", DTypeSet{DType::i32}}},
      .attributes = recurrent_attributes(),
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .vjp = vjp,
      .cost = recurrent_cost,
      .onnx = {{.name = "RNN", .since = 7, .export_since = 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
