// Adaptive pools, pooled places put back, and what convolutions stand among, against PyTorch 2.15, of inputs and
// parameters by formula (torch_numbers.h).
#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/nn/layers.h"
#include "nn/both_ways.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

TEST(AdaptivePool, AvgIsTorchs) {
  {
    AdaptiveAvgPool m(Sizes{3});
    expect_torchs("1d", m, input_by_formula({2, 3, 7}), {2, 3, 3},
                  {{0.136870, -0.371435, 0.499687}, 0.016384, -0.402355},
                  {{0.333333, 0.333333, 0.540537}, 0.451692, 0.042362});
  }
  {
    AdaptiveAvgPool m(Sizes{3, 4});
    expect_torchs("2d", m, input_by_formula({2, 3, 7, 10}), {2, 3, 3, 4},
                  {{-0.077830, -0.177524, -0.177920}, 0.208132, -0.402662},
                  {{0.111111, 0.111111, 0.180179}, 1.647923, -0.014911});
  }
  {
    AdaptiveAvgPool m(Sizes{2, 5});
    expect_torchs("even", m, input_by_formula({2, 3, 4, 10}), {2, 3, 2, 5},
                  {{0.503208, -0.736692, 0.759318}, 0.057615, -0.260122},
                  {{0.250000, 0.250000, 0.155402}, 0.336264, -0.118462});
  }
  {
    AdaptiveAvgPool m(Sizes{0, 3});
    expect_torchs("an extent as it is", m, input_by_formula({2, 3, 4, 10}), {2, 3, 4, 3},
                  {{-0.078831, 0.193282, -0.201789}, -0.062387, -0.064624},
                  {{0.250000, 0.250000, 0.250000}, 1.647923, -0.974385});
  }
  {
    AdaptiveAvgPool m(Sizes{2, 3, 2});
    expect_torchs("3d", m, input_by_formula({1, 2, 5, 4, 3}), {1, 2, 2, 3, 2},
                  {{0.077316, 0.077264, -0.096513}, -0.027540, 0.178706},
                  {{0.083333, 0.135134, 0.051801}, 1.356860, 0.330376});
  }
  {
    AdaptiveAvgPool m(Sizes{5});
    expect_torchs("larger", m, input_by_formula({1, 2, 3, 2}), {1, 2, 5, 5},
                  {{1.000000, 1.000000, 0.633749}, 2.134590, 3.709744},
                  {{1.969922, -1.482064, -1.497504}, 1.118091, -1.385797});
  }
}

TEST(AdaptivePool, MaxIsTorchs) {
  {
    AdaptiveMaxPool m(Sizes{3});
    expect_torchs("1d", m, input_by_formula({2, 3, 7}), {2, 3, 3},
                  {{1.000000, 0.468517, 0.976588}, 10.990573, -0.120472},
                  {{1.000000, 0.000000, 0.000000}, 0.451692, -0.180537});
  }
  {
    AdaptiveMaxPool m(Sizes{3, 4});
    expect_torchs("2d", m, input_by_formula({2, 3, 7, 10}), {2, 3, 3, 4},
                  {{1.000000, 0.976778, 0.976588}, 62.857370, 0.668276},
                  {{1.000000, 0.000000, 0.000000}, 1.647923, -9.660314});
  }
  {
    AdaptiveMaxPool m(Sizes{2, 3, 2});
    expect_torchs("3d", m, input_by_formula({1, 2, 5, 4, 3}), {1, 2, 2, 3, 2},
                  {{1.000000, 1.000000, 0.907820}, 23.398578, 0.812319},
                  {{1.000000, 0.000000, 0.000000}, 1.356860, -3.694917});
  }
  {
    AdaptiveMaxPool m(Sizes{1});
    expect_torchs("one", m, input_by_formula({2, 3, 3, 4}), {2, 3, 1, 1},
                  {{1.000000, 0.907820, 1.000000}, 5.791095, 0.108300},
                  {{1.000000, 0.000000, 0.000000}, -0.617219, -1.553041});
  }
}

