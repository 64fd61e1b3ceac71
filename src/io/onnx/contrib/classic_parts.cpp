#include "io/onnx/contrib/classic_parts.h"

#include <numeric>

#include "autograph/ops/activation.h"

namespace autograph::io {

Reals reals(const ContribCall& call, std::string_view name) { return call.attributes().get_or<Reals>(name, {}); }

Var row_of(const ContribCall& call, const Reals& values) {
  return call.constant(Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
}

Var rows(const ContribCall& call, Var x) {
  const Var real = as_dtype(x, DType::f32);
  return call.rank(x) == 1 ? unsqueeze(real, {0}) : real;
}

Var transformed(const ContribCall& call, Var scores) {
  const std::string kind = call.attributes().text("post_transform");
  if (kind == "NONE") return scores;
  if (kind == "LOGISTIC") return sigmoid(scores);
  if (kind == "SOFTMAX") return softmax(scores, 1);
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
