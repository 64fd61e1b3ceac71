// Quantizations on an OpenCL device, to the last bit: halves, what is out of range, what is no number; scales of the
// tensor, of an axis, of blocks.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/ops/quantize.h"
#include "autograph/random.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

TEST(OpenClQuantize, RoundsHalvesAndSaturates) {
  AG_NEEDS_OPENCL();
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::vector<float> values{kInf, -kInf, std::numeric_limits<float>::quiet_NaN(), 3e38F, -3e38F, 1e-40F};
  for (int k = -600; k <= 600; ++k) values.push_back(static_cast<float>(k) * 0.25F);
  const Dims dims{static_cast<int64_t>(values.size())};
  for (const DType to : {DType::u8, DType::i8, DType::u16, DType::i16}) {
    for (const DType scale : {DType::f32, DType::f16, DType::bf16}) {
      GraphBuilder graph;
      const Var x = graph.input("x", DType::f32, Shape::of(dims));
      const Var step = graph.input("scale", scale, Shape());
      const Var zero = graph.input("zero", to, Shape());
      graph.output("y", quantize_linear(x, step, zero));
      graph.output("without", apply(quantize_linear_def(), {x, step}, {{"output_dtype", to}}));
      Random random(1);
      const std::vector<Datum> inputs{Tensor::of<float>(dims, values), draw_tensor(random, scale, {}, 0.5, 0.5),
                                      draw_tensor(random, to, {}, 3, 3)};
      EXPECT_EQ(difference_on_opencl(graph.build(), inputs), "") << to_string(to) << ", scale " << to_string(scale);
    }
  }
}

TEST(OpenClQuantize, FindsTheScaleOfEachElement) {
  AG_NEEDS_OPENCL();
  struct Case {
    Dims scale;
    int64_t axis, block;
  };
  const Dims dims{4, 6, 5};
  for (const Case& each :
       {Case{{}, 0, 0}, Case{{6}, 1, 0}, Case{{5}, -1, 0}, Case{{4, 2, 5}, 1, 4}, Case{{2, 6, 5}, 0, 2}}) {
    for (const DType to : {DType::u8, DType::i8, DType::i32}) {
      const Attributes attributes{{"axis", each.axis}, {"block_size", each.block}};
      GraphBuilder graph;
      const Var x = graph.input("x", DType::f32, Shape::of(dims));
      const Var q = graph.input("q", to, Shape::of(dims));
      const Var scale = graph.input("scale", DType::f32, Shape::of(each.scale));
      const Var zero = graph.input("zero", to, Shape::of(each.scale));
      if (to != DType::i32) graph.output("y", apply(quantize_linear_def(), {x, scale, zero}, attributes));
      graph.output("z", apply(dequantize_linear_def(), {q, scale, zero}, attributes));
      Random random(2);
      const std::vector<Datum> inputs{
          draw_tensor(random, DType::f32, dims, -40, 40), draw_tensor(random, to, dims, 0, 100),
          draw_tensor(random, DType::f32, each.scale, 0.1, 2), draw_tensor(random, to, each.scale, 0, 9)};
      EXPECT_EQ(difference_on_opencl(graph.build(), inputs), "")
          << to_string(to) << ", scales " << testing::PrintToString(each.scale);
    }
  }
}

TEST(OpenClQuantize, MultipliesBytes) {
  AG_NEEDS_OPENCL();
  struct Case {
    Dims a, b, a_zero, b_zero;
  };
  for (const Case& each :
       {Case{{40, 70}, {70, 33}, {}, {}}, Case{{40, 70}, {70, 33}, {40}, {33}}, Case{{3, 20, 300}, {300, 9}, {20}, {1}},
        Case{{2, 1, 5, 6}, {1, 3, 6, 7}, {5}, {7}}, Case{{300}, {300}, {}, {1}}}) {
    for (const DType dtype : {DType::u8, DType::i8}) {
      GraphBuilder graph;
      const Var a = graph.input("a", DType::u8, Shape::of(each.a)), b = graph.input("b", dtype, Shape::of(each.b));
      const Var a_zero = graph.input("a_zero", DType::u8, Shape::of(each.a_zero));
      graph.output("y", matmul_integer(a, b, a_zero, graph.input("b_zero", dtype, Shape::of(each.b_zero))));
      graph.output("plain", matmul_integer(a, b));
      Random random(3);
      const std::vector<Datum> inputs{
          draw_tensor(random, DType::u8, each.a, 0, 255), draw_tensor(random, dtype, each.b, 0, 127),
          draw_tensor(random, DType::u8, each.a_zero, 0, 255), draw_tensor(random, dtype, each.b_zero, 0, 9)};
      EXPECT_EQ(difference_on_opencl(graph.build(), inputs), "") << testing::PrintToString(each.a);
    }
  }
}

