// Recurrent layers against PyTorch, and gradients against differences.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/error.h"
#include "autograph/nn/recurrent.h"
#include "nn/both_ways.h"
#include "nn/module_check.h"
#include "nn/torch_numbers.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

std::vector<Tensor> run(RecurrentModule& module, const std::vector<Tensor>& inputs) {
  return evaluate(inputs, [&](const std::vector<Var>& in) {
    const RecurrentOutput out = module.run(in[0], in.size() > 1 ? in[1] : Var(), in.size() > 2 ? in[2] : Var());
    std::vector<Var> list{out.y, out.hidden};
    if (out.cell.is_valid()) list.push_back(out.cell);
    return list;
  });
}

constexpr RecurrentSettings kTwoLayers{.layers = 2, .bidirectional = true};

TEST(Recurrent, RnnIsTorchs) {
  Rnn rnn(3, 4, kTwoLayers);
  fill_by_formula(rnn);
  const std::vector<Tensor> out = run(rnn, {input_by_formula({5, 2, 3})});
  EXPECT_EQ(out[0].dims(), (Dims{5, 2, 8}));
  EXPECT_EQ(out[1].dims(), (Dims{4, 2, 4}));
  expect_torchs(out[0], {{-0.344916, -0.512378, -0.472128, -0.230210}, -27.220880, -0.270510});
  expect_torchs(out[1], {{-0.086134, -0.136472, -0.918821, 0.309667}, -5.255223, 2.142839});
}

TEST(Recurrent, GruIsTorchs) {
  Gru gru(3, 4, kTwoLayers);
  fill_by_formula(gru);
  const std::vector<Tensor> out = run(gru, {input_by_formula({5, 2, 3})});
  expect_torchs(out[0], {{0.020849, -0.064053, -0.117896, -0.114146}, -9.704676, -0.514470});
  expect_torchs(out[1], {{-0.061043, 0.184362, -0.304280, -0.402365}, -0.542040, 0.491732});
}

TEST(Recurrent, LstmIsTorchs) {
  Lstm lstm(3, 4, kTwoLayers);
  fill_by_formula(lstm);
  const std::vector<Tensor> out = run(lstm, {input_by_formula({5, 2, 3})});
  expect_torchs(out[0], {{-0.094275, -0.109225, -0.066504, 0.028886}, -8.134776, -0.675222});
  expect_torchs(out[1], {{-0.098900, 0.005611, -0.242884, -0.454999}, -2.427182, -0.390011});
  expect_torchs(out[2], {{-0.201299, 0.011139, -0.475725, -0.796766}, -2.841510, -0.449200});
}

TEST(Recurrent, LstmGoesOnFromGivenStates) {
  Lstm lstm(3, 4, {.batch_first = true});
  fill_by_formula(lstm);
  const std::vector<Tensor> out =
      run(lstm, {input_by_formula({2, 5, 3}), input_by_formula({1, 2, 4}), input_by_formula({1, 2, 4}, 0.5)});
  EXPECT_EQ(out[0].dims(), (Dims{2, 5, 4}));
  expect_torchs(out[0], {{-0.094982, 0.138323, -0.257812, -0.303166}, -5.674251, -0.417919});
  expect_torchs(out[2], {{0.130286, -0.054176, -0.584540, -0.570090}, -2.063406, -0.998336});
}

TEST(Recurrent, NamesAreTorchs) {
  const Lstm lstm(3, 4, kTwoLayers);
  std::vector<std::string> names;
  for (const Parameter* parameter : lstm.parameters()) names.push_back(parameter->path());
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 6),
            (std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                      "weight_ih_l0_reverse", "weight_hh_l0_reverse"}));
  EXPECT_EQ(names.back(), "bias_hh_l1_reverse");
  EXPECT_EQ(lstm.tensor("weight_ih_l1").dims(), (Dims{16, 8}));
}

TEST(Recurrent, GradientsAreThoseOfDifferences) {
  const auto check = [](RecurrentModule& module) {
    return slope_error(module, {drawn({4, 2, 3}, 1)},
                       [&](const std::vector<Var>& in) { return std::vector<Var>{module(in[0])}; });
  };
  Rnn rnn(3, 4);
  EXPECT_EQ(check(rnn), "");
  Gru gru(3, 4, {.layers = 2});
  EXPECT_EQ(check(gru), "");
  Lstm lstm(3, 4, {.bidirectional = true});
  EXPECT_EQ(check(lstm), "");
}

// The formulas, position by position.
TEST(Recurrent, SruIsItsFormula) {
  constexpr int64_t kWidth = 3, kBatch = 2, kLength = 4;
  Sru sru(kWidth);
  fill_by_formula(sru);
  const Tensor x = drawn({kLength, kBatch, kWidth}, 5);
  const std::vector<double> w = sru.tensor("weight").value().to_f64(), v = sru.tensor("weight_c").value().to_f64(),
                            b = sru.tensor("bias").value().to_f64(), in = x.to_f64(), y = evaluate(sru, x).to_f64();
  const auto sigmoid = [](double s) { return 1 / (1 + std::exp(-s)); };
  for (int64_t n = 0; n < kBatch; ++n) {
    std::vector<double> cell(kWidth, 0.0);
    for (int64_t t = 0; t < kLength; ++t) {
      const auto begin = static_cast<size_t>((t * kBatch + n) * kWidth);
      std::vector<double> next(kWidth);
      for (size_t j = 0; j < kWidth; ++j) {
        const auto product = [&](size_t gate) {
          double sum = 0;
          for (size_t k = 0; k < kWidth; ++k) sum += w[(gate * kWidth + j) * kWidth + k] * in[begin + k];
          return sum;
        };
        const double f = sigmoid(product(1) + v[j] * cell[j] + b[j]);
        const double r = sigmoid(product(2) + v[kWidth + j] * cell[j] + b[kWidth + j]);
        next[j] = f * cell[j] + (1 - f) * product(0);
        EXPECT_NEAR(y[begin + j], r * next[j] + (1 - r) * in[begin + j], 1e-5);
      }
      cell = next;
    }
  }
  EXPECT_EQ(slope_error(sru, {x}, [&](const std::vector<Var>& at) { return std::vector<Var>{sru(at[0])}; }), "");
}

TEST(Recurrent, RnnWithReluIsTorchs) {
  Rnn one(3, 4, {.relu = true}), two(3, 4, {.layers = 2, .bidirectional = true, .relu = true});
  fill_by_formula(one);
  fill_by_formula(two);
  expect_torchs("one layer", one, input_by_formula({5, 2, 3}), {5, 2, 4},
                {{0.000000, 0.000000, 0.000000}, 0.794445, -0.194057},
                {{0.000000, 0.000000, 0.000000}, -0.753704, -0.026279});
  expect_torchs("two layers", two, input_by_formula({5, 2, 3}), {5, 2, 8},
                {{0.000000, 0.000000, 0.000000}, 1.427081, 0.133979},
                {{0.073754, 0.030996, -0.026340}, -0.165416, -0.286426});
  EXPECT_EQ(message_of<ValueError>([] { Lstm(3, 4, {.relu = true}); }),
            "[nn] recurrent: expected relu of an Rnn alone");
}

}  // namespace
}  // namespace autograph::nn
