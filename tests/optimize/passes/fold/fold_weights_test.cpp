#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"
#include "optimize/weight_scaling.h"

namespace autograph {
namespace {

using Step = std::function<Var(Var)>;

Var weight(Graph& graph, Dims dims, uint64_t seed = 1) {
  Random random(seed);
  return constant(graph, draw_tensor(random, DType::f32, std::move(dims), 0.5, 2));
}

// A grouped convolution to 6 channels, then `step`.
Graph convolved(const Step& step, bool with_bias = true) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 4, 5, 5}, "x");
  const Var y = conv(x, weight(graph, {6, 2, 3, 3}), with_bias ? weight(graph, {6}, 2) : Var(), {.group = 2});
  graph.add_output(step(y).id());
  return graph;
}

Graph multiplied(const Step& step) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3, 4}, "x");
  graph.add_output(step(matmul(x, weight(graph, {4, 6}))).id());
  return graph;
}

Graph gemmed(const Step& step, GemmOptions options, bool with_bias) {
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 4}, "x");
  const Var w = weight(graph, options.transpose_b ? Dims{6, 4} : Dims{4, 6});
  graph.add_output(step(gemm(x, w, with_bias ? weight(graph, {6}, 3) : Var(), options)).id());
  return graph;
}

std::string ops_after(PassFn pass, const Graph& graph) { return ops_of(after_pass(pass, graph)); }

TEST(FoldScale, MergesStepsPerChannelIntoAConvolution) {
  for (const bool with_bias : {true, false}) {
    const std::vector<Step> steps = {
        [](Var y) {
          return mul(y, weight(y.graph(), {6, 1, 1}, 4));
        },
        [](Var y) {
          return add(weight(y.graph(), {1, 6, 1, 1}, 4), y);
        },
        [](Var y) {
          return div(sub(y, weight(y.graph(), {6, 1, 1}, 4)), weight(y.graph(), {6, 1, 1}, 5));
        },
        [](Var y) { return mul(y, scalar(y.graph(), 3)); },
        [](Var y) {
          return add(mul(y, weight(y.graph(), {6, 1, 1}, 6)), weight(y.graph(), {6, 1, 1}, 7));
        },
    };
    for (const Step& step : steps) EXPECT_EQ(ops_after(fold_scale, convolved(step, with_bias)), "conv");
  }
}

// The ops after fold_scale has run while the extents of input 0 were unknown; with `dims` for them nothing else comes
// out.
std::string ops_after_unknown(Graph before, const Dims& dims) {
  Graph after = before;
  PassContext context;
  fold_scale(after, context);
  after.erase_dead();
  verify(after);
  for (Graph* graph : {&before, &after}) {
    graph->set_type(graph->inputs()[0], Type(DType::f32, Shape::of(dims)));
    infer_types(*graph);
  }
  Random random(8);
  EXPECT_EQ(numeric_difference(before, after, random, {1e-4, 1e-4}), "");
  return ops_of(after);
}

TEST(FoldScale, MergesStepsBehindResultsOfUnknownExtents) {
  Graph images;
  const Dim any = Dim::unknown();
  const Var x = input(images, DType::f32, Shape({any, 4, any, any}), "x");
  images.add_output(mul(conv(x, weight(images, {6, 4, 3, 3})), weight(images, {6, 1, 1}, 4)).id());
  EXPECT_EQ(ops_after_unknown(images, {2, 4, 5, 6}), "conv");
  Graph rows;
  const Var a = input(rows, DType::f32, Shape({any, any, 4}), "a");
  const Var product = matmul(a, weight(rows, {4, 6}));
  rows.add_output(mul(add(product, weight(rows, {6}, 2)), weight(rows, {6}, 3)).id());
  EXPECT_EQ(ops_after_unknown(rows, {1, 3, 4}), "matmul add");
  Graph wider;  // what comes out has one axis more
  const Var b = input(wider, DType::f32, Shape({any, 4}), "b");
  wider.add_output(mul(matmul(b, weight(wider, {4, 6})), weight(wider, {1, 1, 6}, 3)).id());
  EXPECT_EQ(ops_after_unknown(wider, {5, 4}), "matmul mul");
}

TEST(FoldScale, MergesAFactorIntoAMatmulAndTheSumBehindIt) {
  const Step factor = [](Var y) { return mul(y, weight(y.graph(), {6}, 4)); };
  EXPECT_EQ(ops_after(fold_scale, multiplied(factor)), "matmul");
  const Step sum_and_factor = [&](Var y) { return factor(add(weight(y.graph(), {6}, 5), y)); };
  EXPECT_EQ(ops_after(fold_scale, multiplied(sum_and_factor)), "matmul add");
}

