// gru_gates_grad: what flows into the gates of a GRU layer of one direction, position by position from the last one to
// the first. `gates` are z, r and n of all positions, and with linear_before_reset m, what r is multiplied with;
// `before` is h before each position. With h' = (1 - z) * n + z * h and gh what flows into h':
//
//   gz = gh * (h - n) z (1 - z)   gn = gh * (1 - z) (1 - n^2)
//   linear:  gr = gn * m r (1 - r)   before it gh = gy + gh * z + [gz, gr, gn * r] R
//   else:    q = gn Rn   gr = q * h r (1 - r)   before it gh = gy + gh * z + q * r + [gz, gr] [Rz, Rr]
//
// The products with x and h, which make up most of the gradient, stay outside, for all positions at once.
#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/real_values.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Slot : size_t { kGates, kR, kBefore, kFlow };
constexpr int64_t kRows = 3;  // of R for each hidden element: z, r, n

bool is_linear_flow(const Attributes& attributes) { return attributes.flag("linear_before_reset"); }

void infer(InferContext& context) {
  for (const size_t slot : {kGates, kBefore, kFlow}) context.require_rank(slot, 3);
  context.require_rank(kR, 2);
  const Shape &gates = context.shape(kGates), &r = context.shape(kR);
  const Dim length = gates.has_rank() ? gates[0] : Dim::unknown(), batch = gates.has_rank() ? gates[1] : Dim::unknown();
  const Dim hidden = r.has_rank() ? r[1] : Dim::unknown();
  const int64_t kept = kRows + (is_linear_flow(context.attributes()) ? 1 : 0);
  require_dims(context, kGates, {length, batch, gate_rows(kept, hidden)}, "gates");
  require_dims(context, kR, {gate_rows(kRows, hidden), hidden}, "r");
  require_dims(context, kBefore, {length, batch, hidden}, "before");
  require_dims(context, kFlow, {length, batch, hidden}, "gy");
  const Shape rows{length, batch, gate_rows(kRows, hidden)};
  context.set_output(0, context.dtype(0), rows);
  context.set_output(1, context.dtype(0), rows);
  context.set_output(2, context.dtype(0), Shape{batch, hidden});
}

// One sequence: everything in f64, element by element.
class GruSequence {
 public:
  GruSequence(bool linear, int64_t hidden, const std::vector<double>& r) : linear_(linear), hidden_(hidden), r_(r) {}

  // One position. gh, what flows into its h, becomes what flows into the h before it.
  void back(const double* gates, const double* before, std::vector<double>& gh, double* into_input,
            double* into_hidden) const {
    const double *z = gates, *r = z + hidden_, *n = r + hidden_, *m = n + hidden_;
    double *gz = into_input, *gr = gz + hidden_, *gn = gr + hidden_;
    std::vector<double> carry(gh.size());
    for (int64_t j = 0; j < hidden_; ++j) {
      const double flow = gh[index(j)];
      gz[j] = flow * (before[j] - n[j]) * z[j] * (1 - z[j]);
      gn[j] = flow * (1 - z[j]) * (1 - n[j] * n[j]);
      carry[index(j)] = flow * z[j];
    }
    for (int64_t j = 0; j < hidden_; ++j) {
      const double q = linear_ ? 0 : through(2, 3, into_input, j);
      gr[j] = (linear_ ? gn[j] * m[j] : q * before[j]) * r[j] * (1 - r[j]);
      carry[index(j)] += q * r[j];
    }
    std::copy_n(into_input, kRows * hidden_, into_hidden);
    for (int64_t j = 0; linear_ && j < hidden_; ++j) into_hidden[2 * hidden_ + j] *= r[j];
    for (int64_t j = 0; j < hidden_; ++j) gh[index(j)] = carry[index(j)] + through(0, linear_ ? 3 : 2, into_hidden, j);
  }

 private:
  static size_t index(int64_t i) { return static_cast<size_t>(i); }

  // Element j of gates [first, end) times their rows of R.
  double through(int64_t first, int64_t end, const double* gates, int64_t j) const {
    double sum = 0;
    for (int64_t k = first * hidden_; k < end * hidden_; ++k) sum += gates[k] * r_[index(k * hidden_ + j)];
    return sum;
  }

  bool linear_;
  int64_t hidden_;
  const std::vector<double>& r_;
};

void reference(const OpCall& call) {
  const int64_t length = call.input(kGates).dim(0), batch = call.input(kGates).dim(1), kept = call.input(kGates).dim(2);
  const int64_t hidden = call.input(kR).dim(1), rows = kRows * hidden;
  const std::vector<double> gates = real_values(call.input(kGates)), r = real_values(call.input(kR)),
                            before = real_values(call.input(kBefore)), gy = real_values(call.input(kFlow));
  std::vector<double> into_input(static_cast<size_t>(length * batch * rows)), into_hidden(into_input.size()), first;
  const GruSequence sequence(is_linear_flow(call.attributes), hidden, r);
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<double> gh(static_cast<size_t>(hidden), 0.0);
    for (int64_t step = length; step-- > 0;) {
      const int64_t at = (call.attributes.flag("reverse") ? length - 1 - step : step) * batch + b;
      for (int64_t j = 0; j < hidden; ++j) gh[static_cast<size_t>(j)] += gy[static_cast<size_t>(at * hidden + j)];
      sequence.back(gates.data() + at * kept, before.data() + at * hidden, gh, into_input.data() + at * rows,
                    into_hidden.data() + at * rows);
    }
    first.insert(first.end(), gh.begin(), gh.end());
  }
  store_reals(into_input, call.output(0));
  if (call.has_output(1)) store_reals(into_hidden, call.output(1));
  if (call.has_output(2)) store_reals(first, call.output(2));
}

