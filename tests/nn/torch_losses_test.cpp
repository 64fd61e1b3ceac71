// Losses with all reductions: numbers of torch, also those of gradients, in a graph, line by line and captured.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "autograph/error.h"
#include "autograph/nn/losses.h"
#include "autograph/ops/activation.h"
#include "nn/both_ways.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

Var filled(const Var& like, const Dims& dims, const std::function<double(int64_t)>& element) {
  Tensor value = Tensor::empty(DType::f32, dims);
  for (int64_t i = 0; i < value.num_elements(); ++i) value.mutable_data<float>()[i] = static_cast<float>(element(i));
  return constant_like(like, value);
}

Var targets(const Var& like) {
  return filled(like, {4, 3}, [](int64_t i) { return std::sin(2.1 * static_cast<double>(i)); });
}

Var shares(const Var& like) { return (targets(like) + 1) / 2; }

Var counts(const Var& like) {
  return filled(like, {4, 3}, [](int64_t i) { return static_cast<double>(i % 6); });
}

Var signs(const Var& like, const Dims& dims) {
  return filled(like, dims, [](int64_t i) { return i % 6 == 0 || i % 6 == 2 || i % 6 == 5 ? 1 : -1; });
}

Var labels(const Var& like) { return constant_like(like, Tensor::of<int64_t>({3, 2}, {0, 3, -100, 2, 1, 1})); }

Var row(const Var& like, const std::vector<float>& values) {
  return constant_like(like, Tensor::of<float>({static_cast<int64_t>(values.size())}, values));
}

struct Row {
  std::string name;
  std::function<Var(const Var& x, Reduction)> loss;
  TorchNumbers each, slope, mean, slope_of_mean;
};

