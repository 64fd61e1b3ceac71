// Arithmetic on numbers of one dtype, with broadcasting: add, sub, mul, div; and abs, neg, sign of one number.
//
// mul_no_nan is what gradients are multiplied with slopes by.
// Signed integers wrap (abs and neg of the lowest value give it back); integer division truncates towards zero and
// x / 0 is 0; sign of NaN is NaN.
#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_vjp.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// The sample keeps divisors away from zero, where results depend on rounding.
OpSample sample_div(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::f32, dims),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, dims), 0.5, 2.0)}};
}

// Some zeros, and what they are multiplied with.
OpSample sample_mul_no_nan(Random& random) {
  const Dims dims = draw_dims(random);
  const double bound = draw(random, 0, 2);
  return {.inputs = {draw_tensor(random, DType::f32, dims, -bound, bound),
                     draw_tensor(random, DType::f32, draw_broadcastable(random, dims))}};
}

bool is_nonzero_number(const Var& x) {
  const Tensor* elements = x.known();
  return elements && elements->num_elements() == 1 && elements->to_f64().front() != 0;
}

void div_vjp(VjpContext& c) {
  const bool is_safe = is_nonzero_number(c.in(1));
  if (c.wants(0)) {
    c.set(0, is_safe ? c.gy(0) / c.in(1) : times_slope(c.gy(0), reciprocal(c.in(1))));
  }
  if (c.wants(1)) c.set(1, times_slope(c.gy(0), -(c.out(0) / c.in(1))));
}

// Does a function that grows beyond all numbers stand among the few nodes that x is made of, element by element?
bool may_overflow(const Var& x) {
  if (x.is_eager()) return false;
  const std::array<const OpDef*, 7> steep{&exp_def(), &sinh_def(), &cosh_def(),      &pow_def(),
                                          &log_def(), &div_def(),  &reciprocal_def()};
  constexpr size_t kLookedAt = 16;
  const Graph& graph = x.graph();
  std::vector<ValueId> values{x.id()};
  for (size_t i = 0; i < values.size() && i < kLookedAt; ++i) {
    const NodeId producer = graph.value(values[i]).producer();
    if (!producer.is_valid() || !graph.node(producer).op().traits.elementwise) continue;
    const Node& node = graph.node(producer);
    if (std::find(steep.begin(), steep.end(), &node.op()) != steep.end()) return true;
    std::copy_if(node.inputs().begin(), node.inputs().end(), std::back_inserter(values),
                 [](ValueId input) { return input.is_valid(); });
  }
  return false;
}

// A factor that may be infinite must not make NaN of a gradient of 0; others are multiplied with as they are.
void mul_vjp(VjpContext& c) {
  for (const size_t slot : {size_t{0}, size_t{1}}) {
    if (!c.wants(slot)) continue;
    const Var other = c.in(1 - slot);
    c.set(slot, may_overflow(other) ? times_slope(c.gy(0), other) : c.gy(0) * other);
  }
}

// Linear in each operand: the factor that must not make NaN of a gradient of 0 is the other one.
void mul_no_nan_vjp(VjpContext& c) {
  if (c.wants(0)) c.set(0, mul_no_nan(c.gy(0), c.in(1)));
  if (c.wants(1)) c.set(1, mul_no_nan(c.gy(0), c.in(0)));
}

std::vector<Var> decompose_mul_no_nan(DecomposeContext& context) {
  const Var a = context.inputs[0];
  const Var product = mul(a, context.inputs[1]);
  return {where(equal(a, scalar_like(a, 0)), scalar_like(a, 0), product)};
}

}  // namespace

Var add(Var a, Var b) { return apply(add_def(), {a, b}); }
Var sub(Var a, Var b) { return apply(sub_def(), {a, b}); }
Var mul(Var a, Var b) { return apply(mul_def(), {a, b}); }
Var div(Var a, Var b) { return apply(div_def(), {a, b}); }
Var mul_no_nan(Var a, Var b) { return apply(mul_no_nan_def(), {a, b}); }
Var neg(Var x) { return apply(neg_def(), {x}); }
Var abs(Var x) { return apply(abs_def(), {x}); }
Var sign(Var x) { return apply(sign_def(), {x}); }

const OpDef& add_def() {
  static const OpDef def = make_binary({.name = "add",
                                        .doc = "c = a + b.",
                                        .onnx = "Add",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Add, NumericTypes>,
                                        .traits = {.commutative = true, .associative = true},
                                        .vjp = formula_vjp});
  return def;
}

const OpDef& sub_def() {
  static const OpDef def = make_binary({.name = "sub",
                                        .doc = "c = a - b.",
                                        .onnx = "Sub",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Sub, NumericTypes>,
                                        .vjp = formula_vjp});
  return def;
}

const OpDef& mul_def() {
  static const OpDef def = make_binary({.name = "mul",
                                        .doc = "c = a * b.",
                                        .onnx = "Mul",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Mul, NumericTypes>,
                                        .traits = {.commutative = true, .associative = true},
                                        .vjp = mul_vjp});
  return def;
}

const OpDef& div_def() {
  static const OpDef def = make_binary({.name = "div",
                                        .doc = "c = a / b; integers truncate towards zero and x / 0 is 0.",
                                        .onnx = "Div",
                                        .since = 7,
                                        .types = dtypes::kNumeric,
                                        .scalar = formulas::kLoops<formulas::Div, NumericTypes>,
                                        .vjp = div_vjp,
                                        .sample = sample_div});
  return def;
}

const OpDef& mul_no_nan_def() {
  static const OpDef def = make_binary({.name = "mul_no_nan",
                                        .doc = "c = a * b, and 0 wherever a is 0, also where b is infinite or NaN.",
                                        .onnx = "",
                                        .types = dtypes::kFloat,
                                        .scalar = formulas::kLoops<formulas::MulNoNan, FloatTypes>,
                                        .vjp = mul_no_nan_vjp,
                                        .decompose = decompose_mul_no_nan,
                                        .sample = sample_mul_no_nan});
  return def;
}

const OpDef& neg_def() {
  static const OpDef def = make_unary({.name = "neg",
                                       .doc = "y = -x.",
                                       .onnx = "Neg",
                                       .types = dtypes::kFloat | dtypes::kSigned,
                                       .scalar = formulas::kLoops<formulas::Neg, Concat<FloatTypes, SignedTypes>>,
                                       .vjp = formula_vjp});
  return def;
}

const OpDef& abs_def() {
  static const OpDef def = make_unary({.name = "abs",
                                       .doc = "y = |x|.",
                                       .onnx = "Abs",
                                       .types = dtypes::kNumeric,
                                       .scalar = formulas::kLoops<formulas::Abs, NumericTypes>,
                                       .vjp = [](VjpContext& c) { c.set(0, c.gy(0) * (sign(c.in(0)))); }});
  return def;
}

const OpDef& sign_def() {
  static const OpDef def = make_unary({.name = "sign",
                                       .doc = "y = -1, 0 or 1 as x is negative, zero or positive.",
                                       .onnx = "Sign",
                                       .since = 9,
                                       .types = dtypes::kNumeric,
                                       .scalar = formulas::kLoops<formulas::Sign, NumericTypes>,
                                       .no_grad = "piecewise constant"});
  return def;
}

}  // namespace autograph
