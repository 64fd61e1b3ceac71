// CTC against torch, against the sum over all ways through time, and its gradient against differences of that sum.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "autograph/eager.h"
#include "autograph/nn/losses.h"
#include "autograph/ops/activation.h"
#include "nn/module_check.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

using Labels = std::vector<int64_t>;

Tensor labels(Dims dims, const Labels& values) { return Tensor::of<int64_t>(std::move(dims), values); }

// -log of the sum over all C^T ways that spell `target`; log_prob is [steps, classes].
double by_enumeration(const std::vector<double>& log_prob, int64_t steps, int64_t classes, const Labels& target,
                      int64_t blank) {
  double sum = 0;
  Labels way(static_cast<size_t>(steps), 0);
  while (true) {
    Labels spelt;
    double log_of_way = 0;
    for (size_t t = 0; t < way.size(); ++t) {
      log_of_way += log_prob[t * static_cast<size_t>(classes) + static_cast<size_t>(way[t])];
      if (way[t] != blank && (t == 0 || way[t] != way[t - 1])) spelt.push_back(way[t]);
    }
    if (spelt == target) sum += std::exp(log_of_way);
    size_t t = 0;
    while (t < way.size() && ++way[t] == classes) way[t++] = 0;
    if (t == way.size()) return -std::log(sum);
  }
}