// Bytes with their scales and zero points, of which there is one or one for each line.
Quantized quantized_input(GraphBuilder& graph, const std::string& name, DType dtype, const Dims& dims,
                          const Dims& lines) {
  return {graph.input(name, dtype, Shape::of(dims)), graph.input(name + "_scale", DType::f32, Shape::of(lines)),
          graph.input(name + "_zero", dtype, Shape::of(lines))};
}

// What is drawn for the inputs of a graph: bytes of all values, scales, biases.
std::vector<Datum> draw_quantized(const Graph& graph) {
  Random random(5);
  std::vector<Datum> inputs;
  for (const ValueId v : graph.inputs()) {
    const Type& type = graph.type(v);
    const Dims dims = type.shape().static_dims();
    if (type.dtype() == DType::f32) {
      inputs.emplace_back(draw_tensor(random, DType::f32, dims, 0.01, 0.1));
    } else if (type.dtype() == DType::i32) {
      inputs.emplace_back(draw_tensor(random, DType::i32, dims, -9999, 9999));
    } else {
      const double low = type.dtype() == DType::u8 ? 0 : -128;
      inputs.emplace_back(draw_tensor(random, type.dtype(), dims, low, low + 255));
    }
  }
  return inputs;
}

// Sums of 40,000 products leave 32 bits.
TEST(OpenClQuantize, MakesProductsOfBytesBytesAgain) {
  AG_NEEDS_OPENCL();
  struct Case {
    Dims a, b, rows, columns;
    DType b_dtype, y_dtype;
    double y_scale;
  };
  for (const Case& each : {Case{{3, 4, 30}, {30, 9}, {4}, {9}, DType::i8, DType::u8, 0.5},
                           Case{{2, 40000}, {40000, 3}, {}, {}, DType::u8, DType::i8, 20000}}) {
    GraphBuilder graph;
    const Quantized a = quantized_input(graph, "a", DType::u8, each.a, each.rows);
    const Quantized b = quantized_input(graph, "b", each.b_dtype, each.b, each.columns);
    const Var zero = graph.input("y_zero", each.y_dtype, Shape());
    graph.output("y", qlinear_matmul(a, b, graph.constant(Tensor::scalar(static_cast<float>(each.y_scale))), zero));
    const Graph built = graph.build();
    EXPECT_EQ(difference_on_opencl(built, draw_quantized(built)), "") << testing::PrintToString(each.a);
  }
}

// Directly and as products; padding adds nothing whatever the zero point.
TEST(OpenClQuantize, ConvolvesBytes) {
  AG_NEEDS_OPENCL();
  struct Case {
    Dims x, w, channels;
    DType dtype, other;
  };
  for (const Case& each : {Case{{2, 6, 5, 4}, {18, 3, 3, 3}, {18}, DType::u8, DType::i8},
                           Case{{2, 2, 30}, {6, 1, 5}, {}, DType::i8, DType::u8}}) {
    GraphBuilder graph;
    const Quantized x = quantized_input(graph, "x", each.dtype, each.x, {});
    const Quantized w = quantized_input(graph, "w", each.other, each.w, each.channels);
    const Var y_scale = graph.constant(Tensor::scalar(0.4F)), y_zero = graph.input("y_zero", each.other, Shape());
    ConvOptions options;
    options.group = 2;
    options.strides = Dims(each.w.size() - 2, 2);
    options.pads = Dims(2 * each.w.size() - 4, 1);
    graph.output("sums", conv_integer(x.value, w.value, x.zero_point, w.zero_point, options));
    graph.output("y", qlinear_conv(x, w, y_scale, y_zero, graph.input("bias", DType::i32, {each.w[0]}), options));
    const Graph built = graph.build();
    EXPECT_EQ(difference_on_opencl(built, draw_quantized(built)), "") << testing::PrintToString(each.w);
  }
}

TEST(OpenClQuantize, TakesTheScaleFromTheRange) {
  AG_NEEDS_OPENCL();
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{-3, 5}, {2, 7}, {-9, -1}, {0, 0}}) {
    for (const int64_t count : {0, 1, 1000, 100000}) {
      GraphBuilder graph;
      const std::vector<Var> found = dynamic_quantize_linear(graph.input("x", DType::f32, {count}));
      for (size_t k = 0; k < 3; ++k) graph.output("found" + std::to_string(k), found[k]);
      Random random(4);
      const Tensor x = draw_tensor(random, DType::f32, {count}, low, high);
      EXPECT_EQ(difference_on_opencl(graph.build(), {x}), "") << count << " from " << low << " to " << high;
    }
  }
}

}  // namespace
}  // namespace autograph
