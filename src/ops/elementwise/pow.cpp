// pow: c = a ^ b in the dtype of a; b may have any numeric dtype.
//
// Integer powers of integers wrap; a negative exponent gives the truncated quotient 1 / a^|b| (0 for |a| > 1, and 0 for
// a = 0, as division by zero does). An integer to a real power is computed in f64, truncated and saturated.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/number.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/gradients.h"
#include "ops/sample.h"

namespace autograph {
namespace {

using BaseTypes = Concat<FloatTypes, IndexTypes>;

// Square and multiply; exact modulo 2^bits.
template <class T>
T power_of_integer(T base, uint64_t exponent) {
  T result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = wrapping_mul(result, base);
    base = wrapping_mul(base, base);
  }
  return result;
}

template <class T>
T inverse_power_of_integer(T base, bool odd) {
  if (base == T(1)) return 1;
  if (base == T(-1)) return odd ? T(-1) : T(1);
  return 0;
}

template <class A, class B>
A power(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>) {
    if constexpr (std::is_signed_v<B>) {
      if (b < 0) return inverse_power_of_integer(a, (b & 1) != 0);
    }
    return power_of_integer(a, static_cast<uint64_t>(b));
  } else {
    return from_double<A>(std::pow(static_cast<double>(a), static_cast<double>(b)));
  }
}

template <class A, class B>
void pow_loop_of(const Attributes&, std::span<const void* const> inputs, std::span<const int64_t> steps, void* output,
                 int64_t count) {
  const A* a = static_cast<const A*>(inputs[0]);
  const B* b = static_cast<const B*>(inputs[1]);
  A* out = static_cast<A*>(output);
  for (int64_t i = 0; i < count; ++i) {
    out[i] = A(power(static_cast<ComputeType<A>>(a[i * steps[0]]), static_cast<ComputeType<B>>(b[i * steps[1]])));
  }
}

ScalarLoop pow_loop(std::span<const DType> inputs, DType) {
  ScalarLoop loop = nullptr;
  try_dispatch(BaseTypes{}, inputs[0], [&]<class A>(TypeTag<A>) {
    try_dispatch(NumericTypes{}, inputs[1], [&]<class B>(TypeTag<B>) { loop = pow_loop_of<A, B>; });
  });
  return loop;
}

OpSample sample(Random& random) {
  const Dims dims = draw_dims(random);
  return {.inputs = {draw_tensor(random, DType::f32, dims, 0.5, 2.0),
                     draw_tensor(random, draw_one_of(random, {DType::f32, DType::i32, DType::i64}),
                                 draw_broadcastable(random, dims))}};
}

// The one number that the exponent is, if it is known.
std::optional<double> known_exponent(const Var& b) {
  const Tensor* elements = b.known();
  if (!elements || elements->num_elements() != 1) return std::nullopt;
  return elements->to_f64().front();
}

// Where only the slope in a is asked for, b is a number; otherwise the slope must depend on b, for its own gradient.
Var base_slope(const Var& a, const Var& b, bool is_number) {
  if (const auto exponent = known_exponent(b); is_number && exponent) {
    if (*exponent == 0) return filled_like(a, 0);
    if (*exponent == 1) return filled_like(a, 1);
    if (*exponent == 2) return 2 * a;
  }
  const Var power = cast(b, a.dtype());
  return where(equal(power, scalar_like(a, 0)), scalar_like(a, 0), power * pow(a, power - 1));
}

// The slope of 0 ^ b is 0 in b where b is 0 or more.
Var exponent_slope(const Var& a, const Var& b, const Var& c) {
  const Var zero = scalar_like(a, 0);
  const Var is_flat = logical_and(equal(a, zero), greater_or_equal(b, scalar_like(b, 0)));
  return where(is_flat, zero, c * log(where(is_flat, scalar_like(a, 1), a)));
}

void vjp(VjpContext& c) {
  if (c.wants(0)) c.set(0, times_slope(c.gy(0), base_slope(c.in(0), c.in(1), !c.wants(1))));
  if (!c.wants(1)) return;
  c.set(1, cast(times_slope(c.gy(0), exponent_slope(c.in(0), c.in(1), c.out(0))), c.in(1).dtype()));
}

}  // namespace

Var pow(Var a, Var b) { return apply(pow_def(), {a, b}); }

const OpDef& pow_def() {
  static const OpDef def{
      .name = "pow",
      .doc = "c = a ^ b in the dtype of a.",
      .inputs = {{"a", "T", "The base; any shape."},
                 {"b", "E", "The exponent; a shape that broadcasts with that of a."}},
      .outputs = {{"c", "T", "The shape to which a and b broadcast."}},
      .types = {{"T", dtypes::kFloat | dtypes::kIndex}, {"E", dtypes::kNumeric}},
      .infer = infer_elementwise,
      .scalar = pow_loop,
      .vjp = vjp,
      .traits = {.elementwise = true, .in_place_ok = true},
      .onnx = {{.name = "Pow", .since = 7}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