TEST(CtcLoss, IsThatOfTorch) {
  const Tensor x = Tensor::of<float>(
      {6, 3, 4}, {-1.13F, -1.15F, -0.25F, -0.43F, 0.85F,  0.69F,  -0.32F, -2.12F, 0.32F,  -1.26F, 0.35F,  0.31F,
                  0.12F,  1.24F,  1.12F,  -0.25F, -1.35F, -1.7F,  0.57F,  0.79F,  0.6F,   -1.56F, -0.34F, 1.85F,
                  0.75F,  -0.59F, -0.17F, 0.18F,  1.39F,  1.59F,  0.95F,  -0.84F, -0.61F, 0.03F,  -0.49F, 0.25F,
                  0.44F,  0.11F,  0.64F,  0.44F,  -0.1F,  0.79F,  -0.29F, 0.05F,  0.52F,  2.3F,   -1.47F, -1.59F,
                  -0.67F, 0.87F,  1.06F,  0.18F,  -0.23F, -0.39F, 0.54F,  -0.4F,  1.51F,  2.08F,  1.71F,  2.38F,
                  -1.13F, -0.32F, -1.09F, -0.09F, 0.33F,  -0.76F, -1.6F,  0.02F,  -0.75F, 0.19F,  0.62F,  0.64F});
  const std::vector<Tensor> given{x, labels({3, 3}, {1, 2, 2, 3, 1, 0, 2, 0, 0}), labels({3}, {6, 5, 6}),
                                  labels({3}, {3, 2, 1})};
  const auto found = evaluate(given, [](const std::vector<Var>& in) {
    const Var log_prob = log_softmax(in[0], 2);
    return std::vector<Var>{ctc_loss(log_prob, in[1], in[2], in[3], {.reduction = Reduction::none}),
                            ctc_loss(log_prob, in[1], in[2], in[3])};
  });
  const std::vector<double> expected{5.681478500366211, 3.230055570602417, 8.086506843566895};
  for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(found[0].to_f64()[i], expected[i], 1e-5);
  EXPECT_NEAR(found[1].to_f64()[0], 3.8651201725006104, 1e-5);
  // Line by line, with the gradient.
  const Var scores = variable(x);
  backward(ctc_loss(log_softmax(scores, 2), eager(given[1]), eager(given[2]), eager(given[3])));
  const std::vector<double> gradient = elements(autograph::gradient(scores)).to_f64();
  const std::vector<double> first{-0.0003460321750026196, -0.07641270011663437, 0.04182421416044235,
                                  0.03493452072143555,    -0.08214299380779266, 0.06415353715419769};
  for (size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(gradient[i], first[i], 1e-5);
  EXPECT_NEAR(gradient[71], 0.11626952886581421, 1e-5);
  for (size_t i = 64; i < 68; ++i) EXPECT_EQ(gradient[i], 0);  // a step behind the end of its sample
}

TEST(CtcLoss, IsTheSumOverAllWays) {
  std::mt19937 random(17);
  for (int trial = 0; trial < 30; ++trial) {
    const int64_t steps = 1 + random() % 5, classes = 2 + random() % 3, blank = random() % classes;
    Labels target;
    for (size_t i = random() % 4; i > 0; --i) {
      target.push_back((blank + 1 + static_cast<int64_t>(random() % static_cast<size_t>(classes - 1))) % classes);
    }
    const auto length = static_cast<int64_t>(target.size());
    Labels padded = target;
    padded.resize(4, -7);  // never looked at
    const Tensor x = drawn({steps + 2, 1, classes}, random());
    const auto found = evaluate(
        {x, labels({1, 4}, padded), labels({1}, {steps}), labels({1}, {length})}, [&](const std::vector<Var>& in) {
          const Var log_prob = log_softmax(in[0], 2);
          return std::vector<Var>{
              log_prob, ctc_loss(log_prob, in[1], in[2], in[3], {.blank = blank, .reduction = Reduction::none})};
        });
    const double expected = by_enumeration(found[0].to_f64(), steps, classes, target, blank);
    const double actual = found[1].to_f64()[0];
    if (std::isinf(expected))
      EXPECT_EQ(actual, expected);
    else
      EXPECT_NEAR(actual, expected, 1e-4 * (1 + std::fabs(expected))) << trial;
  }
}

TEST(CtcLoss, ItsGradientIsThatOfTheSum) {
  const int64_t steps = 4, classes = 3;
  const Labels target{1, 1};
  const Tensor x = drawn({steps, 1, classes}, 5);
  const Var log_prob = variable(x);
  backward(ctc_loss(log_prob, eager(labels({1, 2}, target)), eager(labels({1}, {steps})), eager(labels({1}, {2}))));
  const std::vector<double> gradient = elements(autograph::gradient(log_prob)).to_f64();
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < gradient.size(); ++i) {
    std::vector<double> up = x.to_f64(), down = up;
    up[i] += kStep;
    down[i] -= kStep;
    const double slope =
        (by_enumeration(up, steps, classes, target, 0) - by_enumeration(down, steps, classes, target, 0)) /
        (2 * kStep) / 2;  // two labels
    EXPECT_NEAR(gradient[i], slope, 1e-5) << i;
  }
}

TEST(CtcLoss, LabelsThatDoNotFit) {
  // Two equal labels need a blank between them: three steps.
  const auto loss = [](bool zero_infinity) {
    const Var log_prob = variable(drawn({2, 1, 3}, 1));
    const Var cost = ctc_loss(log_prob, eager(labels({1, 2}, {1, 1})), eager(labels({1}, {2})), eager(labels({1}, {2})),
                              {.blank = 0, .zero_infinity = zero_infinity});
    backward(cost);
    return std::pair(item(cost), elements(autograph::gradient(log_prob)).to_f64());
  };
  EXPECT_EQ(loss(false).first, std::numeric_limits<double>::infinity());
  EXPECT_EQ(loss(true).first, 0);
  EXPECT_EQ(loss(true).second, std::vector<double>(6, 0));
  const Var x = eager(drawn({2, 1, 3}, 1));
  const Var some = eager(labels({1, 1}, {1})), one = eager(labels({1}, {1}));
  EXPECT_NE(message_of<ValueError>([&] { ctc_loss(x, some, one, one, {.blank = 3}); }).find("got 3"),
            std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { ctc_loss(x, one, one, one); }).find("targets [batch, labels]"),
            std::string::npos);
}

}  // namespace
}  // namespace autograph::nn
