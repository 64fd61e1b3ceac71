// mod: the remainder of a / b.
//
// fmod = 0: a - floor(a / b) * b, with the sign of b. fmod = 1: a - trunc(a / b) * b, with the sign of a.
// Integers: the remainder by 0 is 0. Floats: the remainder by 0, or of an infinity, is NaN; a finite number by an
// infinity is itself, or the infinity when fmod = 0 and the signs differ; a zero has the sign of b when fmod = 0.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

struct Mod {
  explicit Mod(const Attributes& attributes) : truncate(attributes.flag("fmod")) {}

  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      return of_floats(a, b);
    } else {
      return of_integers(a, b);
    }
  }

  bool truncate;

 private:
  template <class T>
  T of_floats(T a, T b) const {
    const T rest = std::fmod(a, b);
    if (truncate || std::isnan(rest)) return rest;
    if (rest == 0) return std::copysign(T(0), b);
    return (rest < 0) != (b < 0) ? rest + b : rest;
  }

  template <class T>
  T of_integers(T a, T b) const {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return 0;  // lowest % -1 would trap
    }
    const T rest = static_cast<T>(a % b);
    if (truncate || rest == 0 || (rest < 0) == (b < 0)) return rest;
    return static_cast<T>(rest + b);
  }
};

OpSample sample(Random& random) {
  OpSample call = draw_bool(random) ? sample_binary_of<DType::i32, -9, 9>(random) : sample_binary(random);
  call.attributes.set("fmod", draw(random, 0, 1));
  return call;
}

void vjp(VjpContext& c) {
  if (c.wants(0)) c.set(0, c.gy(0));
  // a - c is a whole number of b.
  if (c.wants(1)) c.set(1, times_slope(c.gy(0), -round((c.in(0) - c.out(0)) / c.in(1))));
}

}  // namespace

Var mod(Var a, Var b, bool fmod) { return apply(mod_def(), {a, b}, {{"fmod", int64_t{fmod}}}); }

const OpDef& mod_def() {
  static const OpDef def = make_binary(
      {.name = "mod",
       .doc = "c = a - q * b, where q is a / b rounded down (fmod = 0) or towards zero (fmod = 1).",
       .onnx = "Mod",
       .since = 10,
       .types = dtypes::kNumeric,
       .scalar = same_type_loop<Mod, 2, NumericTypes>,
       .attributes = {{"fmod", AttributeType::integer, "0: the sign of b; 1: the sign of a, as in C.", int64_t{0}}},
       .vjp = vjp,
       .sample = sample});
  return def;
}

}  // namespace autograph
