#include "io/onnx/contrib/classic_parts.h"

#include <limits>
#include <numeric>

#include "autograph/ops/activation.h"
#include "ops/ml/probit.h"

namespace autograph::io {

Reals reals(const ContribCall& call, std::string_view name) { return call.attributes().get_or<Reals>(name, {}); }

Var row_of(const ContribCall& call, const Reals& values) {
  return call.constant(Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
}

Var rows(const ContribCall& call, Var x) {
  const Var real = as_dtype(x, DType::f32);
  return call.rank(x) == 1 ? unsqueeze(real, {0}) : real;
}

namespace {

// Softmax over the scores that are not 0, which stay 0.
Var softmax_zero(Var scores) {
  constexpr float kZero = 1e-7F;  // ONNX Runtime's bound
  const Var is_zero = less_or_equal(abs(scores), scalar_like(scores, kZero));
  const Var hidden = scalar_like(scores, -std::numeric_limits<float>::infinity());
  const Var some = softmax(where(is_zero, hidden, scores), 1);
  return where(is_zero, scalar_like(scores, 0), some);
}

}  // namespace

Var transformed(const ContribCall& call, Var scores) {
  const std::string kind = call.attributes().text("post_transform");
  if (kind == "NONE") return scores;
  if (kind == "LOGISTIC") return sigmoid(scores);
  if (kind == "SOFTMAX") return softmax(scores, 1);
  if (kind == "SOFTMAX_ZERO") return softmax_zero(scores);
  // In f64: digits cancel.
  if (kind == "PROBIT") return as_dtype(probit(as_dtype(scores, DType::f64)), scores.dtype());
  call.refuse("attribute 'post_transform'", kind + " is not supported");
}

Tensor class_labels(const ContribCall& call, int64_t count) {
  const auto texts = call.attributes().get_or<std::vector<std::string>>("classlabels_strings", {});
  if (!texts.empty()) return Tensor::of<std::string>({std::ssize(texts)}, texts);
  auto labels = call.attributes().get_or<std::vector<int64_t>>("classlabels_ints", {});
  if (labels.empty()) {
    labels.resize(static_cast<size_t>(count));
    std::iota(labels.begin(), labels.end(), 0);
  }
  return Tensor::vector(labels);
}

std::vector<AttributeSpec> with_class_labels(std::vector<AttributeSpec> more) {
  more.push_back(optional_attribute("classlabels_strings", AttributeType::texts));
  more.push_back(optional_attribute("classlabels_ints", AttributeType::integers));
  return more;
}

}  // namespace autograph::io