// Of equal elements the first gets the gradient.
TEST(AdaptivePool, MaxOfEqualElements) {
  AdaptiveMaxPool m(Sizes{2, 3});
  Tensor x = input_by_formula({1, 2, 5, 5});
  for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_data<float>()[i] = x.data<float>()[i] > 0.8F ? 1.0F : 0.0F;
  expect_torchs("equal", m, x, {1, 2, 2, 3}, {{1.000000, 0.000000, 0.000000}, 6.000000, -1.372457},
                {{1.000000, 0.621610, 0.000000}, -0.418181, 2.069983});
}

TEST(AdaptivePool, AsksForKnownExtents) {
  GraphBuilder graph;
  const Var open = graph.input("x", DType::f32, {Dim::symbol("n"), 3, Dim::symbol("h"), 8});
  AdaptiveAvgPool two(Sizes{2}), one(Sizes{1});
  EXPECT_EQ(message_of<ShapeError>([&] { two(open); }),
            "[nn] adaptive pool: expected known extents and outputs of 0 or more, got f32[n,3,h,8] and [2,2]");
  EXPECT_EQ(to_string(one(open).type()), "f32[n,3,1,1]");
}

TEST(MaxUnpool, PutsBackWhatTheLargestElementsWere) {
  MaxPool pool(Sizes{2});
  MaxUnpool unpool(Sizes{2});
  const auto both = [&](const Dims& extents) {
    return [&, extents](const std::vector<Var>& in) {
      const auto [y, places] = pool.with_indices(in[0]);
      return std::vector<Var>{unpool.unpool(y, places, extents)};
    };
  };
  expect_torchs("unpool", input_by_formula({2, 2, 5, 4}), both({2, 2, 5, 4}), {2, 2, 5, 4},
                {{1, 0, 0}, 10.22006, -2.795598}, {{1, 0, 0}, 1.72029, 1.675993});
  expect_torchs("of whole windows", input_by_formula({2, 2, 5, 4}), both({}), {2, 2, 4, 4},
                {{1, 0, 0}, 10.22006, -0.3180371}, {{1, 0, 0}, -1.693214, -3.24858});
  const Var x = eager(input_by_formula({1, 1, 1, 1}));
  EXPECT_NE(message_of<ShapeError>([&] { unpool.unpool(x, x, {2, 2}); }).find("got [2,2]"), std::string::npos);
}

// Numbers of torch, whose places begin anew in each channel of each sample.
TEST(MaxPool, PlacesAreThoseInAChannel) {
  const auto places = [](const PoolSettings& settings, int64_t kernel, const Dims& declared) {
    GraphBuilder graph;
    std::vector<Dim> extents;
    for (const int64_t extent : declared) extents.push_back(extent < 0 ? Dim::symbol("n") : Dim(extent));
    const Var x = graph.input("x", DType::f32, Shape(extents));
    MaxPool pool(Sizes{kernel}, settings);
    graph.output("places", pool.with_indices(x).second);
    return compile(graph.build()).run({input_by_formula({2, 2, 5, 4})})[0].tensor().to_f64();
  };
  for (const Dims& declared : {Dims{2, 2, 5, 4}, Dims{2, 2, -1, 4}}) {
    EXPECT_EQ(places({}, 2, declared), (std::vector<double>{0, 6, 9, 10, 4, 3, 9, 14, 4, 3, 13, 14, 4, 3, 8, 11}));
    EXPECT_EQ(places({.stride = {2}, .padding = {1}}, 3, declared),
              (std::vector<double>{0, 5, 5, 5, 13, 19, 4, 5, 9, 9, 13, 14, 4, 3, 13, 13, 13, 18, 4, 3, 8, 13, 17, 17}));
  }
}

