// SVMRegressor and SVMClassifier: small cases, with the numbers that ONNX Runtime gives.
#include "autograph/error.h"
#include "io/ml_node.h"

namespace autograph::tests {
namespace {

using Integers = std::vector<int64_t>;
using Reals = std::vector<float>;

TEST(SupportVectors, RegressorsOfAllKernels) {
  const auto regressor = [](const std::string& kernel) {
    return ml_node("SVMRegressor")
        .input(features())
        .set("coefficients", Reals{0.5F, -1, 0.25F})
        .set("support_vectors", Reals{1, 2, -1, 0.5F, 0, 1})
        .set("n_supports", 3)
        .set("kernel_params", Reals{0.5F, 0.1F, 2})
        .set("kernel_type", kernel)
        .set("rho", Reals{0.3F});
  };
  expect_numbers(regressor("LINEAR").result(), {3.3, -3.825});
  expect_numbers(regressor("RBF").result(), {0.84803295, 0.16717009});
  expect_numbers(regressor("POLY").result(), {3.9725, -2.24});
  expect_numbers(regressor("SIGMOID").result(), {0.89497048, -0.91251737});
  expect_numbers(regressor("LINEAR").set("one_class", 1).result(), {1, -1});
  EXPECT_THROW(regressor("OTHER").result(), UnsupportedError);
  const ContribNode linear =
      ml_node("SVMRegressor").input(features()).set("coefficients", Reals{0.5F, -1}).set("rho", Reals{0.3F});
  expect_numbers(linear.result(), {-1.2, -1.7});
}

ContribNode machine(const Reals& coefficients, const Reals& rho) {
  return ml_node("SVMClassifier")
      .input(features())
      .set("kernel_params", Reals{0.5F, 0.1F, 2})
      .set("coefficients", coefficients)
      .set("rho", rho)
      .outputs({true, true});
}

// Two support vectors of the first class, one of each other.
ContribNode of_three_classes() {
  return machine({0.5F, -1, 0.25F, 0.75F, 1, 0.5F, -0.5F, 0.25F}, {0.1F, -0.2F, 0.3F})
      .set("kernel_type", std::string("RBF"))
      .set("vectors_per_class", Integers{2, 1, 1})
      .set("support_vectors", Reals{1, 2, -1, 0.5F, 0, 1, 2, -1})
      .set("classlabels_ints", Integers{4, 7, 9});
}

ContribNode of_two_classes() {
  return machine({0.5F, -1, 0.25F}, {0.1F})
      .set("kernel_type", std::string("POLY"))
      .set("vectors_per_class", Integers{2, 1})
      .set("support_vectors", Reals{1, 2, -1, 0.5F, 0, 1})
      .set("classlabels_strings", std::vector<std::string>{"no", "yes"});
}

TEST(SupportVectors, ThePairsOfClassesVote) {
  const std::vector<Tensor> plain = of_three_classes().run();
  EXPECT_EQ(plain[0].to_i64(), (Integers{4, 7}));
  expect_numbers(plain[1], {0.6480329, 0.8270219, 0.11774477, -0.032829911, -0.13222255, 0.29509848});
  expect_numbers(of_three_classes().set("post_transform", std::string("SOFTMAX")).run()[1],
                 {0.35913828, 0.42953208, 0.21132967, 0.3036305, 0.27490315, 0.42146632});
}

TEST(SupportVectors, ProbabilitiesOfClassesComeFromThoseOfPairs) {
  const ContribNode machine =
      of_three_classes().set("prob_a", Reals{-1, -1.5F, -2}).set("prob_b", Reals{0.1F, -0.2F, 0.3F});
  const std::vector<Tensor> outputs = ContribNode(machine).run();
  EXPECT_EQ(outputs[0].to_i64(), (Integers{4, 7}));
  expect_numbers(outputs[1], {0.55543923, 0.26677111, 0.17778981, 0.32007384, 0.37997192, 0.29995432});
  expect_numbers(ContribNode(machine).set("post_transform", std::string("PROBIT")).run()[1],
                 {0.13941681, -0.62267744, -0.92397771, -0.46752537, -0.30556449, -0.52457685});
  expect_numbers(of_two_classes().set("prob_a", Reals{-1}).set("prob_b", Reals{0.1F}).run()[1],
                 {0.97466451, 0.0253355, 0.072987117, 0.92701286});
}

TEST(SupportVectors, OfTwoClassesTheScoreIsTheSecondsAndTheFirstHasTheOpposite) {
  const std::vector<Tensor> plain = of_two_classes().run();
  EXPECT_EQ(difference(plain[0], Tensor::of<std::string>({2}, {"no", "yes"}), {}), "");
  expect_numbers(plain[1], {-3.7725, 3.7725, 2.44, -2.44});
  expect_numbers(of_two_classes().set("post_transform", std::string("LOGISTIC")).run()[1],
                 {0.022477627, 0.97752237, 0.9198271, 0.080172896});
  expect_numbers(of_two_classes().set("post_transform", std::string("SOFTMAX")).run()[1],
                 {-2.7725, 3.7725, 3.44, -2.44});
}

// Equal numbers of equal support vectors on both sides: nothing is left, so that the second of the pair has the vote.
TEST(SupportVectors, SumsThatCancelAreZero) {
  const int64_t each = 9;
  Reals coefficients, vectors;
  for (int64_t k = 0; k < 2 * each; ++k) {
    coefficients.push_back(k < each ? 1 : -1);
    vectors.push_back(static_cast<float>(k % each) / 7);
    vectors.push_back(0.3F);
  }
  const std::vector<Tensor> outputs = machine(coefficients, {0})
                                          .set("kernel_type", std::string("RBF"))
                                          .set("vectors_per_class", Integers{each, each})
                                          .set("support_vectors", vectors)
                                          .set("classlabels_ints", Integers{4, 7})
                                          .run();
  EXPECT_EQ(outputs[0].to_i64(), (Integers{7, 7}));
  EXPECT_EQ(outputs[1].to_f64(), (Numbers{0, 0, 0, 0}));
}

TEST(SupportVectors, WithoutThemClassifiersAreLinear) {
  const auto linear = [](const Reals& coefficients, const Integers& labels) {
    return machine(coefficients, {0.1F}).set("classlabels_ints", labels).run();
  };
  const std::vector<Tensor> three = linear({1, -1, 0.5F, 0.25F, 2, 1}, {4, 7, 9});
  EXPECT_EQ(three[0].to_i64(), (Integers{9, 7}));
  expect_numbers(three[1], {-0.9, 1.1, 4.1, -3.4, -1.275, -5.4});
  EXPECT_EQ(linear({1, -1, 0.5F, 0.25F}, {4, 7})[0].to_i64(), (Integers{7, 7}));
  EXPECT_EQ(linear({1, 1, 0.5F, 0.25F}, {4, 7})[0].to_i64(), (Integers{7, 7}));
}

TEST(SupportVectors, ListsThatDoNotFitAreRefused) {
  EXPECT_THROW(of_three_classes().set("prob_a", Reals{1, 2}).run(), UnsupportedError);
  EXPECT_THROW(machine({1, 2}, {0.1F}).set("classlabels_ints", Integers{4}).run(), UnsupportedError);
  EXPECT_THROW(machine({1, 2, 3}, {0.1F}).set("classlabels_ints", Integers{4, 7}).run(), UnsupportedError);
  EXPECT_THROW(machine({1, 2, 3}, {0.1F})
                   .set("vectors_per_class", Integers{1, 1})
                   .set("support_vectors", Reals{1, 2, 3, 4})
                   .set("classlabels_ints", Integers{4, 7})
                   .run(),
               UnsupportedError);
}

}  // namespace
}  // namespace autograph::tests
