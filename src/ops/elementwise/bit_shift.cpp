// bit_shift: c = a << b or a >> b. Right shifts of signed dtypes copy the sign bit; left shifts drop what passes the
// top. A negative shift, or one of the width of the dtype or more, leaves only the fill: -1 for right shifts of
// negative numbers, else 0.
#include <limits>
#include <type_traits>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph {
namespace {

struct BitShift {
  explicit BitShift(const Attributes& attributes) : left(attributes.text("direction") == "LEFT") {}

  template <class T>
  T operator()(T a, T b) const {
    using Unsigned = std::make_unsigned_t<T>;
    // A negative shift is a huge unsigned one.
    const bool all_out = static_cast<Unsigned>(b) >= static_cast<Unsigned>(std::numeric_limits<Unsigned>::digits);
    if (left) return all_out ? T(0) : static_cast<T>(static_cast<uint64_t>(a) << b);
    if (all_out) return a < 0 ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> b);
  }

  bool left;
};

OpSample sample(Random& random) {
  OpSample call =
      draw_bool(random) ? sample_binary_of<DType::u8, 0, 9>(random) : sample_binary_of<DType::u32, 0, 33>(random);
  call.attributes.set("direction", std::string(draw_bool(random) ? "LEFT" : "RIGHT"));
  return call;
}

}  // namespace

Var bit_shift(Var a, Var b, bool left) {
  return apply(bit_shift_def(), {a, b}, {{"direction", std::string(left ? "LEFT" : "RIGHT")}});
}

const OpDef& bit_shift_def() {
  static const OpDef def = make_binary({.name = "bit_shift",
                                        .doc = "c = a << b or a >> b.",
                                        .onnx = "BitShift",
                                        .since = 11,
                                        .types = dtypes::kInteger,
                                        .scalar = same_type_loop<BitShift, 2, IntegerTypes>,
                                        .attributes = {{.name = "direction",
                                                        .type = AttributeType::text,
                                                        .doc = "Where the bits move: LEFT or RIGHT.",
                                                        .required = true,
                                                        .allowed = {"LEFT", "RIGHT"}}},
                                        .no_grad = "integers have no gradient",
                                        .sample = sample});
  return def;
}

}  // namespace autograph