// More elements than a thread takes at a time, in channels that lie together and in those that do not.
TEST(ScaledWeights, OfManyElementsAreThoseOfEach) {
  Random random(5);
  Tensor weights = draw_tensor(random, DType::f32, {700, 900}, -2, 2);
  for (const int64_t axis : {0, 1}) {
    const auto channels = static_cast<size_t>(weights.dims()[static_cast<size_t>(axis)]);
    std::vector<double> factors(channels);
    for (size_t c = 0; c < channels; ++c) factors[c] = 1.0 / static_cast<double>(c + 3);
    const Tensor scaled = scaled_weights(weights, axis, factors);
    ASSERT_EQ(scaled.dims(), weights.dims());
    size_t wrong = 0;
    for (size_t i = 0; i < 700 * 900; ++i) {
      const double factor = factors[axis == 0 ? i / 900 : i % 900];
      wrong += scaled.data<float>()[i] == static_cast<float>(weights.data<float>()[i] * factor) ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0U) << axis;
    EXPECT_TRUE(may_scale_weights(weights, axis, factors));
    factors[channels - 1] = 1e38;
    EXPECT_FALSE(may_scale_weights(weights, axis, factors));
  }
  for (const float broken : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    weights.mutable_data<float>()[450'000] = broken;
    EXPECT_FALSE(may_scale_weights(weights, 0, std::vector<double>(700, 0.5)));
    EXPECT_FALSE(may_scale_weights(weights, 1, std::vector<double>(900, 0.5)));
  }
}

TEST(FoldScale, LeavesWhatWouldLeaveTheRangeOfFloats) {
  const auto scaled = [](float weight, float input_scale, const Step& step, bool is_conv) {
    Graph graph;
    const Var x =
        mul(input(graph, DType::f32, is_conv ? Shape{1, 1, 4} : Shape{2, 4}, "x"), scalar(graph, input_scale));
    const std::vector<float> elements(8, weight);
    const Var w = constant(graph, Tensor::of<float>(is_conv ? Dims{2, 1, 4} : Dims{4, 2}, elements));
    graph.add_output(step(is_conv ? conv(x, w) : matmul(x, w)).id());
    return graph;
  };
  const auto times = [](float factor) { return Step([=](Var y) { return mul(y, scalar(y.graph(), factor)); }); };
  const auto over = [](float divisor) { return Step([=](Var y) { return div(y, scalar(y.graph(), divisor)); }); };
  const Step twice = [&](Var y) { return times(1e25F)(times(1e12F)(y)); };
  for (const bool is_conv : {true, false}) {
    expect_untouched(fold_scale, scaled(1e20F, 1e-20F, times(1e25F), is_conv));
    expect_untouched(fold_scale, scaled(1e-20F, 1e20F, times(1e-25F), is_conv));
    expect_untouched(fold_scale, scaled(1, 1e-20F, over(1e-39F), is_conv));
    expect_untouched(fold_scale, scaled(1, 1, over(0), is_conv));
    EXPECT_EQ(ops_after(fold_scale, scaled(1e-10F, 1, over(1e-39F), is_conv)), is_conv ? "mul conv" : "mul matmul");
    EXPECT_EQ(ops_after(fold_scale, scaled(1, 1e-20F, twice, is_conv)), is_conv ? "mul conv mul" : "mul matmul mul");
  }
}

TEST(FoldScale, MergesStepsIntoAGemm) {
  const Step step = [](Var y) { return add(mul(y, weight(y.graph(), {6}, 4)), weight(y.graph(), {6}, 5)); };
  for (const bool transpose_b : {true, false}) {
    GemmOptions options;
    options.transpose_b = transpose_b;
    options.alpha = 0.5F;
    for (const bool with_bias : {true, false}) {
      EXPECT_EQ(ops_after(fold_scale, gemmed(step, options, with_bias)), "gemm");
    }
  }
  GemmOptions half;
  half.beta = 0.5F;
  EXPECT_EQ(ops_after(fold_scale, gemmed(step, half, true)), "gemm add");
}

TEST(FoldScale, LeavesNearMisses) {
  // Along another axis, adding a dim, not constant, dividing by the result, between.
  expect_untouched(fold_scale, convolved([](Var y) { return mul(y, weight(y.graph(), {3, 1})); }));
  expect_untouched(fold_scale, convolved([](Var y) { return mul(y, weight(y.graph(), {1, 1, 6, 1, 1})); }));
  expect_untouched(fold_scale, convolved([](Var y) { return mul(y, y); }));
  expect_untouched(fold_scale, convolved([](Var y) { return div(weight(y.graph(), {6, 1, 1}), y); }));
  expect_untouched(fold_scale, convolved([](Var y) { return mul(relu(y), weight(y.graph(), {6, 1, 1})); }));
  expect_untouched(fold_scale, multiplied([](Var y) { return mul(y, weight(y.graph(), {3, 1})); }));
  expect_untouched(fold_scale, multiplied([](Var y) { return add(y, weight(y.graph(), {6})); }));
  // A bias that is a matrix.
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 4}, "x");
  const Var y = gemm(x, weight(graph, {4, 6}), weight(graph, {3, 6}), {});
  graph.add_output(mul(y, scalar(graph, 2)).id());
  expect_untouched(fold_scale, graph);
}

