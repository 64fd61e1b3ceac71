// SVMRegressor and SVMClassifier of ai.onnx.ml: weighted sums of how much alike rows and support vectors are.
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

// Places in the attribute `kernel_params`.
enum Parameter : uint8_t { kGamma, kOffset, kDegree };

float parameter(const ContribCall& call, Parameter which) {
  const Reals given = reals(call, "kernel_params");
  return which < given.size() ? given[which] : 0;
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

// A constant matrix of `rows` rows that holds all of `values`.
Var matrix(const ContribCall& call, std::string_view attribute, const Reals& values, int64_t rows) {
  const auto size = std::ssize(values);
  if (size == 0 || size % rows != 0) {
    call.refuse(fmt::format("attribute '{}'", attribute), fmt::format("expected {} equal rows, got {}", rows, size));
  }
  return call.constant(Tensor::of<float>({rows, size / rows}, values));
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
    sum = matmul(kernel_of(call, x, matrix(call, "support_vectors", vectors, supports)), weights);
  } else {
    sum = kernel_of(call, x, transpose(weights, {1, 0}));
  }
  const Reals rho = reals(call, "rho");
  if (!rho.empty()) sum = add(sum, scalar_like(sum, rho[0]));
  if (!call.attributes().flag("one_class")) return {sum};
  return {where(greater(sum, scalar_like(sum, 0)), scalar_like(sum, 1), scalar_like(sum, -1))};
}

// ---- Classifiers -----------------------------------------------------------------------------------------------
// One machine for each pair of classes: a score above 0 is a vote for the first of the two.

class PairMachines {
 public:
  PairMachines(const ContribCall& call, int64_t classes)
      : call_(call),
        classes_(classes),
        pairs_(classes * (classes - 1) / 2),
        supports_(call.attributes().get<std::vector<int64_t>>("vectors_per_class")),
        total_(std::accumulate(supports_.begin(), supports_.end(), int64_t{0})) {
    expect_size("vectors_per_class", std::ssize(supports_), classes_);
    expect_size("coefficients", std::ssize(reals(call, "coefficients")), (classes_ - 1) * total_);
    expect_size("rho", std::ssize(reals(call, "rho")), pairs_);
    for (const std::string_view name : {"prob_a", "prob_b"}) {
      if (const auto size = std::ssize(reals(call, name)); size > 0 || has_probabilities()) {
        expect_size(name, size, pairs_);
      }
    }
  }

  bool has_probabilities() const { return !reals(call_, "prob_a").empty(); }

  /// [rows, pairs]. Added up in f64: where the two of a pair are alike, what is left of their sums decides the vote.
  Var scores(Var x) const {
    const Var alike = kernel_of(call_, x, matrix(call_, "support_vectors", reals(call_, "support_vectors"), total_));
    const Var sum = matmul(as_dtype(alike, DType::f64), as_dtype(call_.constant(weights()), DType::f64));
    return as_dtype(add(sum, as_dtype(row_of(call_, reals(call_, "rho")), DType::f64)), DType::f32);
  }

  /// The place of the class with most votes, the first of several: [rows].
  Var winner(Var scores) const {
    Tensor first = Tensor::zeros(DType::f32, {pairs_, classes_}),
           second = Tensor::zeros(DType::f32, {pairs_, classes_});
    for_each_pair([&](int64_t pair, int64_t i, int64_t j) {
      first.mutable_data<float>()[pair * classes_ + i] = 1;
      second.mutable_data<float>()[pair * classes_ + j] = 1;
    });
    const Var is_first = cast(greater(scores, scalar_like(scores, 0)), DType::f32);
    const Var is_second = sub(scalar_like(is_first, 1), is_first);
    const Var votes = add(matmul(is_first, call_.constant(first)), matmul(is_second, call_.constant(second)));
    return arg_max(votes, 1, false);
  }

  /// Of each class: [rows, classes]. A sigmoid makes a probability of each score.
  Var probabilities(Var scores) const {
    constexpr float kLeast = 1e-7F;
    const Var exponent = add(mul(scores, row_of(call_, reals(call_, "prob_a"))), row_of(call_, reals(call_, "prob_b")));
    const Var of_first = sigmoid(neg(exponent));
    return couple_pairs(clip(of_first, scalar_like(of_first, kLeast), scalar_like(of_first, 1 - kLeast)), classes_);
  }

 private:
  void expect_size(std::string_view attribute, int64_t size, int64_t expected) const {
    if (size == expected) return;
    call_.refuse(fmt::format("attribute '{}'", attribute),
                 fmt::format("expected {} elements for {} classes, got {}", expected, classes_, size));
  }

  // Pairs in the order of their machines: 0 1, 0 2, .., 1 2, ...
  template <class Function>
  void for_each_pair(Function function) const {
    for (int64_t pair = 0, i = 0; i < classes_; ++i) {
      for (int64_t j = i + 1; j < classes_; ++j, ++pair) function(pair, i, j);
    }
  }

