// What goes back through windows, and windows that are deformed, on an OpenCL device: max_unpool, col2im, deform_conv.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/sample.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Graph unpool_graph(DType dtype, const std::vector<int64_t>& enlarged) {
  GraphBuilder graph;
  const Var x = graph.input("x", dtype, {2, 1, 3, 50}), indices = graph.input("indices", DType::i64, {2, 1, 3, 50});
  const PoolOptions options{.kernel = {2, 3}, .strides = {2, 1}, .pads = {0, 1, 1, 0}};
  graph.output("y", max_unpool(x, indices, options, graph.constant(Tensor::vector(enlarged))));
  return graph.build();
}

// The last one of the elements that belong to a position counts, however they are shared out among items.
TEST(OpenClWindows, PutElementsBackInOrder) {
  AG_NEEDS_OPENCL();
  Random random(1);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Tensor x = draw_tensor(random, dtype, {2, 1, 3, 50});
    const Tensor indices = draw_tensor(random, DType::i64, {2, 1, 3, 50}, 0, 99);
    EXPECT_EQ(difference_on_opencl(unpool_graph(dtype, {2, 1, 5, 51}), {x, indices}, {0, 0}), "");
    EXPECT_EQ(difference_on_opencl(unpool_graph(dtype, {3, 2, 6, 53}), {x, indices}, {0, 0}), "");
  }
}

TEST(OpenClWindows, TellOfPositionsThatAreNone) {
  AG_NEEDS_OPENCL();
  const Executable there = compile(unpool_graph(DType::f32, {2, 1, 5, 51}), on_opencl());
  for (const int64_t at : {int64_t{510}, int64_t{-1}, int64_t{1} << 40}) {
    Tensor indices = Tensor::zeros(DType::i64, {2, 1, 3, 50});
    indices.mutable_data<int64_t>()[77] = at;
    const std::string message = message_of<ValueError>([&] {
      there.run({Tensor::zeros(DType::f32, {2, 1, 3, 50}), indices});
    });
    EXPECT_EQ(message.find("[max_unpool] indices: expected 0..509, got " + std::to_string(at) + " (in "), 0U)
        << message;
  }
}

Graph columns_graph(DType dtype, const Dims& x, const Dims& image, const Dims& block, const Attributes& attributes) {
  GraphBuilder graph;
  const Var extents = graph.constant(Tensor::vector(image)), window = graph.constant(Tensor::vector(block));
  graph.output("y", col2im(graph.input("x", dtype, Shape::of(x)), extents, window, attributes));
  return graph.build();
}

// Windows that overlap, leave gaps or lie in the padding; along one axis, two and three.
TEST(OpenClWindows, AddColumnsToImages) {
  AG_NEEDS_OPENCL();
  Random random(2);
  const Attributes steps{{"strides", Dims{2, 1}}, {"dilations", Dims{1, 3}}, {"pads", Dims{1, 0, 0, 2}}};
  for (const DType dtype : {DType::f32, DType::f16, DType::i8}) {
    const Tensor x = draw_tensor(random, dtype, {2, 18, 21}, -90, 90);
    EXPECT_EQ(difference_on_opencl(columns_graph(dtype, {2, 18, 21}, {5, 11}, {2, 3}, steps), {x}), "")
        << to_string(dtype);
  }
  const Tensor line = draw_tensor(random, DType::f64, {1, 4, 3});
  EXPECT_EQ(difference_on_opencl(columns_graph(DType::f64, {1, 4, 3}, {12}, {2}, {{"strides", Dims{5}}}), {line}), "");
  const Tensor wide = draw_tensor(random, DType::u64, {1, 8, 8}, 0, 9e18);
  EXPECT_EQ(difference_on_opencl(columns_graph(DType::u64, {1, 8, 8}, {2, 3, 5}, {1, 2, 4}, {}), {wide}), "")
      << "wraps around";
}

// Two groups of channels and of offsets, of a rank of 2.
Graph deformed_graph(DType dtype, bool has_bias) {
  GraphBuilder graph;
  const Var x = graph.input("x", dtype, {2, 4, 5, 6}), w = graph.input("w", dtype, {6, 2, 2, 3});
  const Var offset = graph.input("offset", dtype, {2, 24, 3, 4}), mask = graph.input("mask", dtype, {2, 12, 3, 4});
  const Var bias = has_bias ? graph.input("bias", dtype, {6}) : Var();
  graph.output("y", deform_conv(x, w, offset, bias, has_bias ? mask : Var(),
                                {{"group", int64_t{2}},
                                 {"offset_group", int64_t{2}},
                                 {"strides", Dims{2, 1}},
                                 {"pads", Dims{1, 0, 1, 0}},
                                 {"dilations", Dims{2, 1}}}));
  return graph.build();
}

// The first offsets lead to elements themselves, to borders, far away, and nowhere.
std::vector<Datum> deformed_inputs(DType dtype) {
  Random random(3);
  Tensor offset = draw_tensor(random, DType::f64, {2, 24, 3, 4}, -3, 3);
  const double far = std::numeric_limits<double>::infinity();
  const std::vector<double> special{0, 1, -1, 0.5, -0.5, 5, -5, 900, -900, far, -far, far - far};
  std::copy(special.begin(), special.end(), offset.mutable_data<double>());
  std::vector<float> offsets;
  for (const double v : offset.to_f64()) offsets.push_back(static_cast<float>(v));
  const Tensor narrow = Tensor::of<float>({2, 24, 3, 4}, offsets);
  return {draw_tensor(random, dtype, {2, 4, 5, 6}), draw_tensor(random, dtype, {6, 2, 2, 3}),
          dtype == DType::f32 ? narrow : offset, draw_tensor(random, dtype, {2, 12, 3, 4}),
          draw_tensor(random, dtype, {6})};
}

TEST(OpenClWindows, AreDeformed) {
  AG_NEEDS_OPENCL();
  std::vector<Datum> inputs = deformed_inputs(DType::f32);
  EXPECT_EQ(difference_on_opencl(deformed_graph(DType::f32, true), inputs), "");
  EXPECT_EQ(difference_on_opencl(deformed_graph(DType::f64, true), deformed_inputs(DType::f64), {1e-12, 1e-12}), "");
  inputs.pop_back();
  EXPECT_EQ(difference_on_opencl(deformed_graph(DType::f32, false), inputs), "");
}

// Along one axis, with more channels than an item samples.
TEST(OpenClWindows, AreDeformedAlongOneAxis) {
  AG_NEEDS_OPENCL();
  Random random(4);
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f16, {1, 19, 7}), w = graph.input("w", DType::f16, {3, 19, 3});
  graph.output("y", deform_conv(x, w, graph.input("offset", DType::f16, {1, 3, 5})));
  const std::vector<Datum> inputs{draw_tensor(random, DType::f16, {1, 19, 7}, -1, 1),
                                  draw_tensor(random, DType::f16, {3, 19, 3}, -1, 1),
                                  draw_tensor(random, DType::f16, {1, 3, 5})};
  EXPECT_EQ(difference_on_opencl(graph.build(), inputs, {1e-2, 1e-2}), "");
}

}  // namespace
}  // namespace autograph
