// rnn_gates_grad: what flows into the sums of a plain recurrent layer of one direction, position by position from the
// last one to the first. With y = tanh(W x + R h + b) and gh what flows into y:
//
//   gsums = gh (1 - y^2)   before it gh = gy + gsums R
//
// The products with x and h, which make up most of the gradient, stay outside, for all positions at once.
#include "autograph/op_def.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "graph/moved_bytes.h"
#include "ops/defs.h"
#include "ops/real_values.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/recurrent_body.h"
#include "ops/sample.h"

namespace autograph {
namespace {

enum Slot : size_t { kY, kR, kFlow };

void infer(InferContext& context) {
  for (const size_t slot : {kY, kFlow}) context.require_rank(slot, 3);
  context.require_rank(kR, 2);
  const Shape &y = context.shape(kY), &r = context.shape(kR);
  const Dim length = y.has_rank() ? y[0] : Dim::unknown(), batch = y.has_rank() ? y[1] : Dim::unknown();
  const Dim hidden = r.has_rank() ? r[1] : Dim::unknown();
  require_dims(context, kY, {length, batch, hidden}, "y");
  require_dims(context, kR, {hidden, hidden}, "r");
  require_dims(context, kFlow, {length, batch, hidden}, "gy");
  context.set_output(0, context.dtype(0), Shape{length, batch, hidden});
  context.set_output(1, context.dtype(0), Shape{batch, hidden});
}

void reference(const OpCall& call) {
  const int64_t length = call.input(kY).dim(0), batch = call.input(kY).dim(1), hidden = call.input(kY).dim(2);
  const std::vector<double> y = real_values(call.input(kY)), r = real_values(call.input(kR)),
                            gy = real_values(call.input(kFlow));
  std::vector<double> sums(y.size()), first(static_cast<size_t>(batch * hidden), 0.0);
  for (int64_t b = 0; b < batch; ++b) {
    double* const gh = first.data() + b * hidden;
    for (int64_t step = length; step-- > 0;) {
      const int64_t at = ((call.attributes.flag("reverse") ? length - 1 - step : step) * batch + b) * hidden;
      for (int64_t j = 0; j < hidden; ++j) {
        const auto k = static_cast<size_t>(at + j);
        sums[k] = (gh[j] + gy[k]) * (1 - y[k] * y[k]);
      }
      std::fill_n(gh, hidden, 0.0);
      for (int64_t k = 0; k < hidden; ++k) {
        for (int64_t j = 0; j < hidden; ++j) {
          gh[j] += sums[static_cast<size_t>(at + k)] * r[static_cast<size_t>(k * hidden + j)];
        }
      }
    }
  }
  store_reals(sums, call.output(0));
  if (call.has_output(1)) store_reals(first, call.output(1));
}

std::vector<Var> decompose(DecomposeContext& context) {
  const Var &y = context.inputs[kY], &r = context.inputs[kR], &gy = context.inputs[kFlow];
  const Var none = squeeze(slice(y, {0}, {1}, {0}), {0}) * 0;
  Graph body("gradients");
  const auto input = [&](const Type& type) { return Var(body, body.add_input(type)); };
  const Var gh = input(none.type()), h = input(type_of_position(y)), flow = input(type_of_position(gy));
  const Var weights = input(r.type());
  const Var sums = (gh + flow) * (1 - h * h);
  body.add_output(matmul(sums, weights).id());
  body.add_output(sums.id());
  const int64_t direction = 1 - context.attributes.integer("reverse");
  const std::vector<Var> outputs = scan({none}, {y, gy}, body, {r},
                                        {{"scan_input_directions", std::vector<int64_t>(2, direction)},
                                         {"scan_output_directions", std::vector<int64_t>{direction}}});
  return {outputs[1], outputs[0]};
}

OpCost cost(const CostContext& context) {
  constexpr double kOpsPerElement = 4;
  const auto elements = static_cast<double>(*context.inputs[kY].shape().num_elements());
  const auto hidden = static_cast<double>(context.inputs[kR].shape().static_dims()[1]);
  return {.flops = elements * (2 * hidden + kOpsPerElement), .bytes = moved_bytes(context)};
}

OpSample sample(Random& random) {
  const int64_t length = draw(random, 1, 3), batch = draw(random, 1, 3), hidden = draw(random, 1, 3);
  const Dims states{length, batch, hidden};
  return {.inputs = {draw_tensor(random, DType::f32, states), draw_tensor(random, DType::f32, {hidden, hidden}),
                     draw_tensor(random, DType::f32, states)},
          .attributes = {{"reverse", draw(random, 0, 1)}},
          .num_outputs = 2};
}

}  // namespace

std::vector<Var> rnn_gates_grad(Var y, Var r, Var gy, bool reverse) {
  return apply_all(rnn_gates_grad_def(), {y, r, gy}, {{"reverse", int64_t{reverse ? 1 : 0}}}, 2);
}

const OpDef& rnn_gates_grad_def() {
  static const OpDef def{
      .name = "rnn_gates_grad",
      .doc = "What flows into the sums of a plain recurrent layer, from the last position to the first.",
      .inputs = {{"y", "T", "[length, batch, hidden]: each h."},
                 {"r", "T", "[hidden, hidden]."},
                 {"gy", "T", "[length, batch, hidden]: what flows into each h."}},
      .outputs = {{"gsums", "T", "Shape of y: what flows into W x + R h + b."},
                  {"gh0", "T", "[batch, hidden]: what flows into the first h."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"reverse", AttributeType::integer, "1: the layer goes from the last position to the first.",
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