double total(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

// Both sums follow from the losses of all elements; of those and of the mean the gradients are torch's, too.
void expect_losses_of_torch(const std::vector<Row>& rows, const Dims& dims, const Dims& of_losses) {
  const Tensor x = input_by_formula(dims);
  for (const Row& row : rows) {
    const auto with = [&](Reduction reduction) {
      return [&row, reduction](const std::vector<Var>& in) { return std::vector<Var>{row.loss(in[0], reduction)}; };
    };
    expect_torchs(row.name + ", none", x, with(Reduction::none), of_losses, row.each, row.slope);
    expect_torchs(row.name + ", mean", x, with(Reduction::mean), {}, row.mean, row.slope_of_mean);
    const double sum = total(evaluate({x}, with(Reduction::none))[0].to_f64());
    EXPECT_NEAR(evaluate({x}, with(Reduction::sum))[0].to_f64()[0], sum, 1e-4) << row.name;
    EXPECT_NEAR(evaluate({x}, with(Reduction::batch_mean))[0].to_f64()[0], sum / static_cast<double>(dims[0]), 1e-4)
        << row.name;
  }
}

// Numbers of torch 2.15.
TEST(TorchLosses, OfElements) {
  const std::vector<Row> rows{
      {"mse",
       [](const Var& x, Reduction r) { return mse_loss(x, targets(x), r); },
       {{1, 0.354871, 0.000215708}, 9.724229, -1.214923},
       {{2, -0.7405992, -0.006673835}, -2.381256, -0.9296824},
       {{0.8103524}, 0.8103524, 0},
       {{0.1666667, -0.09928509, 0.002447834}, 0.183486, -0.5778187}},
      {"l1",
       [](const Var& x, Reduction r) { return l1_loss(x, targets(x), r); },
       {{1, 0.5957105, 0.014687}, 8.136931, -0.4825393},
       {{1, -0.62161, -0.2272021}, -0.0594573, -0.02648205},
       {{0.6780775}, 0.6780775, 0},
       {{0.08333334, -0.08333334, 0.08333334}, 0.3333333, -0.1128627}},
      {"smooth_l1, beta 0",
       [](const Var& x, Reduction r) { return smooth_l1_loss(x, targets(x), 0, r); },
       {{1, 0.5957105, 0.014687}, 8.136931, -0.4825393},
       {{1, -0.62161, -0.2272021}, -0.0594573, -0.02648205},
       {{0.6780775}, 0.6780775, 0},
       {{0.08333334, -0.08333334, 0.08333334}, 0.3333333, -0.1128627}},
      {"smooth_l1",
       [](const Var& x, Reduction r) { return smooth_l1_loss(x, targets(x), 0.5, r); },
       {{0.75, 0.3457105, 0.000215708}, 5.829812, -0.5157488},
       {{1, -0.62161, -0.006673835}, -0.08099268, -0.1354471},
       {{0.4858176}, 0.4858176, 0},
       {{0.08333334, -0.08333334, 0.002447834}, 0.09105186, -0.1681216}},
      {"huber",
       [](const Var& x, Reduction r) { return huber_loss(x, targets(x), 0.8, r); },
       {{0.48, 0.1774355, 0.000107854}, 3.790757, -0.3967253},
       {{0.8, -0.3702996, -0.003336917}, -0.1746396, -0.02575214},
       {{0.3158965}, 0.3158965, 0},
       {{0.06666667, -0.04964254, 0.001223917}, 0.06984176, -0.15011}},
      {"bce",
       [](const Var& x, Reduction r) {
         return bce_with_logits(x, shares(x),
                                {.positive_weight = row(x, {2, 0.5F, 3}), .weight = row(x, {1, 2, 3}), .reduction = r});
       },
       {{0.9698925, 0.6437772, 1.692938}, 16.69285, -1.564105},
       {{0.0965879, -0.202882, -0.09789404}, -1.032459, 0.9383455},
       {{1.39107}, 1.39107, 0},
       {{0.008048992, -0.02719845, 0.03590564}, 0.166099, -0.1838635}},
      {"kl",
       [](const Var& x, Reduction r) { return kl_div(log_softmax(x, 1), softmax(targets(x), 1), r); },
       {{-0.2215156, 0.4732549, 0.01611541}, 1.205746, 0.679438},
       {{0.1196014, -0.204573, 0.08497155}, -6.332994e-08, -0.2401613},
       {{0.1004788}, 0.1004788, 0},
       {{0.02891719, -0.02766766, -0.001249531}, 8.498318e-09, -0.05440432}},
      {"kl, log_target",
       [](const Var& x, Reduction r) { return kl_div(log_softmax(x, 1), log_softmax(targets(x), 1), r, true); },
       {{-0.2215156, 0.4732549, 0.01611542}, 1.205746, 0.6794381},
       {{0.1196014, -0.204573, 0.08497155}, -1.396984e-07, -0.2401612},
       {{0.1004788}, 0.1004788, 0},
       {{0.02891719, -0.02766766, -0.00124953}, 2.060551e-08, -0.05440432}},
      {"poisson",
       [](const Var& x, Reduction r) { return poisson_nll_loss(x, counts(x), {.reduction = r}); },
       {{2.718282, 1.039193, 2.138258}, 10.61407, 6.749232},
       {{2.718282, 0.1906429, 0.3579613}, 12.7201, -7.082078},
       {{0.8845056}, 0.8845056, 0},
       {{0.2265235, 0.02555767, -0.1312933}, -1.130057, 0.4128542}},
      {"poisson, full",
       [](const Var& x, Reduction r) {
         return poisson_nll_loss(x + 2, counts(x), {.log_input = false, .full = true, .reduction = r});
       },
       {{3, 1.448821, 1.52741}, 23.86276, -3.283059},
       {{1, 0.3474709, 0.1703132}, 5.794021, -2.020476},
       {{1.988563}, 1.988563, 0},
       {{0.08333334, 0.04658212, -0.06246758}, -0.2845855, 0.1630475}},
      {"gaussian",
       [](const Var& x, Reduction r) { return gaussian_nll_loss(x, targets(x), shares(x), {.reduction = r}); },
       {{0.6534264, 0.1550389, -1.371102}, 31.4339, -30.13646},
       {{2, -0.3974858, -0.0519671}, -14.42977, 20.3352},
       {{2.619491}, 2.619491, 0},
       {{0.1666667, -0.05328714, 0.01906053}, 4.139962, -3.242922}},
      {"gaussian, of variances",
       [](const Var& x, Reduction r) {
         return gaussian_nll_loss(targets(x), shares(x), relu(x), {.full = true, .epsilon = 0.2, .reduction = r});
       },
       {{1.043939, 0.2683623, 2.303467}, 13.51585, 0.4377121},
       {{0.375, 1.141574, 0}, -0.3264266, 1.981376},
       {{1.126321}, 1.126321, 0},
       {{0.03125, 0.15304, 0}, 0.3289519, 0.06055761}},
  };
  expect_losses_of_torch(rows, {4, 3}, {4, 3});
}

TEST(TorchLosses, OfScoresAndDistances) {
  const std::vector<Row> rows{
      {"margin_ranking",
       [](const Var& x, Reduction r) {
         return margin_ranking_loss(x, targets(x), signs(x, {4, 3}), 0.25, r);
       },
       {{0, 0, 0.235313}, 1.632946, 0.3244156},
       {{-0, 0, 0.2272021}, -1.562165, 0.7792423},
       {{0.1360788}, 0.1360788, 0},
       {{-0, 0, -0.08333334}, 0, -0.06348205}},
      {"hinge_embedding",
       [](const Var& x, Reduction r) {
         return hinge_embedding_loss(x, signs(x, {4, 3}), 0.5, r);
       },
       {{1, 0.2325012, -0.8568888}, 3.388194, -0.8276643},
       {{1, -0.62161, -0.2272021}, 1.095217, -0.4217871},
       {{0.2823495}, 0.2823495, 0},
       {{0.08333334, -0.08333334, 0.08333334}, 0.1666667, -0.1018708}},
  };
  expect_losses_of_torch(rows, {4, 3}, {4, 3});
}

TEST(TorchLosses, OfVectors) {
  const std::vector<Row> rows{
      {"cosine_embedding",
       [](const Var& x, Reduction r) { return cosine_embedding_loss(x, targets(x), signs(x, {4}), 0.1, r); },
       {{0.4068617, 0, 1.223176}, 2.208269, 1.193831},
       {{0.3284603, -0.4357906, 0.2472747}, 0.756188, -0.5801534},
       {{0.5520673}, 0.5520673, 0},
       {{0.08211508, -0.1089476, 0.06181868}, -0.08430429, 0.1726493}},
      {"triplet_margin, p 1",
       [](const Var& x, Reduction r) {
         return triplet_margin_loss(x, targets(x), shares(x), {.margin = 0.75, .p = 1, .swap = false, .reduction = r});
       },
       {{0.2751927, 1.125554, 0}, 3.204002, 1.201596},
       {{0, 0, 2}, -1.616289, 4.61039},
       {{0.8010005}, 0.8010005, 0},
       {{0, 0, 0.5}, 1.5, -0.3173569}},
      {"triplet_margin, p 2",
       [](const Var& x, Reduction r) {
         return triplet_margin_loss(x, targets(x), shares(x), {.margin = 0.75, .p = 2, .swap = true, .reduction = r});
       },
       {{0.8508918, 1.723164, 1.509991}, 5.535002, 3.027782},
       {{0.8590466, -0.5117418, 0.01261767}, -0.950337, 0.6935849},
       {{1.38375}, 1.38375, 0},
       {{0.2147617, -0.1279354, 0.003154417}, 0.4545054, -0.8308444}},
      {"triplet_margin, p 3",
       [](const Var& x, Reduction r) {
         return triplet_margin_loss(x, targets(x), shares(x), {.margin = 0.75, .p = 3, .swap = true, .reduction = r});
       },
       {{0.8347692, 1.667604, 1.562673}, 5.434812, 3.017476},
       {{0.8799834, -0.312279, 0.000189845}, -0.4206869, 0.7279484},
       {{1.358703}, 1.358703, 0},
       {{0.2199959, -0.07806974, 4.746124e-05}, 0.5557886, -0.837833}},
      {"triplet_margin, p inf",
       [](const Var& x, Reduction r) {
         return triplet_margin_loss(x, targets(x), shares(x),
                                    {.margin = 0.75, .p = HUGE_VAL, .swap = true, .reduction = r});
       },
       {{0.8289011, 1.666438, 1.599685}, 5.363578, 3.035867},
       {{1, 0, 1}, 1.040668, 2.270616},
       {{1.340894}, 1.340894, 0},
       {{0.25, 0, 0.25}, 1, -0.6766485}},
  };
  expect_losses_of_torch(rows, {4, 3}, {4});
}

TEST(TorchLosses, OfClasses) {
  const std::vector<Row> rows{
      {"cross_entropy",
       [](const Var& x, Reduction r) {
         return cross_entropy(x, labels(x),
                              {.label_smoothing = 0.1,
                               .ignore_index = -100,
                               .class_weights = row(x, {1, 2, 0.5F, 1.5F}),
                               .reduction = r});
       },
       {{0.9110305, 3.656353, 0}, 9.8577, -0.1614259},
       {{-0.4442677, 0.2323249, 0.02507005}, -7.450581e-08, -2.567062},
       {{1.408243}, 1.408243, 0},
       {{-0.06346682, 0.05339243, 0.003581437}, -8.614734e-09, -0.01004165}},
      {"nll",
       [](const Var& x, Reduction r) {
         return nll_loss(x, labels(x),
                         {.ignore_index = -100, .class_weights = row(x, {1, 2, 0.5F, 1.5F}), .reduction = r});
       },
       {{-1, 1.421582, 0}, -0.8866966, 2.719321},
       {{-1, 0, 0}, 0.7347296, -1.706375},
       {{-0.126671}, -0.126671, 0},
       {{-0.1428571, 0, 0}, -1, 0.0009509463}},
      {"cross_entropy of probabilities",
       [](const Var& x, Reduction r) {
         return cross_entropy(x, softmax(constant_like(x, input_by_formula({3, 4, 2}, -1)), 1),
                              {.class_weights = row(x, {1, 2, 0.5F, 1.5F}), .reduction = r});
       },
       {{3.588175, 3.522804, 1.692748}, 15.34153, 0.9646473},
       {{0.6580693, 0.1778392, -0.9803373}, -5.238689e-08, -3.109185},
       {{2.556922}, 2.556922, 0},
       {{0.1096782, 0.0476824, -0.1633895}, 2.636807e-08, -0.05957629}},
  };
  expect_losses_of_torch(rows, {3, 4, 2}, {3, 2});
}

TEST(TorchLosses, SayWhatTheyExpect) {
  const Var x = eager(input_by_formula({2, 2})), one = eager(Tensor::scalar(1.0F));
  EXPECT_NE(message_of<ValueError>([&] { triplet_margin_loss(x, x, x, {.p = 0}); }).find("got 1 and 0"),
            std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { smooth_l1_loss(x, x, -1); }).find("got -1"), std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { mse_loss(one, one, Reduction::batch_mean); }).find("counts samples"),
            std::string::npos);
}

}  // namespace
}  // namespace autograph::nn
