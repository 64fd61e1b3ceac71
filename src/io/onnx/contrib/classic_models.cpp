// Ops of ai.onnx.ml that scikit-learn and its like export around their models and that are a few ordinary ops: linear
// models, support vectors, norms of rows, missing values, columns and categories.
//
// Where the specification leaves open what comes out, it is what ONNX Runtime gives.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";

using Reals = std::vector<float>;

Reals reals(const ContribCall& call, std::string_view name) { return call.attributes().get_or<Reals>(name, {}); }

Var row_of(const ContribCall& call, const Reals& values) {
  return call.constant(Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
}

// Features [rows, columns] in f32; a vector is one row.
Var rows(const ContribCall& call, Var x) {
  const Var real = as_dtype(x, DType::f32);
  return call.rank(x) == 1 ? unsqueeze(real, {0}) : real;
}

// x coefficients^T + intercepts: [rows, count].
Var linear_scores(const ContribCall& call, int64_t count) {
  const Reals coefficients = reals(call, "coefficients"), intercepts = reals(call, "intercepts");
  const auto size = std::ssize(coefficients);
  if (count < 1 || size % count != 0) {
    call.refuse("attribute 'coefficients'", fmt::format("expected a multiple of {} scores, got {}", count, size));
  }
  if (!intercepts.empty() && std::ssize(intercepts) != count) {
    call.refuse("attribute 'intercepts'", fmt::format("expected {}, one a score, got {}", count, intercepts.size()));
  }
  const Var weights = call.constant(Tensor::of<float>({count, size / count}, coefficients));
  const Var scores = matmul(rows(call, call["X"]), transpose(weights, {1, 0}));
  return intercepts.empty() ? scores : add(scores, row_of(call, intercepts));
}

// Of several scores; of one only what is said to change it does.
Var transformed(const ContribCall& call, Var scores) {
  const std::string kind = call.attributes().text("post_transform");
  if (kind == "NONE") return scores;
  if (kind == "LOGISTIC") return sigmoid(scores);
  if (kind == "SOFTMAX") return softmax(scores, 1);
  call.refuse("attribute 'post_transform'", kind + " is not supported");
}

std::vector<Var> linear_regressor(ContribCall& call) {
  const int64_t targets = call.attributes().integer("targets");
  const Var scores = linear_scores(call, targets);
  if (targets > 1) return {transformed(call, scores)};
  if (call.attributes().text("post_transform") == "PROBIT") transformed(call, scores);
  return {scores};
}

// Of kernels of support vector machines: places in the attribute.
enum Parameter : uint8_t { kGamma, kOffset, kDegree };

float parameter(const ContribCall& call, Parameter which) {
  const Reals given = reals(call, "kernel_params");
  return which < given.size() ? given[which] : 0;
}

// The names of the classes; 0, 1, ... where there are none.
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

// Of one score: the second class where it is above 0, and what is left of 1, or the opposite, for the first one.
std::vector<Var> by_one_score(const ContribCall& call, Var score, Var labels) {
  const Var is_second = greater(score, scalar_like(score, 0));
  const Var label = gather(labels, cast(squeeze(is_second, {1}), DType::i64));
  const std::string kind = call.attributes().text("post_transform");
  if (kind == "LOGISTIC") return {label, sigmoid(concat({neg(score), score}, 1))};
  if (kind != "NONE") call.refuse("attribute 'post_transform'", kind + " of one score is not supported");
  return {label, concat({sub(scalar_like(score, 1), score), score}, 1)};
}

std::vector<Var> linear_classifier(ContribCall& call) {
  const auto intercepts = std::ssize(reals(call, "intercepts"));
  const int64_t count = intercepts > 0 ? intercepts : class_labels(call, 0).num_elements();
  const Tensor names = class_labels(call, std::max<int64_t>(count, 2));
  if (names.num_elements() != std::max<int64_t>(count, 2)) {
    call.refuse("attributes 'classlabels'", fmt::format("{} for {} scores", names.num_elements(), count));
  }
  const Var scores = linear_scores(call, count), labels = call.constant(names);
  if (count == 1) return by_one_score(call, scores, labels);
  return {gather(labels, arg_max(scores, 1, false)), transformed(call, scores)};
}

// How much alike the rows of x and the rows of `vectors` are: [rows of x, vectors].
Var kernel_of(const ContribCall& call, Var x, Var vectors) {
  const std::string kind = call.attributes().text("kernel_type");
  if (kind == "RBF") {
    const Var distance = reduce_sum_square(sub(unsqueeze(x, {1}), unsqueeze(vectors, {0})), {2}, false);
    return exp(mul(distance, scalar_like(distance, -parameter(call, kGamma))));
  }
  const Var product = matmul(x, transpose(vectors, {1, 0}));
  if (kind == "LINEAR") return product;
  const auto number = [&](Parameter which) { return scalar_like(product, parameter(call, which)); };
  const Var scaled = add(mul(product, number(kGamma)), number(kOffset));
  if (kind == "SIGMOID") return tanh(scaled);
  if (kind == "POLY") return pow(scaled, number(kDegree));
  call.refuse("attribute 'kernel_type'", "expected LINEAR, POLY, RBF or SIGMOID, got " + kind);
}

// Without support vectors the coefficients are those of the features.
std::vector<Var> svm_regressor(ContribCall& call) {
  const Reals coefficients = reals(call, "coefficients"), vectors = reals(call, "support_vectors");
  const int64_t supports = call.attributes().integer("n_supports");
  const auto count = std::ssize(coefficients), size = std::ssize(vectors);
  if (supports > 0 && (count != supports || size % supports != 0)) {
    call.refuse("attribute 'n_supports'", fmt::format("{} of {} coefficients and {} elements", supports, count, size));
  }
  const Var x = rows(call, call["X"]);
  const Var weights = call.constant(Tensor::of<float>({count, 1}, coefficients));
  Var sum;
  if (supports > 0) {
    const Var table = call.constant(Tensor::of<float>({supports, size / supports}, vectors));
    sum = matmul(kernel_of(call, x, table), weights);
  } else {
    sum = kernel_of(call, x, transpose(weights, {1, 0}));
  }
  const Reals rho = reals(call, "rho");
  if (!rho.empty()) sum = add(sum, scalar_like(sum, rho[0]));
  if (!call.attributes().flag("one_class")) return {sum};
  return {where(greater(sum, scalar_like(sum, 0)), scalar_like(sum, 1), scalar_like(sum, -1))};
}

std::vector<Var> normalizer(ContribCall& call) {
  const Var x = as_dtype(call["X"], DType::f32);
  const std::string norm = call.attributes().text("norm");
  const std::vector<int64_t> axes{call.rank(x) - 1};
  Var size;
  if (norm == "MAX") size = reduce_max(x, axes);
  if (norm == "L1") size = reduce_l1(x, axes);
  if (norm == "L2") size = reduce_l2(x, axes);
  if (!size.is_valid()) call.refuse("attribute 'norm'", "expected MAX, L1 or L2, got " + norm);
  return {div(x, where(equal(size, scalar_like(size, 0)), scalar_like(size, 1), size))};
}

std::vector<Var> imputer(ContribCall& call) {
  const Var x = call["X"];
  const Reals values = reals(call, "imputed_value_floats");
  if (!values.empty()) {
    const float replaced = call.attributes().real("replaced_value_float");
    const Var is_missing = replaced != replaced ? is_nan(x) : equal(x, scalar_like(x, replaced));
    return {where(is_missing, as_dtype(row_of(call, values), x.dtype()), x)};
  }
  const auto integers = call.attributes().get_or<std::vector<int64_t>>("imputed_value_int64s", {});
  if (integers.empty()) call.refuse("attributes", "expected imputed_value_floats or imputed_value_int64s");
  const Var replaced =
      as_dtype(call.constant(Tensor::scalar<int64_t>(call.attributes().integer("replaced_value_int64"))), x.dtype());
  return {where(equal(x, replaced), as_dtype(call.constant(Tensor::vector(integers)), x.dtype()), x)};
}

std::vector<Var> feature_vectorizer(ContribCall& call) {
  std::vector<Var> columns;
  for (const Var& x : call.all("X")) columns.push_back(rows(call, x));
  return {concat(columns, 1)};
}

// One more axis, 1 where the element is the category.
std::vector<Var> one_hot_encoder(ContribCall& call) {
  call.only("zeros", {1});
  const auto categories = call.attributes().get_or<std::vector<int64_t>>("cats_int64s", {});
  if (categories.empty()) call.refuse("attribute 'cats_int64s'", "missing; categories of text are not supported");
  const Var x = as_dtype(call["X"], DType::i64);
  return {cast(equal(unsqueeze(x, {call.rank(x)}), call.constant(Tensor::vector(categories))), DType::f32)};
}

// A map for each row, from the names of the classes to its scores: here the scores are what they are, by column.
std::vector<Var> zip_map(ContribCall& call) { return {identity(call["X"])}; }

}  // namespace

