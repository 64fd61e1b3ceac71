// multinomial: draws classes with probabilities softmax(x) along the last axis of x [batch, classes].
//
// Inverse transform: the first class whose cumulated probability exceeds a uniform number. A row without any finite
// largest element has no distribution and throws ValueError.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/random.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/random/generator.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(0, 2);
  const int64_t samples = context.attributes().integer("sample_size");
  context.require<ValueError>(samples >= 0, "sample_size", "expected 0 or more, got " + std::to_string(samples));
  const Shape& x = context.shape(0);
  context.require<ShapeError>(!x.has_rank() || x[1].value_or(1) > 0, "x", "expected 1 class or more, got 0");
  context.set_output(0, context.attributes().get<DType>("dtype"), {x.has_rank() ? x[0] : Dim::unknown(), Dim(samples)});
}

// Running sums of exp(x - max), the last of which is the total weight.
template <class T>
std::vector<double> cumulated_weights(const T* x, int64_t classes) {
  double largest = static_cast<double>(x[0]);
  for (int64_t c = 1; c < classes; ++c) largest = std::fmax(largest, static_cast<double>(x[c]));
  AG_CHECK_USER(std::isfinite(largest), ValueError, "[multinomial] x: expected a finite largest element, got {}",
                largest);
  std::vector<double> sums;
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c) {
    const double weight = std::exp(static_cast<double>(x[c]) - largest);
    sum += std::isnan(weight) ? 0 : weight;
    sums.push_back(sum);
  }
  return sums;
}

void reference(const OpCall& call) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const int64_t classes = x.dim(1);
  const int64_t samples = y.dim(1);
  Generator generator(call.attributes);
  for (int64_t row = 0; row < x.dim(0); ++row) {
    std::vector<double> sums;
    dispatch<FloatTypes>(x.dtype(),
                         [&]<class T>(TypeTag<T>) { sums = cumulated_weights(x.data<T>() + row * classes, classes); });
    dispatch<IndexTypes>(y.dtype(), [&]<class I>(TypeTag<I>) {
      for (int64_t i = 0; i < samples; ++i) {
        const auto drawn = std::upper_bound(sums.begin(), sums.end(), generator.uniform() * sums.back());
        const int64_t index = std::min<int64_t>(drawn - sums.begin(), classes - 1);
        y.mutable_data<I>()[row * samples + i] = static_cast<I>(index);
      }
    });
  }
}

OpSample sample(Random& random) {
  return {.inputs = {draw_tensor(random, DType::f32, draw_dims(random, 2, 2))},
          .attributes = {{"sample_size", draw(random, 1, 6)},
                         {"dtype", draw_one_of(random, {DType::i32, DType::i64})},
                         {"seed", static_cast<float>(draw(random, 0, 1000))}}};
}

}  // namespace

Var multinomial(Var x, int64_t sample_size, std::optional<float> seed) {
  Attributes attributes{{"sample_size", sample_size}};
  if (seed) attributes.set("seed", *seed);
  return apply(multinomial_def(), {x}, std::move(attributes));
}

const OpDef& multinomial_def() {
  static const OpDef def{
      .name = "multinomial",
      .doc = "y = classes drawn with probabilities softmax(x).",
      .inputs = {{"x", "T", "[batch, classes]: unnormalised log-probabilities."}},
      .outputs = {{"y", "I", "[batch, sample_size]."}},
      .types = {{"T", dtypes::kFloat}, {"I", dtypes::kIndex}},
      .attributes = {{"dtype", AttributeType::dtype, "i32 or i64.", DType::i32},
                     {"sample_size", AttributeType::integer, "Draws per row.", int64_t{1}},
                     {"seed", AttributeType::real, "Makes every run draw the same numbers."}},
      .infer = infer,
      .reference = reference,
      .no_grad = "drawn at random",
      .traits = {.pure = false, .random = true},
      .onnx = {{.name = "Multinomial", .since = 7}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
