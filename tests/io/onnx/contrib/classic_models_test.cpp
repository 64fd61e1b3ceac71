// Ops of ai.onnx.ml that are spelled out: small cases, with the numbers that ONNX Runtime gives.
#include <limits>

#include "autograph/error.h"
#include "io/ml_node.h"

namespace autograph::tests {
namespace {

ContribNode classifier(int64_t scores) {
  std::vector<float> coefficients{1, -1, 0.5, 0.25}, intercepts{0.1F, 0.2F};
  coefficients.resize(static_cast<size_t>(2 * scores));
  intercepts.resize(static_cast<size_t>(scores));
  return ml_node("LinearClassifier")
      .input(features())
      .set("coefficients", coefficients)
      .set("intercepts", intercepts)
      .set("classlabels_ints", std::vector<int64_t>{4, 7})
      .outputs({true, true});
}

TEST(ClassicModels, ClassifiersOfTwoScores) {
  const std::vector<Tensor> plain = classifier(2).run();
  EXPECT_EQ(plain[0].to_i64(), (std::vector<int64_t>{7, 7}));
  expect_numbers(plain[1], {-0.9, 1.2, -3.4, -1.175});
  expect_numbers(classifier(2).set("post_transform", std::string("LOGISTIC")).run()[1],
                 {0.28905052, 0.76852477, 0.03229544, 0.23595241});
  expect_numbers(classifier(2).set("post_transform", std::string("SOFTMAX")).run()[1],
                 {0.10909683, 0.89090317, 0.09752782, 0.9024722});
}

TEST(ClassicModels, ScoresOfZeroAreLeftOutOfASoftmax) {
  const auto y = ml_node("LinearClassifier")
                     .input(features())
                     .set("coefficients", std::vector<float>{1, -1, 0, 0, 0.5, 0.25})
                     .set("intercepts", std::vector<float>{0.1F, 0, 0.2F})
                     .set("classlabels_ints", std::vector<int64_t>{4, 7, 8})
                     .set("post_transform", std::string("SOFTMAX_ZERO"))
                     .outputs({true, true})
                     .run();
  EXPECT_EQ(y[0].to_i64(), (std::vector<int64_t>{8, 7}));
  expect_numbers(y[1], {0.10909683, 0, 0.89090317, 0.09752782, 0, 0.9024722});
}

TEST(ClassicModels, OneScoreIsForTheSecondClass) {
  const std::vector<Tensor> plain = classifier(1).run();
  EXPECT_EQ(plain[0].to_i64(), (std::vector<int64_t>{4, 4}));
  expect_numbers(plain[1], {1.9, -0.9, 4.4, -3.4});
  expect_numbers(classifier(1).set("post_transform", std::string("LOGISTIC")).run()[1],
                 {0.71094948, 0.28905052, 0.96770456, 0.03229544});
  EXPECT_THROW(classifier(1).set("post_transform", std::string("PROBIT")).run(), UnsupportedError);
}

TEST(ClassicModels, ProbitOfScoresIsTheNormalQuantileByWinitzkisFormula) {
  const auto model = [](const char* op, int targets) {
    std::vector<float> coefficients{0.1F, 0.2F, 0.3F, 0.05F}, intercepts{0.1F, 0.2F};
    coefficients.resize(static_cast<size_t>(2 * targets));
    intercepts.resize(static_cast<size_t>(targets));
    return ml_node(op)
        .input(f32({2, 2}, {1, 2, -0.5F, 1.5F}))
        .set("coefficients", coefficients)
        .set("intercepts", intercepts)
        .set("post_transform", std::string("PROBIT"));
  };
  const std::vector<double> expected{0.25335285, 0.25335285, -0.3853398, -1.15053502};
  const auto classes =
      model("LinearClassifier", 2).set("classlabels_ints", std::vector<int64_t>{4, 7}).outputs({true, true});
  expect_numbers(classes.run()[1], expected);
  expect_numbers(model("LinearRegressor", 2).set("targets", 2).result(), expected);
  expect_numbers(model("LinearRegressor", 1).set("targets", 1).result(), {expected[0], expected[2]});
}

TEST(ClassicModels, RegressorsTransformSeveralTargets) {
  const auto regressor = [](int targets) {
    std::vector<float> coefficients{1, -1, 0.5, 0.25};
    coefficients.resize(static_cast<size_t>(2 * targets));
    return ml_node("LinearRegressor")
        .input(features())
        .set("coefficients", coefficients)
        .set("targets", targets)
        .set("post_transform", std::string("LOGISTIC"));
  };
  expect_numbers(regressor(1).result(), {-1, -3.5});
  expect_numbers(regressor(2).result(), {0.26894142, 0.73105858, 0.02931223, 0.20181322});
  EXPECT_THROW(ml_node("LinearRegressor")
                   .input(features())
                   .set("coefficients", std::vector<float>{1, 2, 3})
                   .set("targets", 2)
                   .result(),
               UnsupportedError);
}

TEST(ClassicModels, NormsOfRows) {
  const Tensor x = f32({3, 2}, {1, 2, -3, 0.5, 0, 0});
  expect_numbers(ml_node("Normalizer").input(x).result(), {0.5, 1, -6, 1, 0, 0});
  expect_numbers(ml_node("Normalizer").input(x).set("norm", std::string("L1")).result(),
                 {1 / 3.0, 2 / 3.0, -6 / 7.0, 1 / 7.0, 0, 0});
  expect_numbers(ml_node("Normalizer").input(x).set("norm", std::string("L2")).result(),
                 {0.44721360, 0.89442719, -0.98639393, 0.16439898, 0, 0});
}

TEST(ClassicModels, MissingValues) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = f32({2, 2}, {nan, 2, 0, 0});
  expect_numbers(ml_node("Imputer")
                     .input(x)
                     .set("imputed_value_floats", std::vector<float>{5, 6})
                     .set("replaced_value_float", nan)
                     .result(),
                 {5, 2, 0, 0});
  expect_numbers(
      ml_node("Imputer").input(f32({1, 2}, {0, 3})).set("imputed_value_floats", std::vector<float>{5}).result(),
      {5, 3});
  expect_numbers(ml_node("Imputer")
                     .input(i64({2}, {7, 3}))
                     .set("imputed_value_int64s", std::vector<int64_t>{1})
                     .set("replaced_value_int64", 7)
                     .result(),
                 {1, 3});
}

TEST(ClassicModels, ColumnsAndCategories) {
  expect_numbers(ml_node("FeatureVectorizer").input(features()).input(i64({2, 1}, {8, 9})).result(),
                 {1, 2, 8, -3, 0.5, 9});
  const Tensor hot =
      ml_node("OneHotEncoder").input(i64({3}, {2, 9, 4})).set("cats_int64s", std::vector<int64_t>{4, 2}).result();
  EXPECT_EQ(hot.dims(), (Dims{3, 2}));
  expect_numbers(hot, {0, 1, 0, 0, 1, 0});
}

TEST(ClassicModels, CategoriesOfText) {
  const Tensor colours = Tensor::of<std::string>({3}, {"red", "blue", "green"});
  const std::vector<std::string> known{"green", "red"};
  const Tensor hot = ml_node("OneHotEncoder").input(colours).set("cats_strings", known).result();
  EXPECT_EQ(hot.dims(), (Dims{3, 2}));
  expect_numbers(hot, {0, 1, 0, 0, 1, 0});
  EXPECT_THROW(ml_node("OneHotEncoder").input(colours).set("cats_int64s", std::vector<int64_t>{1}).result(),
               UnsupportedError);

  const auto mapper = [&](const Tensor& x) {
    return ml_node("CategoryMapper")
        .input(x)
        .set("cats_strings", known)
        .set("cats_int64s", std::vector<int64_t>{5, 8})
        .set("default_string", std::string("none"))
        .result();
  };
  EXPECT_EQ(mapper(colours).to_i64(), (std::vector<int64_t>{8, -1, 5}));
  EXPECT_EQ(difference(mapper(i64({3}, {5, 6, 8})), Tensor::of<std::string>({3}, {"green", "none", "red"}), {}), "");
}

// scikit-learn's encoder writes this where nobody says what to do with categories that it has not seen.
TEST(ClassicModels, UnknownCategoriesAreRefusedWhereZerosAreNotAllowed) {
  const auto encoder = [](const Tensor& x) {
    return ml_node("OneHotEncoder")
        .input(x)
        .set("cats_int64s", std::vector<int64_t>{4, 2})
        .set("cats_strings", std::vector<std::string>{"green", "red"})
        .set("zeros", 0);
  };
  expect_numbers(encoder(i64({2}, {2, 4})).result(), {0, 1, 1, 0});
  expect_numbers(encoder(Tensor::of<std::string>({2}, {"red", "green"})).result(), {0, 1, 1, 0});
  EXPECT_THROW(encoder(i64({2}, {2, 9})).result(), UserError);
  EXPECT_THROW(encoder(Tensor::of<std::string>({1}, {"blue"})).result(), UserError);
}

TEST(ClassicModels, NumbersAreExpectedWhereTextMeansNothing) {
  EXPECT_THROW(ml_node("Normalizer").input(Tensor::of<std::string>({1, 1}, {"red"})).result(), FormatError);
}

// A file gives a list of maps; who reads the scores finds them in the order of the classes.
TEST(ClassicModels, MapsOfScoresAreTheScores) {
  const Tensor y = ml_node("ZipMap").input(features()).set("classlabels_int64s", std::vector<int64_t>{4, 7}).result();
  EXPECT_EQ(y.dims(), (Dims{2, 2}));
  expect_numbers(y, {1, 2, -3, 0.5});
}

}  // namespace
}  // namespace autograph::tests
