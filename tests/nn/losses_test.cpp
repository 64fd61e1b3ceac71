// Losses against their formulas, and where they are steep or overflow.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autograph/error.h"
#include "autograph/nn/losses.h"
#include "nn/module_check.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

using Floats = std::vector<float>;

double loss_of(const std::vector<Tensor>& inputs, const std::function<Var(const std::vector<Var>&)>& make) {
  return evaluate(inputs, [&](const std::vector<Var>& in) { return std::vector<Var>{make(in)}; })[0].to_f64()[0];
}

double loss_of(const Floats& x, const Floats& t, const std::function<Var(const Var&, const Var&)>& make) {
  const Dims dims{static_cast<int64_t>(x.size())};
  return loss_of({Tensor::of<float>(dims, x), Tensor::of<float>(dims, t)},
                 [&](const std::vector<Var>& in) { return make(in[0], in[1]); });
}

TEST(Losses, OfDifferences) {
  const Floats x{1, -2, 4, 0.5F}, t{0, -1.5F, 1, 0.5F};  // 1, -0.5, 3, 0
  const auto square = [](const Var& a, const Var& b) { return mse_loss(a, b); };
  EXPECT_NEAR(loss_of(x, t, square), (1 + 0.25 + 9) / 4, 1e-6);
  const auto size = [](const Var& a, const Var& b) { return l1_loss(a, b); };
  EXPECT_NEAR(loss_of(x, t, size), 4.5 / 4, 1e-6);
  const auto huber = [](const Var& a, const Var& b) { return huber_loss(a, b, 0.8); };
  EXPECT_NEAR(loss_of(x, t, huber), (0.8 * (1 - 0.4) + 0.125 + 0.8 * (3 - 0.4)) / 4, 1e-6);
  const auto smooth = [](const Var& a, const Var& b) { return smooth_l1_loss(a, b, 0.8); };
  EXPECT_NEAR(loss_of(x, t, smooth), ((1 - 0.4) + 0.125 / 0.8 + (3 - 0.4)) / 4, 1e-6);
}

TEST(Losses, OfYesAndNo) {
  const Floats x{0.3F, -2, 80, -80}, t{1, 0.25F, 0, 1};
  const auto one = [](double score, double target, double weight) {
    const double yes = -std::log(1 / (1 + std::exp(-score))), no = score + yes;
    return weight * target * yes + (1 - target) * no;
  };
  const auto plain = [](const Var& a, const Var& b) { return bce_with_logits(a, b); };
  EXPECT_NEAR(loss_of(x, t, plain), (one(0.3, 1, 1) + one(-2, 0.25, 1) + 80 + 80) / 4, 1e-5);
  const auto weighted = [](const Var& a, const Var& b) {
    return bce_with_logits(a, b, {.positive_weight = scalar_like(a, 3)});
  };
  EXPECT_NEAR(loss_of(x, t, weighted), (one(0.3, 1, 3) + one(-2, 0.25, 3) + 80 + 240) / 4, 1e-5);
}

TEST(Losses, KullbackLeibler) {
  const Tensor log_q = Tensor::of<float>({2, 2}, {std::log(0.5F), std::log(0.5F), std::log(0.9F), std::log(0.1F)});
  const Tensor p = Tensor::of<float>({2, 2}, {0.25F, 0.75F, 1, 0});
  const double expected = 0.25 * std::log(0.5) + 0.75 * std::log(1.5) + std::log(1 / 0.9);
  EXPECT_NEAR(loss_of({log_q, p}, [](const auto& in) { return kl_div(in[0], in[1]); }), expected / 2, 1e-6);
}

// softmax cross entropy written out: scores [n, classes], labels, weights.
double cross_entropy_of(const Tensor& scores, const std::vector<int64_t>& labels, const std::vector<double>& weights,
                        double smoothing, int64_t ignored) {
  const std::vector<double> x = scores.to_f64();
  const auto classes = static_cast<size_t>(scores.dims()[1]);
  double sum = 0, total = 0;
  for (size_t n = 0; n < labels.size(); ++n) {
    if (labels[n] == ignored) continue;
    double norm = 0;
    for (size_t c = 0; c < classes; ++c) norm += std::exp(x[n * classes + c]);
    const auto label = static_cast<size_t>(labels[n]);
    total += weights[label];
    for (size_t c = 0; c < classes; ++c) {
      const double log_prob = x[n * classes + c] - std::log(norm);
      const double share = smoothing / static_cast<double>(classes) + (c == label ? 1 - smoothing : 0);
      sum -= weights[c] * share * log_prob;
    }
  }
  return sum / total;
}

