// Piecewise activation functions with parameters: elu, selu, celu, leaky_relu, thresholded_relu, hard_sigmoid. NaN
// propagates, except that thresholded_relu gives 0 for it, as the comparison with alpha is false.

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"

namespace autograph {
namespace {

OpSample sample_elu(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"alpha", static_cast<float>(draw(random, 1, 20)) / 10}};
  return call;
}

OpSample sample_selu(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"alpha", static_cast<float>(draw(random, 1, 20)) / 10},
                     {"gamma", static_cast<float>(draw(random, 1, 20)) / 10}};
  return call;
}

OpSample sample_celu(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"alpha", static_cast<float>(draw(random, 1, 20)) / 10}};
  return call;
}

OpSample sample_leaky_relu(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"alpha", static_cast<float>(draw(random, 0, 10)) / 10}};
  return call;
}

OpSample sample_thresholded_relu(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"alpha", static_cast<float>(draw(random, -10, 10)) / 10}};
  return call;
}

OpSample sample_hard_sigmoid(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"alpha", static_cast<float>(draw(random, 1, 10)) / 10},
                     {"beta", static_cast<float>(draw(random, 0, 10)) / 10}};
  return call;
}

// Where x is above 0 the gradient times `above`, elsewhere times `below`: at 0 the slope is that of the left branch.
void set_by_sign(VjpContext& c, const Var& above, const Var& below) {
  const Var x = c.in(0);
  c.set(0, c.gy(0) * where(greater(x, scalar_like(x, 0)), above, below));
}

// Of exponential branches the slope is told by the output, which stays finite where x is large.
void elu_vjp(VjpContext& c) {
  const Var y = c.out(0);
  set_by_sign(c, scalar_like(y, 1), y + c.attributes().real("alpha"));
}

void selu_vjp(VjpContext& c) {
  const Var y = c.out(0);
  const double gamma = c.attributes().real("gamma");
  set_by_sign(c, scalar_like(y, gamma), y + gamma * c.attributes().real("alpha"));
}

void celu_vjp(VjpContext& c) {
  const Var y = c.out(0);
  set_by_sign(c, scalar_like(y, 1), y / double{c.attributes().real("alpha")} + 1);
}

void leaky_relu_vjp(VjpContext& c) {
  const Var x = c.in(0);
  set_by_sign(c, scalar_like(x, 1), scalar_like(x, c.attributes().real("alpha")));
}

void thresholded_relu_vjp(VjpContext& c) {
  const Var x = c.in(0);
  c.set(0, where(greater(x, scalar_like(x, c.attributes().real("alpha"))), c.gy(0), scalar_like(x, 0)));
}

// Flat at both ends.
void hard_sigmoid_vjp(VjpContext& c) {
  const Var y = c.out(0);
  const Var inside = logical_and(greater(y, scalar_like(y, 0)), less(y, scalar_like(y, 1)));
  c.set(0, where(inside, c.gy(0) * c.attributes().real("alpha"), scalar_like(y, 0)));
}

}  // namespace

Var elu(Var x, float alpha) { return apply(elu_def(), {x}, {{"alpha", alpha}}); }
Var selu(Var x, float alpha, float gamma) { return apply(selu_def(), {x}, {{"alpha", alpha}, {"gamma", gamma}}); }
Var celu(Var x, float alpha) { return apply(celu_def(), {x}, {{"alpha", alpha}}); }
Var leaky_relu(Var x, float alpha) { return apply(leaky_relu_def(), {x}, {{"alpha", alpha}}); }
Var thresholded_relu(Var x, float alpha) { return apply(thresholded_relu_def(), {x}, {{"alpha", alpha}}); }
Var hard_sigmoid(Var x, float alpha, float beta) {
  return apply(hard_sigmoid_def(), {x}, {{"alpha", alpha}, {"beta", beta}});
}

const OpDef& elu_def() {
  static const OpDef def =
      make_unary({.name = "elu",
                  .doc = "y = x < 0 ? alpha * (exp(x) - 1) : x.",
                  .onnx = "Elu",
                  .types = dtypes::kFloat,
                  .scalar = formulas::kLoops<formulas::Elu, FloatTypes>,
                  .attributes = {{"alpha", AttributeType::real, "Factor of the negative branch.", 1.0F}},
                  .vjp = elu_vjp,
                  .sample = sample_elu});
  return def;
}

const OpDef& selu_def() {
  static const OpDef def = make_unary(
      {.name = "selu",
       .doc = "y = gamma * (x <= 0 ? alpha * (exp(x) - 1) : x).",
       .onnx = "Selu",
       .types = dtypes::kFloat,
       .scalar = formulas::kLoops<formulas::Selu, FloatTypes>,
       .attributes = {{"alpha", AttributeType::real, "Factor of the negative branch.", 1.67326319217681884765625F},
                      {"gamma", AttributeType::real, "Factor of both branches.", 1.05070102214813232421875F}},
       .vjp = selu_vjp,
       .sample = sample_selu});
  return def;
}

const OpDef& celu_def() {
  static const OpDef def =
      make_unary({.name = "celu",
                  .doc = "y = max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).",
                  .onnx = "Celu",
                  .since = 12,
                  .types = dtypes::kFloat,
                  .scalar = formulas::kLoops<formulas::Celu, FloatTypes>,
                  .attributes = {{"alpha", AttributeType::real, "Scale of the negative branch; not 0.", 1.0F}},
                  .vjp = celu_vjp,
                  .sample = sample_celu});
  return def;
}

const OpDef& leaky_relu_def() {
  static const OpDef def =
      make_unary({.name = "leaky_relu",
                  .doc = "y = x < 0 ? alpha * x : x.",
                  .onnx = "LeakyRelu",
                  .types = dtypes::kFloat,
                  .scalar = formulas::kLoops<formulas::LeakyRelu, FloatTypes>,
                  .attributes = {{"alpha", AttributeType::real, "Slope of the negative branch.", 0.01F}},
                  .vjp = leaky_relu_vjp,
                  .sample = sample_leaky_relu});
  return def;
}

const OpDef& thresholded_relu_def() {
  static const OpDef def = make_unary({.name = "thresholded_relu",
                                       .doc = "y = x > alpha ? x : 0.",
                                       .onnx = "ThresholdedRelu",
                                       .since = 10,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::ThresholdedRelu, FloatTypes>,
                                       .attributes = {{"alpha", AttributeType::real, "The threshold.", 1.0F}},
                                       .vjp = thresholded_relu_vjp,
                                       .sample = sample_thresholded_relu});
  return def;
}

const OpDef& hard_sigmoid_def() {
  static const OpDef def = make_unary(
      {.name = "hard_sigmoid",
       .doc = "y = max(0, min(1, alpha * x + beta)).",
       .onnx = "HardSigmoid",
       .types = dtypes::kFloat,
       .scalar = formulas::kLoops<formulas::HardSigmoid, FloatTypes>,
       .attributes = {{"alpha", AttributeType::real, "Slope.", 0.2F}, {"beta", AttributeType::real, "Offset.", 0.5F}},
       .vjp = hard_sigmoid_vjp,
       .sample = sample_hard_sigmoid});
  return def;
}

}  // namespace autograph