  // [supports, pairs]. The file has a row of coefficients for each class but one: those of a support vector of class i
  // against class j are in row j, or j - 1 where j > i.
  Tensor weights() const {
    const Reals coefficients = reals(call_, "coefficients");
    std::vector<int64_t> begin(supports_.size() + 1, 0);
    std::partial_sum(supports_.begin(), supports_.end(), begin.begin() + 1);
    Tensor result = Tensor::zeros(DType::f32, {total_, pairs_});
    const auto copy = [&](int64_t pair, int64_t of, int64_t row) {
      for (int64_t k = begin[of]; k < begin[of + 1]; ++k) {
        result.mutable_data<float>()[k * pairs_ + pair] = coefficients[row * total_ + k];
      }
    };
    for_each_pair([&](int64_t pair, int64_t i, int64_t j) {
      copy(pair, i, j - 1);
      copy(pair, j, i);
    });
    return result;
  }

  const ContribCall& call_;
  int64_t classes_, pairs_;
  std::vector<int64_t> supports_;  // by class
  int64_t total_;
};

// The one score of two classes is the second's; the first has the opposite, or what is left of 1.
Var two_scores(const ContribCall& call, Var score) {
  const std::string kind = call.attributes().text("post_transform");
  if (kind == "NONE") return concat({neg(score), score}, 1);
  if (kind == "LOGISTIC") return sigmoid(concat({neg(score), score}, 1));
  if (kind == "SOFTMAX") return concat({sub(scalar_like(score, 1), score), score}, 1);
  call.refuse("attribute 'post_transform'", kind + " is not supported");
}

// Without support vectors: one score a class. Of two classes the second wins wherever a score is high enough.
std::vector<Var> linear_machine(ContribCall& call, Var labels, int64_t classes) {
  const Reals coefficients = reals(call, "coefficients"), rho = reals(call, "rho");
  if (rho.empty()) call.refuse("attribute 'rho'", "expected a number, got none");
  const Var weights = matrix(call, "coefficients", coefficients, classes);
  const Var products = matmul(rows(call, call["X"]), transpose(weights, {1, 0}));
  const Var scores = add(products, scalar_like(products, rho[0]));
  Var winner = arg_max(scores, 1, false);
  if (classes == 2 && reals(call, "prob_a").empty()) {
    const bool all_positive = std::all_of(coefficients.begin(), coefficients.end(), [](float c) { return c >= 0; });
    const Var highest = reduce_max(scores, {1}, false);
    const Var is_second =
        all_positive ? greater_or_equal(highest, scalar_like(highest, 0.5)) : greater(highest, scalar_like(highest, 0));
    winner = where(is_second, scalar_like(winner, 1), winner);
  }
  return {gather(labels, winner), transformed(call, scores)};
}

std::vector<Var> svm_classifier(ContribCall& call) {
  const Tensor names = class_labels(call, 0);
  const int64_t classes = names.num_elements();
  if (classes < 2) call.refuse("attributes 'classlabels'", fmt::format("expected 2 or more, got {}", classes));
  const Var labels = call.constant(names);
  const auto supports = call.attributes().get_or<std::vector<int64_t>>("vectors_per_class", {});
  if (std::accumulate(supports.begin(), supports.end(), int64_t{0}) == 0) return linear_machine(call, labels, classes);
  const PairMachines machines(call, classes);
  const Var scores = machines.scores(rows(call, call["X"]));
  const Var label = gather(labels, machines.winner(scores));
  if (machines.has_probabilities()) return {label, transformed(call, machines.probabilities(scores))};
  return {label, classes == 2 ? two_scores(call, scores) : transformed(call, scores)};
}

}  // namespace

std::vector<ContribOp> contrib_support_vectors() {
  const auto list = [](std::string_view name, AttributeType type = AttributeType::reals) {
    return optional_attribute(name, type);
  };
  const auto machine = [&](std::vector<AttributeSpec> more) {
    for (const std::string_view name : {"coefficients", "kernel_params", "rho", "support_vectors"}) {
      more.push_back(list(name));
    }
    more.push_back(with_default("kernel_type", std::string("LINEAR")));
    more.push_back(with_default("post_transform", std::string("NONE")));
    return more;
  };
  return {
      contrib_op("SVMRegressor", "X", "Y", "matmul, reduce_sum_square, exp, tanh, pow, add", svm_regressor,
                 machine({with_default("n_supports", int64_t{0}), with_default("one_class", int64_t{0})}), kMl),
      contrib_op(
          "SVMClassifier", "X", "Y, Z",
          "matmul, reduce_sum_square, exp, tanh, pow, add, reduce_max, arg_max, gather, sigmoid, softmax, couple_pairs",
          svm_classifier,
          with_class_labels(
              machine({list("prob_a"), list("prob_b"), list("vectors_per_class", AttributeType::integers)})),
          kMl)};
}

}  // namespace autograph::io