Graph body_of(const DecomposeContext& context, int64_t hidden, const Type& state) {
  Graph body("gradients");
  const auto input = [&](const Type& type) { return Var(body, body.add_input(type)); };
  const Var gh = input(state), gates = input(type_of_position(context.inputs[kGates]));
  const Var h = input(type_of_position(context.inputs[kBefore])), gy = input(type_of_position(context.inputs[kFlow]));
  const Var weights = input(context.inputs[kR].type());
  const auto piece = [&](const Var& x, int64_t first, int64_t end, int64_t axis) {
    return slice(x, {first * hidden}, {end * hidden}, {axis});
  };
  const Var z = piece(gates, 0, 1, 1), r = piece(gates, 1, 2, 1), n = piece(gates, 2, 3, 1), flow = gh + gy;
  const Var gz = flow * (h - n) * z * (1 - z), gn = flow * (1 - z) * (1 - n * n);
  Var gr, into_hidden, state_before;
  if (is_linear_flow(context.attributes)) {
    gr = gn * piece(gates, 3, 4, 1) * r * (1 - r);
    into_hidden = concat({gz, gr, gn * r}, 1);
    state_before = flow * z + matmul(into_hidden, weights);
  } else {
    const Var q = matmul(gn, piece(weights, 2, 3, 0));
    gr = q * h * r * (1 - r);
    into_hidden = concat({gz, gr, gn}, 1);
    state_before = flow * z + q * r + matmul(concat({gz, gr}, 1), piece(weights, 0, 2, 0));
  }
  body.add_output(state_before.id());
  body.add_output(concat({gz, gr, gn}, 1).id());
  body.add_output(into_hidden.id());
  return body;
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var &r = context.inputs[kR], &before = context.inputs[kBefore];
  AG_CHECK_USER(r.shape().has_rank() && r.shape()[1].is_known(), UnsupportedError,
                "[gru_gates_grad] r: expected known extents, got {}", to_string(r.shape()));
  const Var none = squeeze(slice(before, {0}, {1}, {0}), {0}) * 0;
  const int64_t direction = 1 - context.attributes.integer("reverse");
  std::vector<Var> outputs = scan({none}, {context.inputs[kGates], before, context.inputs[kFlow]},
                                  body_of(context, r.dim(1), none.type()), {r},
                                  {{"scan_input_directions", std::vector<int64_t>(3, direction)},
                                   {"scan_output_directions", std::vector<int64_t>(2, direction)}});
  return {outputs[1], outputs[2], outputs[0]};
}

OpCost cost(const CostContext& context) {
  constexpr double kOpsPerElement = 20;
  const auto elements = static_cast<double>(*context.inputs[kBefore].shape().num_elements());
  const auto hidden = static_cast<double>(context.inputs[kR].shape().static_dims()[1]);
  return {.flops = elements * (2 * kRows * hidden + kOpsPerElement), .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  const int64_t length = draw(random, 1, 3), batch = draw(random, 1, 3), hidden = draw(random, 1, 3);
  const int64_t linear = draw(random, 0, 1);
  const Dims states{length, batch, hidden};
  return {.inputs = {draw_tensor(random, DType::f32, {length, batch, (kRows + linear) * hidden}),
                     draw_tensor(random, DType::f32, {kRows * hidden, hidden}), draw_tensor(random, DType::f32, states),
                     draw_tensor(random, DType::f32, states)},
          .attributes = {{"linear_before_reset", linear}, {"reverse", draw(random, 0, 1)}},
          .num_outputs = 3};
}

}  // namespace

std::vector<Var> gru_gates_grad(Var gates, Var r, Var before, Var gy, bool linear_before_reset, bool reverse) {
  return apply_all(
      gru_gates_grad_def(), {gates, r, before, gy},
      {{"linear_before_reset", int64_t{linear_before_reset ? 1 : 0}}, {"reverse", int64_t{reverse ? 1 : 0}}}, 3);
}

const OpDef& gru_gates_grad_def() {
  static const OpDef def{
      .name = "gru_gates_grad",
      .doc = "What flows into the gates of a GRU layer, from the last position to the first.",
      .inputs = {{"gates", "T", "[length, batch, 3 * hidden]: z, r, n; with linear_before_reset [.., 4 * hidden]."},
                 {"r", "T", "[3 * hidden, hidden]."},
                 {"before", "T", "[length, batch, hidden]: h before each position."},
                 {"gy", "T", "[length, batch, hidden]: what flows into each h."}},
      .outputs = {{"into_input", "T", "[length, batch, 3 * hidden]: what flows into W x and its bias."},
                  {"into_hidden", "T", "The same for R and its bias."},
                  {"gh0", "T", "[batch, hidden]: what flows into the first h."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"linear_before_reset", AttributeType::integer, "1: the layer applies the reset gate after R.",
                      int64_t{0}},
                     {"reverse", AttributeType::integer, "1: the layer goes from the last position to the first.",
                      int64_t{0}}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = cost,
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