TEST(FoldScale, LeavesResultsAndWeightsThatAreReadElsewhere) {
  for (const bool share_result : {true, false}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {1, 4, 5, 5}, "x");
    const Var w = weight(graph, {4, 4, 1, 1});
    const Var y = conv(x, w, Var(), {});
    graph.add_output(mul(y, scalar(graph, 2)).id());
    graph.add_output(share_result ? y.id() : conv(relu(x), w, Var(), {}).id());
    expect_untouched(fold_scale, graph);
  }
}

Graph padded(const std::vector<int64_t>& pads, const std::string& mode, Var value, ConvOptions options) {
  Graph graph = value.is_valid() ? value.graph() : Graph();
  const Var x = input(graph, DType::f32, {2, 3, 6, 6}, "x");
  const Var fill = value.is_valid() ? Var(graph, value.id()) : Var();
  graph.add_output(conv(pad(x, pads, mode, fill), weight(graph, {4, 3, 3, 3}), Var(), std::move(options)).id());
  return graph;
}

TEST(FoldPad, MovesZerosIntoTheConvolution) {
  const Graph after = after_pass(fold_pad, padded({0, 0, 1, 2, 0, 0, 3, 0}, "constant", {}, {.pads = {1, 0, 0, 1}}));
  EXPECT_EQ(ops_of(after), "conv");
  EXPECT_EQ(only_node(after).attributes().integers("pads"), (std::vector<int64_t>{2, 2, 3, 1}));
  EXPECT_EQ(ops_after(fold_pad, padded({0, 0, 1, 1, 0, 0, 1, 1}, "constant", {}, {.strides = {2, 2}})), "conv");
}

Graph padded_pool(double value, const std::function<Var(Var)>& pool) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3, 7, 6}, "x");
  const Var fill = scalar(graph, static_cast<float>(value));
  graph.add_output(pool(pad(x, {0, 0, 1, 0, 0, 0, 1, 2}, "constant", fill)).id());
  return graph;
}

TEST(FoldPad, MovesPaddingIntoPools) {
  const double infinite = std::numeric_limits<double>::infinity();
  const auto average = [](PoolOptions options) { return [options](Var x) { return average_pool(x, options); }; };
  const auto largest = [](PoolOptions options) { return [options](Var x) { return max_pool(x, options); }; };
  const PoolOptions plain{.kernel = {3, 3}, .strides = {2, 2}};
  PoolOptions own_padding = plain;
  own_padding.pads = {1, 0, 0, 0};
  PoolOptions counted = own_padding;
  counted.count_include_pad = true;
  PoolOptions rounded_up = plain;
  rounded_up.ceil_mode = true;
  const PoolOptions small{.kernel = {2, 2}, .strides = {2, 2}};
  EXPECT_EQ(ops_after(fold_pad, padded_pool(0, average(plain))), "average_pool");
  EXPECT_EQ(ops_after(fold_pad, padded_pool(0, average(counted))), "average_pool");
  EXPECT_EQ(ops_after(fold_pad, padded_pool(-infinite, largest(plain))), "max_pool");
  expect_untouched(fold_pad, padded_pool(0, largest(plain)));
  expect_untouched(fold_pad, padded_pool(1, average(plain)));
  expect_untouched(fold_pad, padded_pool(0, average(own_padding)));
  expect_untouched(fold_pad, padded_pool(0, average(rounded_up)));
  expect_untouched(fold_pad, padded_pool(0, average(small)));
}

TEST(FoldPad, LeavesOtherPadding) {
  expect_untouched(fold_pad, padded({0, 1, 1, 1, 0, -1, 1, 1}, "constant", {}, {}));
  expect_untouched(fold_pad, padded({0, 0, 1, 1, 0, 0, -1, 1}, "constant", {}, {}));
  expect_untouched(fold_pad, padded({0, 0, 1, 1, 0, 0, 1, 1}, "edge", {}, {}));
  expect_untouched(fold_pad, padded({0, 0, 1, 1, 0, 0, 1, 1}, "constant", {}, {.auto_pad = "SAME_UPPER"}));
  Graph holder;
  expect_untouched(fold_pad, padded({0, 0, 1, 1, 0, 0, 1, 1}, "constant", scalar(holder, 2), {}));
}

}  // namespace
}  // namespace autograph
