// gru: gated recurrent unit, gates in the order z (update), r (reset), h (candidate):
//   z = f(Wz x + Rz h + b), r = f(Wr x + Rr h + b),
//   n = g(Wh x + Rh (r * h) + Rbh + Wbh), or g(Wh x + r * (Rh h + Rbh) + Wbh) with linear_before_reset,
//   h' = (1 - z) * n + z * h.
// f is sigmoid and g tanh unless `activations` says otherwise. Layouts, directions and lengths: recurrent.h.
//
// The output `gates`, z, r, n and with linear_before_reset Rh h + Rbh, is for gradients. ONNX does not know it.
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/recurrent/recurrent_gradient.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Gate : int64_t { kUpdate, kReset, kCandidate };

constexpr size_t kGates = 2;  // the output

bool is_linear(const Attributes& attributes) { return attributes.flag("linear_before_reset"); }

void infer(InferContext& context) {
  infer_recurrent(context, gru_kind());
  const int64_t rows = gru_kind().gates + (is_linear(context.attributes()) ? 1 : 0);
  if (context.num_outputs() > kGates) infer_kept(context, kGates, rows, "gates");
}

// Appends the gates of the position to `gates` unless that is null.
void step(const RecurrentDirection& d, bool linear_before_reset, const double* x, std::vector<double>& h,
          std::vector<double>* gates) {
  const auto hidden = static_cast<size_t>(d.hidden);
  std::vector<double> update(hidden), reset(hidden), reset_h(hidden), memory(hidden), candidate(hidden), next(hidden);
  for (size_t j = 0; j < hidden; ++j) {
    const auto row = static_cast<int64_t>(j);
    update[j] = d.activate(0, d.sum(kUpdate, row, x, h.data()));
    reset[j] = d.activate(0, d.sum(kReset, row, x, h.data()));
    reset_h[j] = reset[j] * h[j];
  }
  for (size_t j = 0; j < hidden; ++j) {
    const auto row = static_cast<int64_t>(j);
    const double bias = d.hidden_bias(kCandidate, row);
    memory[j] = d.from_hidden(kCandidate, row, linear_before_reset ? h.data() : reset_h.data()) + bias;
    const double remembered = linear_before_reset ? reset[j] * memory[j] : memory[j];
    candidate[j] = d.activate(1, d.from_input(kCandidate, row, x) + remembered);
    next[j] = (1 - update[j]) * candidate[j] + update[j] * h[j];
  }
  h = std::move(next);
  if (!gates) return;
  for (const std::vector<double>* part : {&update, &reset, &candidate}) {
    gates->insert(gates->end(), part->begin(), part->end());
  }
  if (linear_before_reset) gates->insert(gates->end(), memory.begin(), memory.end());
}

void reference(const OpCall& call) {
  const bool linear = is_linear(call.attributes);
  std::vector<double> gates;
  std::vector<double>* const kept = call.has_output(kGates) ? &gates : nullptr;
  run_recurrent(call, gru_kind(),
                [&](const RecurrentDirection& d, const double* x, std::vector<double>& h, std::vector<double>&) {
                  step(d, linear, x, h, kept);
                });
  if (kept) store_kept(call, kGates, gates);
}

OpSample sample(Random& random) {
  OpSample result = sample_recurrent(random, gru_kind());
  result.attributes.set("linear_before_reset", draw(random, 0, 1));
  sample_kept(random, kGates, result);
  return result;
}

std::vector<AttributeSpec> attributes() {
  std::vector<AttributeSpec> list = recurrent_attributes();
  list.push_back({"linear_before_reset", AttributeType::integer, "1: apply the reset gate after R.", int64_t{0}});
  return list;
}

std::vector<Var> decompose(DecomposeContext& context) {
  return recurrent_body(context, gru_kind(), [](const Attributes& attributes, RecurrentPosition& cell) {
    const Var from_hidden = cell.from_hidden(cell.h);
    const auto sum = [&](Gate which) {
      return cell.gate(cell.from_input, which, 1) + cell.gate(from_hidden, which, 1);
    };
    const Var update = cell.activate(0, sum(kUpdate)), reset = cell.activate(0, sum(kReset));
    const bool linear = is_linear(attributes);
    const Var memory = cell.gate(linear ? from_hidden : cell.from_hidden(reset * cell.h), kCandidate, 1);
    const Var from_input = cell.gate(cell.from_input, kCandidate, 1);
    const Var candidate = cell.activate(1, from_input + (linear ? reset * memory : memory));
    cell.kept =
        concat(linear ? std::vector{update, reset, candidate, memory} : std::vector{update, reset, candidate}, 1);
    cell.h = (1 - update) * candidate + update * cell.h;
  });
}

// ---- Gradient ------------------------------------------------------------------------------------------------------

// Where the reset gate comes before R, the candidate's rows of R see r * h.
Var gradient_of_r(const Var& into_sums, const Var& gates, const DirectionFlow& direction) {
  const int64_t hidden = direction.r.dim(1);
  const auto piece = [&](const Var& x, int64_t first, int64_t end) {
    return slice(x, {first * hidden}, {end * hidden}, {2});
  };
  const Var reset_h = piece(gates, kReset, kReset + 1) * direction.before;
  return concat({product_of_rows(piece(into_sums, 0, kCandidate), direction.before),
                 product_of_rows(piece(into_sums, kCandidate, kCandidate + 1), reset_h)},
                0);
}

GatesFlow gates_flow(VjpContext& c, const Var& all_gates, const DirectionFlow& direction) {
  const Var gates = of_direction(all_gates, direction.number, 0);
  const bool linear = is_linear(c.attributes());
  const std::vector<Var> flow =
      gru_gates_grad(gates, direction.r, direction.before, direction.into_states, linear, direction.reverse);
  if (linear) return {.into_input = flow[0], .into_hidden = flow[1], .of_r = {}, .into_first = {flow[2]}};
  return {.into_input = flow[0],
          .into_hidden = {},
          .of_r = gradient_of_r(flow[0], gates, direction),
          .into_first = {flow[2]}};
}

void vjp(VjpContext& c) {
  require_usual_layer(c, gru_kind());
  if (c.has_gy(kGates)) c.unsupported("its rule needs gates that nothing flows into");
  const std::vector<Var> outputs = first_outputs(c, kGates + 1);
  recurrent_vjp(c, outputs, [&](const DirectionFlow& direction) { return gates_flow(c, outputs[kGates], direction); });
}

}  // namespace

const RecurrentKind& gru_kind() {
  static const RecurrentKind kind{3, false, {"Sigmoid", "Tanh"}};
  return kind;
}

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
                  {"y_h", "T", "The last h, shape of initial_h.", Arity::optional},
                  {"gates", "T",
                   "[directions, length, batch, 3 * hidden]: z, r, n of all positions; with linear_before_reset "
                   "[.., 4 * hidden], R h + b of the candidate behind them.",
                   Arity::internal}},
      .types = {{"T", dtypes::kFloat}, {"I", DTypeSet{DType::i32}}},
      .attributes = attributes(),
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .vjp = vjp,
      .cost = recurrent_cost,
      .onnx = {{.name = "GRU", .since = 7, .export_since = 14}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
