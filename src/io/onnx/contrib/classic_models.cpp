// Ops of ai.onnx.ml that scikit-learn and its like export around their models and that are a few ordinary ops: linear
// models, norms of rows, missing values, columns and categories.
//
// Where the specification leaves open what comes out, it is what ONNX Runtime gives.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/ml.h"
#include "autograph/ops/reduction.h"
#include "io/onnx/contrib/classic_parts.h"

namespace autograph::io {
namespace {

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

std::vector<Var> linear_regressor(ContribCall& call) {
  const int64_t targets = call.attributes().integer("targets");
  const Var scores = linear_scores(call, targets);
  const bool applies = targets > 1 || call.attributes().text("post_transform") == "PROBIT";
  return {applies ? transformed(call, scores) : scores};
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

// The list of categories, of which a file has one for texts and one for numbers.
Tensor categories(const ContribCall& call, DType dtype) {
  Tensor list;
  if (dtype == DType::string) {
    const auto texts = call.attributes().get_or<std::vector<std::string>>("cats_strings", {});
    list = Tensor::of<std::string>({std::ssize(texts)}, texts);
  } else {
    list = Tensor::vector(call.attributes().get_or<std::vector<int64_t>>("cats_int64s", {}));
  }
  if (list.num_elements() == 0) {
    const std::string_view name = dtype == DType::string ? "cats_strings" : "cats_int64s";
    call.refuse(fmt::format("attribute '{}'", name), "expected categories, got none");
  }
  return list;
}

// `x`, whose elements must be in `list`: what is not gets an index behind it, which a run reports as out of range.
Var one_of(const ContribCall& call, Var x, const Tensor& list) {
  std::vector<int64_t> places(static_cast<size_t>(list.num_elements()));
  std::iota(places.begin(), places.end(), 0);
  const Var place = label_encoder(x, list, Tensor::vector(places), Tensor::vector({list.num_elements()}));
  return gather(call.constant(list), place);
}

// One more axis, 1 where the element is the category.
std::vector<Var> one_hot_encoder(ContribCall& call) {
  call.only("zeros", {0, 1});
  const Var given = call["X"], x = given.dtype() == DType::string ? given : as_dtype(given, DType::i64);
  const Tensor list = categories(call, x.dtype());
  const Var known = call.attributes().flag("zeros") ? x : one_of(call, x, list);
  return {cast(equal(unsqueeze(known, {call.rank(x)}), call.constant(list)), DType::f32)};
}

// From names to numbers, or back.
std::vector<Var> category_mapper(ContribCall& call) {
  const Tensor texts = categories(call, DType::string), integers = categories(call, DType::i64);
  if (texts.num_elements() != integers.num_elements()) {
    call.refuse("attribute 'cats_int64s'",
                fmt::format("expected {} elements, one a name, got {}", texts.num_elements(), integers.num_elements()));
  }
  const Var x = call["X"];
  if (x.dtype() == DType::string) {
    return {label_encoder(x, texts, integers, Tensor::vector({call.attributes().integer("default_int64")}))};
  }
  return {label_encoder(x, integers, texts, Tensor::of<std::string>({1}, {call.attributes().text("default_string")}))};
}

// A map for each row, from the names of the classes to its scores: here the scores are what they are, by column.
std::vector<Var> zip_map(ContribCall& call) { return {identity(call["X"])}; }

}  // namespace

std::vector<ContribOp> contrib_classic_models() {
  const auto list = [](std::string_view name, AttributeType type) { return optional_attribute(name, type); };
  const AttributeSpec transform = with_default("post_transform", std::string("NONE"));
  const AttributeSpec coefficients = list("coefficients", AttributeType::reals);
  const AttributeSpec intercepts = list("intercepts", AttributeType::reals);
  const auto row = [](std::string_view name, std::string_view inputs, std::string_view outputs,
                      std::string_view becomes, ContribBody body, std::vector<AttributeSpec> attributes) {
    return contrib_op(name, inputs, outputs, becomes, body, std::move(attributes), kMl);
  };
  const auto texts_row = [&](std::string_view name, std::string_view becomes, ContribBody body,
                             std::vector<AttributeSpec> attributes) {
    attributes.push_back(list("cats_int64s", AttributeType::integers));
    attributes.push_back(list("cats_strings", AttributeType::texts));
    ContribOp op = row(name, "X", "Y", becomes, body, std::move(attributes));
    op.takes_texts = true;
    return op;
  };
  return {
      row("LinearRegressor", "X", "Y", "matmul, add, sigmoid, softmax", linear_regressor,
          {coefficients, intercepts, with_default("targets", int64_t{1}), transform}),
      row("LinearClassifier", "X", "Y, Z", "matmul, add, arg_max, gather, sigmoid, softmax", linear_classifier,
          with_class_labels({coefficients, intercepts, with_default("multi_class", int64_t{0}), transform})),
      row("Normalizer", "X", "Y", "reduce_max, reduce_l1, reduce_l2, div", normalizer,
          {with_default("norm", std::string("MAX"))}),
      row("Imputer", "X", "Y", "is_nan, equal, where", imputer,
          {list("imputed_value_floats", AttributeType::reals), with_default("replaced_value_float", 0.0F),
           list("imputed_value_int64s", AttributeType::integers), with_default("replaced_value_int64", int64_t{0})}),
      row("FeatureVectorizer", "X*", "Y", "concat", feature_vectorizer,
          {list("inputdimensions", AttributeType::integers)}),
      texts_row("OneHotEncoder", "label_encoder, gather, equal", one_hot_encoder, {with_default("zeros", int64_t{1})}),
      texts_row("CategoryMapper", "label_encoder", category_mapper,
                {with_default("default_int64", int64_t{-1}), with_default("default_string", std::string("_Unused"))}),
      row("ZipMap", "X", "Z", "identity", zip_map,
          {list("classlabels_strings", AttributeType::texts), list("classlabels_int64s", AttributeType::integers)}),
  };
}

}  // namespace autograph::io
