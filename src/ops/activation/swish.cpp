// swish: y = x * sigmoid(alpha * x). swiglu: y = swish(a) * b for two tensors of the same shape.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"

namespace autograph {
namespace {

Var swish_in_base_ops(Var x, float alpha) {
  const Var scaled = alpha == 1.0F ? x : mul(x, scalar_like(x, alpha));
  return mul(x, sigmoid(scaled));
}

std::vector<Var> decompose_swish(DecomposeContext& context) {
  return {swish_in_base_ops(context.inputs[0], context.attributes.real("alpha"))};
}

std::vector<Var> decompose_swiglu(DecomposeContext& context) {
  return {mul(swish_in_base_ops(context.inputs[0], context.attributes.real("alpha")), context.inputs[1])};
}

void infer_swiglu(InferContext& context) {
  const Shape& a = context.shape(0);
  const Shape& b = context.shape(1);
  bool same = true;
  if (a.has_rank() && b.has_rank()) {
    same = a.rank() == b.rank();
    for (int64_t axis = 0; same && axis < a.rank(); ++axis) {
      same = !a[axis].is_known() || !b[axis].is_known() || a[axis] == b[axis];
    }
  }
  context.require<ShapeError>(same, "shapes", "expected equal ones, got " + to_string(a) + " and " + to_string(b));
  context.set_output(0, context.dtype(0), a.has_rank() ? a : b);
}

Attributes draw_alpha(Random& random) { return {{"alpha", static_cast<float>(draw(random, -20, 20)) / 10}}; }

OpSample sample_swish(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = draw_alpha(random);
  return call;
}

OpSample sample_swiglu(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::f32, dims), draw_tensor(random, DType::f32, dims)},
          .attributes = draw_alpha(random)};
}

// alpha x; where it could overflow, bounded by what leaves nothing of a sigmoid or of 1 - sigmoid in any dtype.
Var scaled_by(const Var& x, float alpha) {
  if (std::fabs(alpha) <= 1) return alpha == 1.0F ? x : x * alpha;
  return clip(x * alpha, scalar_like(x, -1000), scalar_like(x, 1000));
}

// d swish(x) / dx = s + alpha x s (1 - s) with s = sigmoid(alpha x).
Var swish_slope(const Var& x, float alpha) {
  const Var scaled = scaled_by(x, alpha);
  const Var s = sigmoid(scaled);
  return s * (1 + scaled * (1 - s));
}

void swish_vjp(VjpContext& c) { c.set(0, c.gy(0) * swish_slope(c.in(0), c.attributes().real("alpha"))); }

void swiglu_vjp(VjpContext& c) {
  const float alpha = c.attributes().real("alpha");
  if (c.wants(0)) c.set(0, c.gy(0) * c.in(1) * swish_slope(c.in(0), alpha));
  if (c.wants(1)) c.set(1, c.gy(0) * swish(c.in(0), alpha));
}

AttributeSpec alpha_spec() { return {"alpha", AttributeType::real, "Factor inside the sigmoid.", 1.0F}; }

}  // namespace

Var swish(Var x, float alpha) { return apply(swish_def(), {x}, {{"alpha", alpha}}); }
Var swiglu(Var a, Var b, float alpha) { return apply(swiglu_def(), {a, b}, {{"alpha", alpha}}); }

const OpDef& swish_def() {
  static const OpDef def = make_unary({.name = "swish",
                                       .doc = "y = x * sigmoid(alpha * x).",
                                       .onnx = "Swish",
                                       .since = 24,
                                       .types = dtypes::kFloat,
                                       .scalar = formulas::kLoops<formulas::Swish, FloatTypes>,
                                       .attributes = {alpha_spec()},
                                       .vjp = swish_vjp,
                                       .decompose = decompose_swish,
                                       .sample = sample_swish});
  return def;
}

const OpDef& swiglu_def() {
  static const OpDef def = [] {
    OpDef swiglu = make_binary({.name = "swiglu",
                                .doc = "y = a * sigmoid(alpha * a) * b.",
                                .onnx = "SwiGLU",
                                .since = 28,
                                .types = dtypes::kFloat,
                                .scalar = formulas::kLoops<formulas::Swiglu, FloatTypes>,
                                .attributes = {alpha_spec()},
                                .vjp = swiglu_vjp,
                                .decompose = decompose_swiglu,
                                .sample = sample_swiglu});
    swiglu.inputs = {{"a", "T", "The gate; any shape."}, {"b", "T", "The value; shape of a."}};
    swiglu.outputs = {{"y", "T", "Shape of a."}};
    swiglu.infer = infer_swiglu;
    return swiglu;
  }();
  return def;
}

}  // namespace autograph
