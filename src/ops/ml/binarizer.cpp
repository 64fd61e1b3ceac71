// binarizer: y = 1 where x > threshold, else 0. NaN gives 0.
#include "autograph/op_def.h"
#include "autograph/ops/ml.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/scalar_loops.h"
#include "ops/sample.h"

namespace autograph {
namespace {

struct Binarize {
  explicit Binarize(const Attributes& attributes) : threshold(attributes.real("threshold")) {}
  template <class T>
  T operator()(T x) const {
    return static_cast<double>(x) > static_cast<double>(threshold) ? T(1) : T(0);
  }
  float threshold;
};

}  // namespace

Var binarizer(Var x, float threshold) { return apply(binarizer_def(), {x}, {{"threshold", threshold}}); }

const OpDef& binarizer_def() {
  static const OpDef def{
      .name = "binarizer",
      .doc = "y = 1 where x > threshold, else 0.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", {DType::f32, DType::f64, DType::i64, DType::i32}}},
      .attributes = {{"threshold", AttributeType::real, "What to compare with.", 0.0F}},
      .infer = infer_elementwise,
      .scalar = same_type_loop<Binarize, 1, TypeList<float, double, int64_t, int32_t>>,
      .no_grad = "the gradient is zero everywhere",
      .traits = {.elementwise = true, .in_place_ok = true},
      .onnx = {{.name = "Binarizer", .domain = "ai.onnx.ml"}},
      .sample = sample_unary,
  };
  return def;
}

}  // namespace autograph
