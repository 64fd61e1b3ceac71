// Gradients of convolutions over groups, strides, dilations and paddings that leave something over.
#include <gtest/gtest.h>

#include "autodiff/gradient_check.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

struct Geometry {
  int64_t rank, group, stride, dilation;
};

// Two pads of an axis differ, and so do the axes.
Attributes draw_attributes(Random& random, const Geometry& g) {
  const auto count = static_cast<size_t>(g.rank);
  Dims strides(count, g.stride), dilations(count, g.dilation), pads(2 * count);
  strides[0] = std::max<int64_t>(1, g.stride - 1);
  for (int64_t& pad : pads) pad = draw(random, 0, 2);
  return {{"group", g.group}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
}

void check(const OpDef& op, const OpSample& sample, Random& random, bool second_order) {
  const GradientCase test = make_gradient_case(op, sample);
  const std::string text = print_text(*test.graph);
  ASSERT_EQ(check_gradients(test, random, second_order), "") << text;
}

template <class Check>
void for_geometries(const Check& check_one) {
  constexpr int64_t kChannels = 4;
  for (int64_t rank = 1; rank <= 3; ++rank) {
    for (const int64_t group : {int64_t{1}, int64_t{2}, kChannels}) {
      for (int64_t stride = 1; stride <= 3; ++stride) {
        for (int64_t dilation = 1; dilation <= 2; ++dilation) {
          Random random(static_cast<uint64_t>(rank * 1000 + group * 100 + stride * 10 + dilation));
          check_one(Geometry{rank, group, stride, dilation}, kChannels, random);
          if (testing::Test::HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(ConvGradient, AgreesWithDifferences) {
  for_geometries([](const Geometry& g, int64_t channels, Random& random) {
    Dims x{2, channels}, w{channels, channels / g.group};
    for (int64_t axis = 0; axis < g.rank; ++axis) {
      w.push_back(draw(random, 1, g.rank == 3 ? 2 : 3));
      x.push_back((w.back() - 1) * g.dilation + draw(random, 1, 3));
    }
    OpSample sample{.inputs = {draw_tensor(random, DType::f64, x), draw_tensor(random, DType::f64, w),
                               draw_tensor(random, DType::f64, {channels})},
                    .attributes = draw_attributes(random, g)};
    check(conv_def(), sample, random, g.rank < 3);
  });
}

TEST(ConvGradient, OfTransposedOnesAgreesWithDifferences) {
  for_geometries([](const Geometry& g, int64_t channels, Random& random) {
    Dims x{2, channels}, w{channels, 2};
    OpSample sample{.inputs = {}, .attributes = draw_attributes(random, g)};
    const Dims strides = sample.attributes.get<Dims>("strides");
    Dims output_padding;
    for (int64_t axis = 0; axis < g.rank; ++axis) {
      w.push_back(draw(random, 2, g.rank == 3 ? 2 : 3));
      x.push_back(draw(random, 4, g.rank == 3 ? 4 : 5));
      output_padding.push_back(draw(random, 0, strides[static_cast<size_t>(axis)] - 1));
    }
    sample.attributes.set("output_padding", output_padding);
    sample.inputs = {draw_tensor(random, DType::f64, x), draw_tensor(random, DType::f64, w),
                     draw_tensor(random, DType::f64, {2 * g.group})};
    check(conv_transpose_def(), sample, random, g.rank < 2);
  });
}

// What an optimiser sees first: no image in the batch.
TEST(ConvGradient, OfAnEmptyBatchIsZero) {
  OpSample sample{.inputs = {Tensor::zeros(DType::f64, {0, 2, 5}), Tensor::zeros(DType::f64, {4, 2, 3})}};
  const GradientCase test = make_gradient_case(conv_def(), sample);
  Random random(1);
  EXPECT_EQ(check_gradients(test, random), "");
}

}  // namespace
}  // namespace autograph