TEST(Losses, CrossEntropy) {
  const Tensor scores = drawn({5, 3}, 1), weights = Tensor::of<float>({3}, {1, 2, 0.5F});
  const std::vector<int64_t> labels{0, 2, -100, 1, 2};
  const Tensor given = Tensor::of<int64_t>({5}, labels);
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions options{.label_smoothing = smoothing, .ignore_index = -100};
    EXPECT_NEAR(loss_of({scores, given}, [&](const auto& in) { return cross_entropy(in[0], in[1], options); }),
                cross_entropy_of(scores, labels, {1, 1, 1}, smoothing, -100), 1e-5);
    const auto weighted = [&](const std::vector<Var>& in) {
      CrossEntropyOptions with_weights = options;
      with_weights.class_weights = in[2];
      return cross_entropy(in[0], in[1], with_weights);
    };
    EXPECT_NEAR(loss_of({scores, given, weights}, weighted),
                cross_entropy_of(scores, labels, {1, 2, 0.5}, smoothing, -100), 1e-5);
  }
  EXPECT_NE(
      message_of<ValueError>([&] {
        loss_of({scores, given}, [](const auto& in) { return cross_entropy(in[0], in[1], {.label_smoothing = 2}); });
      }).find("0 <= label_smoothing <= 1"),
      std::string::npos);
}

TEST(Losses, Accuracy) {
  const Tensor scores = Tensor::of<float>({4, 2}, {1, 0, 0, 1, 2, 3, 3, 2});
  const Tensor labels = Tensor::of<int64_t>({4}, {0, 1, 0, 0});
  EXPECT_EQ(loss_of({scores, labels}, [](const auto& in) { return accuracy(in[0], in[1]); }), 0.75);
}

// Numbers of torch: mixup's labels are probabilities of all classes.
TEST(Losses, CrossEntropyOfProbabilities) {
  const Tensor scores = Tensor::of<float>({2, 3}, {0.2F, -0.4F, 1.0F, 1.5F, -2.0F, 0.1F});
  const Tensor target = Tensor::of<float>({2, 3}, {0.14822545647621155F, 0.04039615020155907F, 0.8113784193992615F,
                                                   0.5064803957939148F, 0.18632373213768005F, 0.30719590187072754F});
  const Tensor weights = Tensor::of<float>({3}, {0.5F, 2, 1});
  const auto loss = [&](double smoothing, bool weighted) {
    return loss_of({scores, target, weights}, [&](const std::vector<Var>& in) {
      return cross_entropy(in[0], in[1], {.label_smoothing = smoothing, .class_weights = weighted ? in[2] : Var()});
    });
  };
  EXPECT_NEAR(loss(0, false), 1.0149619579315186, 1e-6);
  EXPECT_NEAR(loss(0.1, false), 1.0704280138015747, 1e-6);
  EXPECT_NEAR(loss(0, true), 1.3225799798965454, 1e-6);
  EXPECT_NEAR(loss(0.1, true), 1.4287223815917969, 1e-6);
  // Where all of the probability is with one class it is the loss of that label, and so is the accuracy.
  const Tensor hard = Tensor::of<float>({2, 3}, {0, 0, 1, 0, 1, 0});
  const Tensor labels = Tensor::of<int64_t>({2}, {2, 1});
  const auto of = [&](const Tensor& wanted, const auto& make) {
    return loss_of({scores, wanted}, [&](const std::vector<Var>& in) { return make(in[0], in[1]); });
  };
  const auto entropy = [](const Var& x, const Var& t) { return cross_entropy(x, t); };
  EXPECT_NEAR(of(hard, entropy), of(labels, entropy), 1e-6);
  EXPECT_EQ(of(hard, accuracy), 0.5);
  EXPECT_EQ(of(labels, accuracy), 0.5);
  EXPECT_NE(message_of<ValueError>([&] {
              loss_of({scores, hard},
                      [](const std::vector<Var>& in) { return cross_entropy(in[0], in[1], {.ignore_index = 1}); });
            }).find("ignore_index"),
            std::string::npos);
}

}  // namespace
}  // namespace autograph::nn