TEST(Conv, PaddingModesAreTorchs) {
  {
    Conv2d m(2, 4, Sizes{3, 2},
             {.stride = {1, 2}, .padding = {2, 1}, .groups = 2, .padding_mode = PaddingMode::reflect});
    fill_by_formula(m);
    expect_torchs("reflect", m, input_by_formula({2, 2, 4, 5}), {2, 4, 6, 3},
                  {{0.243447, 0.183197, 0.408818}, 2.155268, 0.342904},
                  {{0.089980, 0.079773, 0.419839}, 3.887369, 4.993319});
  }
  {
    Conv2d m(2, 4, Sizes{3, 2},
             {.stride = {1, 2}, .padding = {2, 1}, .groups = 2, .padding_mode = PaddingMode::replicate});
    fill_by_formula(m);
    expect_torchs("replicate", m, input_by_formula({2, 2, 4, 5}), {2, 4, 6, 3},
                  {{0.748036, 0.441465, 0.111351}, 6.627698, 0.476110},
                  {{-0.194566, 0.163387, 0.200204}, 3.887369, -1.798031});
  }
  {
    Conv2d m(2, 4, Sizes{3, 2},
             {.stride = {1, 2}, .padding = {2, 1}, .groups = 2, .padding_mode = PaddingMode::circular});
    fill_by_formula(m);
    expect_torchs("circular", m, input_by_formula({2, 2, 4, 5}), {2, 4, 6, 3},
                  {{0.744553, 0.067719, 0.521151}, 6.842659, -0.202419},
                  {{0.049192, -0.258845, 0.148562}, 3.887369, 1.644458});
  }
  {
    Conv2d m(2, 4, Sizes{3, 2}, {.stride = {1, 2}, .padding = {2, 1}, .groups = 2, .padding_mode = PaddingMode::zeros});
    fill_by_formula(m);
    expect_torchs("zeros", m, input_by_formula({2, 2, 4, 5}), {2, 4, 6, 3},
                  {{-0.027293, 0.633304, 0.358190}, 3.955276, -0.155823},
                  {{0.089980, 0.252801, 0.419839}, 0.195492, 1.470509});
  }
  {
    Conv1d m(2, 3, Sizes{3}, {.padding = {1}, .padding_mode = PaddingMode::circular});
    fill_by_formula(m);
    expect_torchs("1d", m, input_by_formula({2, 2, 5}), {2, 3, 5}, {{0.741017, 0.948504, 0.369919}, 4.328876, 1.542361},
                  {{-0.032669, 0.543665, -0.107989}, 0.122593, 0.491583});
  }
  {
    Conv3d m(1, 2, Sizes{3}, {.padding = {1}, .padding_mode = PaddingMode::reflect});
    fill_by_formula(m);
    expect_torchs("3d", m, input_by_formula({1, 1, 3, 4, 3}), {1, 2, 3, 4, 3},
                  {{0.904496, -0.294825, -0.000262}, 19.535720, 0.834106},
                  {{-1.875479, -3.981000, -1.928774}, 0.030941, -25.533827});
  }
}

TEST(Conv, KeepsExtents) {
  {
    Conv2d m(2, 3, Sizes{4, 3}, {.dilation = {1, 2}, .keeps_extents = true});
    fill_by_formula(m);
    expect_torchs("zeros", m, input_by_formula({1, 2, 5, 6}), {1, 3, 5, 6},
                  {{-0.363853, 1.011172, 0.676704}, 12.964963, 2.750185},
                  {{0.153407, -0.044047, -0.175487}, 0.248749, -0.009164});
  }
  {
    Conv2d m(2, 3, Sizes{4, 3}, {.dilation = {1, 2}, .padding_mode = PaddingMode::reflect, .keeps_extents = true});
    fill_by_formula(m);
    expect_torchs("reflect", m, input_by_formula({1, 2, 5, 6}), {1, 3, 5, 6},
                  {{0.240450, 0.593633, 0.609992}, 12.898171, 2.393861},
                  {{0.153407, 0.126804, 0.056594}, 0.594480, -1.959665});
  }
}

TEST(Conv, RefusesWhatTorchRefuses) {
  EXPECT_EQ(message_of<ValueError>([] { Conv2d(1, 1, {3}, {.stride = {2}, .keeps_extents = true}); }),
            "[nn] conv: expected stride 1 where extents are kept, got [2,2]");
  EXPECT_EQ(message_of<ValueError>([] { ConvTranspose(1, 1, {3}, {.padding_mode = PaddingMode::reflect}); }),
            "[nn] conv transpose: expected padding with zeros, got a padding_mode or keeps_extents");
}

}  // namespace
}  // namespace autograph::nn
