// shrink: y = x < -lambd ? x + bias : x > lambd ? x - bias : 0, for every numeric dtype. Computed in f64 (i64 elements
// beyond 2^53 lose their low bits) and truncated and saturated for integers; NaN gives 0.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/number.h"
#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph {
namespace {

struct Shrink {
  explicit Shrink(const Attributes& attributes) : bias(attributes.real("bias")), lambd(attributes.real("lambd")) {}
  template <class T>
  T operator()(T x) const {
    const auto wide = static_cast<double>(x);
    if (wide < -lambd) return from_double<T>(wide + bias);
    return wide > lambd ? from_double<T>(wide - bias) : T(0);
  }

  double bias;
  double lambd;
};

OpSample sample(Random& random) {
  OpSample call = sample_unary(random);
  call.attributes = {{"bias", static_cast<float>(draw(random, -10, 10)) / 10},
                     {"lambd", static_cast<float>(draw(random, 0, 15)) / 10}};
  return call;
}

void vjp(VjpContext& c) {
  const Var x = c.in(0);
  const Var outside = greater(abs(x), scalar_like(x, c.attributes().real("lambd")));
  c.set(0, where(outside, c.gy(0), scalar_like(x, 0)));
}

}  // namespace

Var shrink(Var x, float bias, float lambd) { return apply(shrink_def(), {x}, {{"bias", bias}, {"lambd", lambd}}); }

const OpDef& shrink_def() {
  static const OpDef def =
      make_unary({.name = "shrink",
                  .doc = "y = x < -lambd ? x + bias : x > lambd ? x - bias : 0.",
                  .onnx = "Shrink",
                  .since = 9,
                  .types = dtypes::kNumeric,
                  .scalar = same_type_loop<Shrink, 1, NumericTypes>,
                  .attributes = {{"bias", AttributeType::real, "What large elements move by towards 0.", 0.0F},
                                 {"lambd", AttributeType::real, "Elements within [-lambd, lambd] become 0.", 0.5F}},
                  .vjp = vjp,
                  .sample = sample});
  return def;
}

}  // namespace autograph
