// Layers that move and resample pixels, against PyTorch 2.15, of inputs and parameters by formula (torch_numbers.h).
#include <gtest/gtest.h>

#include "autograph/error.h"
#include "autograph/nn/images.h"
#include "nn/both_ways.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

TEST(Pad, IsTorchs) {
  {
    Pad m({1, 2, 0, 3}, PaddingMode::zeros, 0.5);
    expect_torchs("constant", m, input_by_formula({1, 2, 3, 4}), {1, 2, 6, 7},
                  {{0.500000, 1.000000, 0.267499}, 29.870693, 1.466302},
                  {{0.621610, -0.227202, -0.904072}, -9.109467, -0.103675});
  }
  {
    Pad m({1, 2, 0, 1}, PaddingMode::reflect);
    expect_torchs("reflect", m, input_by_formula({1, 2, 3, 4}), {1, 2, 4, 7},
                  {{0.267499, 1.000000, 0.267499}, -0.613915, 11.300693},
                  {{0.621610, 1.407491, -1.114868}, 0.143334, -2.052923});
  }
  {
    Pad m({2}, PaddingMode::replicate);
    expect_torchs("replicate", m, input_by_formula({1, 2, 3, 4}), {1, 2, 7, 8},
                  {{1.000000, 1.000000, 1.000000}, 0.187840, 0.251014},
                  {{-1.211036, -1.971072, -0.430772}, 0.293110, 17.093461});
  }
  {
    Pad m({2, 1}, PaddingMode::circular);
    expect_torchs("circular", m, input_by_formula({1, 2, 4}), {1, 2, 7},
                  {{-0.856889, -0.725932, 1.000000}, -0.772055, 0.812424},
                  {{0.407491, -0.904072, 0.103242}, 0.035085, 0.200102});
  }
}

TEST(Shuffles, AreTorchs) {
  {
    PixelShuffle m(2);
    expect_torchs("pixels", m, input_by_formula({1, 8, 2, 3}), {1, 2, 4, 6},
                  {{1.000000, 0.053955, 0.267499}, -0.229387, 0.676018},
                  {{1.000000, -0.227202, -0.896758}, -0.584286, -1.177388});
  }
  {
    PixelUnshuffle m(2);
    expect_torchs("back", m, input_by_formula({1, 2, 4, 6}), {1, 8, 2, 3},
                  {{1.000000, -0.856889, 0.468517}, -0.229387, 3.953727},
                  {{1.000000, 0.634693, 0.621610}, -0.584286, 0.699912});
  }
  {
    ChannelShuffle m(3);
    expect_torchs("channels", m, input_by_formula({1, 6, 2, 2}), {1, 6, 2, 2},
                  {{1.000000, 0.267499, -0.856889}, -0.129307, -2.967791},
                  {{1.000000, 0.621610, -0.227202}, 1.356860, -1.450833});
  }
}

TEST(Upsample, IsTorchs) {
  {
    Upsample m({.factor = {2}});
    expect_torchs("nearest", m, input_by_formula({1, 2, 2, 3}), {1, 2, 4, 6},
                  {{1.000000, 1.000000, 0.267499}, 4.271841, 1.134937},
                  {{3.256161, -0.766467, -2.907876}, -0.584286, 1.516762});
  }
  {
    Upsample m({.size = {5, 4}});
    expect_torchs("nearest, size", m, input_by_formula({1, 2, 3, 7}), {1, 2, 5, 4},
                  {{1.000000, 0.267499, -0.725932}, 0.184461, 0.416195},
                  {{0.103242, 0.410814, 0.000000}, -0.462588, -0.425556});
  }
  {
    Upsample m({.factor = {2}});
    expect_torchs("nearest, 3d", m, input_by_formula({1, 1, 2, 2, 2}), {1, 1, 4, 4, 4},
                  {{1.000000, 1.000000, 0.267499}, 1.888127, -0.869311},
                  {{0.995352, -0.250600, 0.585595}, 1.150329, 0.840258});
  }
  {
    Upsample m({.factor = {2, 1.5}, .mode = Sampling::linear});
    expect_torchs("linear", m, input_by_formula({1, 2, 3, 4}), {1, 2, 6, 6},
                  {{1.000000, 0.633749, 0.080101}, -0.387921, 19.148229},
                  {{2.194139, 1.009468, -1.524377}, 1.647922, -15.499023});
  }
  {
    Upsample m({.size = {7}, .mode = Sampling::linear});
    expect_torchs("linear, 1d", m, input_by_formula({1, 2, 3}), {1, 2, 7},
                  {{1.000000, 0.895357, 0.581428}, 2.687504, 0.329122},
                  {{1.435436, -1.487648, 0.069686}, 0.035085, 0.050314});
  }
  {
    Upsample m({.size = {5, 4}, .mode = Sampling::linear, .align_corners = true});
    expect_torchs("aligned", m, input_by_formula({1, 2, 3, 7}), {1, 2, 5, 4},
                  {{1.000000, -0.856889, 0.468517}, 0.038731, -0.037915},
                  {{0.551621, 0.000000, 0.516212}, -0.462588, 0.075040});
  }
  {
    Upsample m({.size = {5, 8}, .mode = Sampling::cubic});
    expect_torchs("cubic", m, input_by_formula({1, 2, 3, 4}), {1, 2, 5, 8},
                  {{1.140839, 0.898293, 0.512997}, -0.456332, 1.976801},
                  {{2.185184, -2.463594, -1.087037}, 1.246350, -3.237174});
  }
}

TEST(Images, ErrorsSayWhatIsExpected) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {1, 4, 8, 8});
  EXPECT_EQ(message_of<ValueError>([] { Upsample({}); }), "[nn] upsample: expected a factor or a size, got neither");
  EXPECT_EQ(message_of<ValueError>([&] {
              Pad({1, 2, 3})(x);
            }),
            "[nn] pad: expected 1 number or 2 for each of up to 2 spatial axes, got 3");
  EXPECT_EQ(message_of<ShapeError>([&] { ChannelShuffle(3)(x); }),
            "[nn] channel shuffle: expected channels that 3 divides, got f32[1,4,8,8]");
}

}  // namespace
}  // namespace autograph::nn