std::vector<ContribOp> contrib_classic_models() {
  const auto list = [](std::string_view name, AttributeType type) { return optional_attribute(name, type); };
  const AttributeSpec transform = with_default("post_transform", std::string("NONE"));
  const AttributeSpec coefficients = list("coefficients", AttributeType::reals);
  const AttributeSpec intercepts = list("intercepts", AttributeType::reals);
  const auto row = [](std::string_view name, std::string_view inputs, std::string_view outputs, ContribBody body,
                      std::vector<AttributeSpec> attributes) {
    return contrib_op(name, inputs, outputs, body, std::move(attributes), kMl);
  };
  return {
      row("LinearRegressor", "X", "Y", linear_regressor,
          {coefficients, intercepts, with_default("targets", int64_t{1}), transform}),
      row("LinearClassifier", "X", "Y, Z", linear_classifier,
          {coefficients, intercepts, with_default("multi_class", int64_t{0}), transform,
           list("classlabels_strings", AttributeType::texts), list("classlabels_ints", AttributeType::integers)}),
      row("SVMRegressor", "X", "Y", svm_regressor,
          {coefficients, list("kernel_params", AttributeType::reals),
           with_default("kernel_type", std::string("LINEAR")), with_default("n_supports", int64_t{0}),
           with_default("one_class", int64_t{0}), transform, list("rho", AttributeType::reals),
           list("support_vectors", AttributeType::reals)}),
      row("Normalizer", "X", "Y", normalizer, {with_default("norm", std::string("MAX"))}),
      row("Imputer", "X", "Y", imputer,
          {list("imputed_value_floats", AttributeType::reals), with_default("replaced_value_float", 0.0F),
           list("imputed_value_int64s", AttributeType::integers), with_default("replaced_value_int64", int64_t{0})}),
      row("FeatureVectorizer", "X*", "Y", feature_vectorizer, {list("inputdimensions", AttributeType::integers)}),
      row("OneHotEncoder", "X", "Y", one_hot_encoder,
          {list("cats_int64s", AttributeType::integers), list("cats_strings", AttributeType::texts),
           with_default("zeros", int64_t{1})}),
      row("ZipMap", "X", "Z", zip_map,
          {list("classlabels_strings", AttributeType::texts), list("classlabels_int64s", AttributeType::integers)}),
  };
}

}  // namespace autograph::io
