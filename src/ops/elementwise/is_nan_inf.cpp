// is_nan and is_inf: which elements are NaN, or infinite with a sign that is asked for. 8-bit floats without infinities
// have none.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formulas.h"
#include "ops/elementwise/formula/make_elementwise.h"
#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph {
namespace {

using Float8Types = TypeList<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0>;
using TestedTypes = Concat<FloatTypes, Float8Types>;

struct IsInf {
  explicit IsInf(const Attributes& attributes)
      : negative(attributes.flag("detect_negative")), positive(attributes.flag("detect_positive")) {}
  template <class T>
  bool operator()(T x) const {
    return std::isinf(x) && (x < 0 ? negative : positive);
  }

  bool negative;
  bool positive;
};

// Every third element or so is NaN or infinite.
Tensor draw_with_specials(Random& random) {
  Tensor x = draw_tensor(random, DType::f32, draw_dims(random));
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    if (draw(random, 0, 2) != 0) continue;
    x.mutable_data<float>()[i] = draw_one_of(random, {kInfinity, -kInfinity, std::nanf("")});
  }
  return x;
}

OpSample sample_is_nan(Random& random) { return {.inputs = {draw_with_specials(random)}}; }

OpSample sample_is_inf(Random& random) {
  return {.inputs = {draw_with_specials(random)},
          .attributes = {{"detect_negative", draw(random, 0, 1)}, {"detect_positive", draw(random, 0, 1)}}};
}

}  // namespace

Var is_nan(Var x) { return apply(is_nan_def(), {x}); }
Var is_inf(Var x, bool detect_negative, bool detect_positive) {
  return apply(is_inf_def(), {x},
               {{"detect_negative", int64_t{detect_negative}}, {"detect_positive", int64_t{detect_positive}}});
}

const OpDef& is_nan_def() {
  static const OpDef def = make_unary_predicate({.name = "is_nan",
                                                 .doc = "y = is x NaN?",
                                                 .onnx = "IsNaN",
                                                 .since = 9,
                                                 .types = dtypes::kFloat | dtypes::kFloat8,
                                                 .scalar = formulas::kPredicateLoops<formulas::IsNan, TestedTypes>,
                                                 .sample = sample_is_nan});
  return def;
}

const OpDef& is_inf_def() {
  static const OpDef def = make_unary_predicate(
      {.name = "is_inf",
       .doc = "y = is x infinite, with a sign that is detected?",
       .onnx = "IsInf",
       .since = 10,
       .types = dtypes::kFloat | dtypes::kFloat8,
       .scalar = predicate_loop<IsInf, 1, TestedTypes>,
       .attributes = {{"detect_negative", AttributeType::integer, "1: -inf counts; 0: it does not.", int64_t{1}},
                      {"detect_positive", AttributeType::integer, "1: +inf counts; 0: it does not.", int64_t{1}}},
       .sample = sample_is_inf});
  return def;
}

}  // namespace autograph
