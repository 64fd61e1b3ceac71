// Models that are quantized: what the integer kernels compute against the definition, which dequantizes, computes in
// floats and quantizes again. Both agree up to one step of the output.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <thread>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/simd/isa.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/quantized_graphs.h"

namespace autograph {
namespace {

constexpr int kGraphs = 60;

CompileOptions options_for(const std::string& device, int threads = 1) {
  CompileOptions options;
  options.device = device;
  options.expert.use_passes = device != "reference";
  options.threads = threads;
  return options;
}

using Kernels = std::map<std::string, int>;

// Runs the graph on both devices; counts the kernels that were chosen.
void compare(const Graph& graph, Random& random, const std::string& what, Kernels& kernels) {
  const std::vector<Datum> inputs = random_bytes(graph, random);
  const std::vector<Datum> expected = compile(graph, options_for("reference")).run(inputs);
  const Executable executable = compile(graph, options_for("cpu", static_cast<int>(draw(random, 1, 2))));
  const std::vector<Datum> actual = executable.run(inputs);
  for (const KernelChoice& choice : executable.kernel_choices()) {
    ++kernels[choice.kernel.substr(0, choice.kernel.find(' '))];
  }
  EXPECT_EQ(more_than_a_step(actual[0].tensor(), expected[0].tensor()), "") << what;
}

TEST(Int8Kernels, ConvolutionsAreWithinOneStepOfTheDefinition) {
  Random random(5);
  Kernels kernels;
  for (int i = 0; i < kGraphs; ++i)
    compare(random_quantized_conv(random), random, "graph " + std::to_string(i), kernels);
  // Without VNNI small ones are computed in floats.
  const int by_integers = kernels["cpu.int8_conv_onednn"] + kernels["cpu.quantized_product_simd"];
  EXPECT_TRUE(!has_vnni() || by_integers == kGraphs) << by_integers;
  EXPECT_EQ(kernels["reference"], 0);
}

// oneDNN keeps a number of the convolution that it describes in a variable of the process.
TEST(Int8Kernels, AreMadeBesideConvolutionsOfFloats) {
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    Random random(77);
    while (!is_done) compile(random_quantized_conv(random), options_for("cpu"));
  });
  Random random(78);
  for (int64_t i = 0; i < 150; ++i) {
    Graph graph;
    const Var x = input(graph, DType::f32, Shape::of({1, 15, 9 + i % 25, 1 + i / 25}), "x");
    const Var w = constant(graph, draw_tensor(random, DType::f32, {24, 15, 5, 5}, -1, 1));
    graph.add_output(conv(x, w, Var(), {.pads = {2, 2, 2, 2}}).id(), "y");
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, x.type().shape().static_dims(), -1, 1)};
    const std::vector<Datum> expected = compile(graph, options_for("reference")).run(inputs);
    EXPECT_EQ(difference(compile(graph, options_for("cpu", 2)).run(inputs), expected, {1e-4, 1e-4}), "") << i;
  }
  is_done = true;
  other.join();
}

TEST(Int8Kernels, ProductsAreWithinOneStepOfTheDefinition) {
  Random random(6);
  Kernels kernels;
  for (int i = 0; i < kGraphs; ++i)
    compare(random_quantized_product(random), random, "graph " + std::to_string(i), kernels);
  EXPECT_EQ(kernels["cpu.int8_matmul_onednn"] + kernels["cpu.quantized_product_simd"], kGraphs);
  EXPECT_EQ(kernels["reference"], 0);
}

// The nodes are made before the batch is known; quantized weights must still be there then.
// Kernels multiply the scales where the definition multiplies the values that they stand for.
TEST(Int8Kernels, ScalesWhoseProductsLeaveTheNormalNumbersAreLeftToTheDefinition) {
  const float scales[][3] = {{1e25F, 1e25F, 1e36F}, {3e37F, 1e-37F, 100}, {1e-25F, 1e-25F, 1e-36F}, {1, 1, 3e37F}};
  for (const auto& [x_scale, w_scale, y_scale] : scales) {
    Graph graph;
    Random random(8);
    const auto scale = [&](float value) { return constant(graph, Tensor::scalar(value)); };
    const Var zero = constant(graph, draw_tensor(random, DType::u8, {}, 0, 0));
    const Var x = dequantize_linear(input(graph, DType::u8, Shape::of({4, 8}), "x"), scale(x_scale), zero);
    // Of one sign: sums of infinities of both are not defined.
    const Var w = dequantize_linear(constant(graph, draw_tensor(random, DType::i8, {8, 5}, 1, 60)), scale(w_scale),
                                    constant(graph, draw_tensor(random, DType::i8, {}, 0, 0)));
    graph.add_output(quantize_linear(matmul(x, w), scale(y_scale), zero).id(), "y");
    const std::vector<Datum> inputs{draw_tensor(random, DType::u8, {4, 8}, 0, 255)};
    EXPECT_EQ(difference(compile(graph, options_for("cpu")).run(inputs),
                         compile(graph, options_for("reference")).run(inputs)),
              "")
        << x_scale << " " << w_scale << " " << y_scale;
  }
}

TEST(Int8Kernels, SymbolicExtentsAreTaken) {
  Random random(15);
  Graph graph;
  const Var q = input(graph, DType::u8, Shape{Dim::symbol("batch"), Dim(64), Dim(6), Dim(6)}, "x");
  const Var x = dequantize_linear(q, draw_scales(graph, random, 0.01, 0.05));
  const Var y = conv(x, quantized_weights(graph, random, {64, 64, 3, 3}, 0), Var(), {.strides = {2, 2}});
  graph.add_output(quantize_linear(y, draw_scales(graph, random, 0.02, 0.2)).id(), "y");
  const Executable executable = compile(graph, options_for("cpu"));
  for (const int64_t batch : {1, 3}) {
    const std::vector<Datum> inputs{draw_tensor(random, DType::u8, {batch, 64, 6, 6}, 0, 255)};
    EXPECT_EQ(more_than_a_step(executable.run(inputs)[0].tensor(),
                               compile(graph, options_for("reference")).run(inputs)[0].tensor()),
              "")
        << "symbolic";
    bool found = false;
    for (const KernelChoice& choice : executable.kernel_choices()) {
      found = found || choice.kernel.starts_with("cpu.int8_conv_onednn") ||
              choice.kernel.starts_with("cpu.quantized_product_simd");
    }
    EXPECT_TRUE(found) << batch;
  }
}

// Bytes in, elementwise ops, bytes out: equal to the definition but where rounding decides.
TEST(Int8Kernels, ElementwiseOpsBetweenQuantizationsHaveKernels) {
  Random random(7);
  for (int i = 0; i < kGraphs; ++i) {
    Graph graph;
    const Dims dims{draw(random, 1, 2), draw(random, 1, 20), draw(random, 1, 40), draw(random, 1, 9)};
    const Var a = quantized_input(graph, random, dims, "a");
    const Var b = quantized_input(graph, random, draw_bool(random) ? dims : Dims{dims[1], 1, 1}, "b");
    Var y = draw_bool(random) ? relu(add(a, b)) : mul(a, sigmoid(b));
    const DType dtype = draw_one_of(random, {DType::u8, DType::i8});
    const Tensor zero = draw_tensor(random, dtype, {}, 0, 100);
    y = quantize_linear(y, draw_scales(graph, random, 0.01, 0.1), constant(graph, zero));
    graph.add_output(y.id(), "y");
    Kernels kernels;
    compare(graph, random, "graph " + std::to_string(i), kernels);
    EXPECT_EQ(kernels["reference"], 0) << i;
  }
}

TEST(Int8Kernels, QuantizingSaturatesAndPutsNanAtTheLowerEnd) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::u8, DType::i8}) {
    Graph graph;
    const Var x = input(graph, DType::f32, Shape::of({1, 40}), "x");
    Random random(1);
    const Var zero = constant(graph, draw_tensor(random, dtype, {}, 3, 3));
    const Var y = quantize_linear(x, constant(graph, Tensor::scalar(0.5F)), zero);
    graph.add_output(y.id(), "y");
    std::vector<float> elements{nan, inf, -inf, 1e30F, -1e30F, 0.25F, 0.75F, -0.25F, 126, 128, -130};
    elements.resize(40, 1.0F);
    const std::vector<Datum> inputs{Tensor::of<float>({1, 40}, elements)};
    EXPECT_EQ(difference(compile(graph, options_for("cpu")).run(inputs),
                         compile(graph, options_for("reference")).run(inputs)),
              "")
        << to_string(dtype);
  }
}

TEST(Int8Kernels, WhatIsMadeOfOneByteIsATable) {
  Random random(13);
  for (const DType dtype : {DType::u8, DType::i8}) {
    Graph graph;
    const Dims dims{2, 3, 50, 7};
    const Var x = quantized_input(graph, random, dims, "x");
    const Tensor zero = draw_tensor(random, dtype, {}, 0, 100);
    const Var y = quantize_linear(mul(x, sigmoid(x)), draw_scales(graph, random, 0.01, 0.1), constant(graph, zero));
    graph.add_output(y.id(), "y");
    const std::vector<Datum> inputs = random_bytes(graph, random);
    const Executable executable = compile(graph, options_for("cpu", 2));
    EXPECT_EQ(difference(executable.run(inputs), compile(graph, options_for("reference")).run(inputs), {0, 0}), "");
    EXPECT_TRUE(executable.kernel_choices()[0].kernel.starts_with("cpu.byte_table")) << executable.print_plan();
  }
}

// As exporters write x * sigmoid(x): quantized in the middle, too.
TEST(Int8Kernels, QuantizationsInTheMiddleNeedNoTensors) {
  Random random(16);
  for (const bool is_of_one : {true, false}) {
    Graph graph;
    const Dims dims{2, 3, 50, 7};
    const Var a = quantized_input(graph, random, dims, "a");
    const Var b = is_of_one ? a : quantized_input(graph, random, dims, "b");
    const Var zero = constant(graph, Tensor::scalar<uint8_t>(9));
    // Some values are beyond the largest byte.
    const Var scale = draw_scales(graph, random, 0.001, 0.003);
    const Var gate = dequantize_linear(quantize_linear(sigmoid(b), scale, zero), scale, zero);
    graph.add_output(quantize_linear(mul(a, gate), draw_scales(graph, random, 0.01, 0.1), zero).id(), "y");
    const std::vector<Datum> inputs = random_bytes(graph, random);
    const Executable executable = compile(graph, options_for("cpu", 2));
    EXPECT_EQ(more_than_a_step(executable.run(inputs)[0].tensor(),
                               compile(graph, options_for("reference")).run(inputs)[0].tensor()),
              "");
    ASSERT_EQ(executable.kernel_choices().size(), 1u) << executable.print_plan();
    EXPECT_TRUE(
        executable.kernel_choices()[0].kernel.starts_with(is_of_one ? "cpu.byte_table" : "cpu.fused_elementwise_simd"));
  }
}

TEST(Int8Kernels, QuantizingInTheMiddleSaturatesAndPutsNanAtTheLowerEnd) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const DType dtype : {DType::u8, DType::i8}) {
    Graph graph;
    Random random(1);
    const Var x = input(graph, DType::f32, Shape::of({1, 40}), "x");
    const Var zero = constant(graph, draw_tensor(random, dtype, {}, 3, 3));
    const Var scale = constant(graph, Tensor::scalar(0.5F));
    graph.add_output(relu(dequantize_linear(quantize_linear(x, scale, zero), scale, zero)).id(), "y");
    std::vector<float> elements{nan, inf, -inf, 1e30F, -1e30F, 0.25F, 0.75F, -0.25F, 126, 128, -130};
    elements.resize(40, 1.0F);
    const std::vector<Datum> inputs{Tensor::of<float>({1, 40}, elements)};
    const Executable executable = compile(graph, options_for("cpu"));
    EXPECT_EQ(difference(executable.run(inputs), compile(graph, options_for("reference")).run(inputs), {0, 0}), "");
    EXPECT_EQ(executable.kernel_choices().size(), 1u) << executable.print_plan();
  }
}

TEST(Int8Kernels, FloatsOfOneByteAreATable) {
  Random random(17);
  for (const Dims& dims : {Dims{2, 3, 50, 7}, Dims{1, 16, 9, 9}, Dims{33}}) {
    Graph graph;
    const Var x = quantized_input(graph, random, dims, "x");
    graph.add_output(mul(x, tanh(x)).id(), "y");
    const std::vector<Datum> inputs = random_bytes(graph, random);
    const Executable executable = compile(graph, options_for("cpu", 2));
    EXPECT_EQ(difference(executable.run(inputs), compile(graph, options_for("reference")).run(inputs), {0, 0}), "");
    EXPECT_TRUE(executable.kernel_choices()[0].kernel.starts_with("cpu.byte_table")) << executable.print_plan();
  }
}

// A slope for the one channel there is: [1, 1, 1] broadcasts to a byte of each rank from three on.
TEST(Int8Kernels, TablesTakeNumbersOfSomeRank) {
  Random random(15);
  Graph graph;
  const Var x = quantized_input(graph, random, {2, 1, 3, 5}, "x");
  const Var y = prelu(x, constant(graph, draw_tensor(random, DType::f32, {1, 1, 1}, 0.2, 0.3)));
  const Var zero = constant(graph, Tensor::scalar<uint8_t>(128));
  graph.add_output(quantize_linear(y, draw_scales(graph, random, 0.01, 0.1), zero).id(), "y");
  const std::vector<Datum> inputs = random_bytes(graph, random);
  const Executable executable = compile(graph, options_for("cpu"));
  EXPECT_EQ(difference(executable.run(inputs), compile(graph, options_for("reference")).run(inputs), {0, 0}), "");
  EXPECT_TRUE(executable.kernel_choices()[0].kernel.starts_with("cpu.byte_table")) << executable.print_plan();
}

TEST(Int8Kernels, StacksAreWithinOneStepOfTheDefinition) {
  Random random(9);
  Kernels kernels;
  for (int i = 0; i < kGraphs; ++i) {
    compare(random_quantized_stacks(random), random, "graph " + std::to_string(i), kernels);
  }
  EXPECT_EQ(kernels["cpu.int8_matmul_onednn"] + kernels["cpu.quantized_product_simd"], kGraphs);
}

// The largest bytes times weights that leave room in 16 bits: taken on every CPU.
TEST(Int8Kernels, WeightsOfReducedRangeNeedNoVnni) {
  Random random(14);
  Graph graph;
  const auto number = [&](float value) { return constant(graph, Tensor::scalar(value)); };
  const auto byte = [&](DType dtype, double value) {
    return constant(graph, draw_tensor(random, dtype, {}, value, value));
  };
  const Var x = input(graph, DType::u8, Shape::of({1, 32, 6, 6}), "x");
  const Var w = constant(graph, draw_tensor(random, DType::i8, {16, 32, 3, 3}, 64, 64));
  const Var y = apply(get_op("qlinear_conv"), {x, number(0.01F), byte(DType::u8, 0), w, number(0.01F),
                                               byte(DType::i8, 0), number(2.5F), byte(DType::u8, 0)});
  graph.add_output(y.id(), "y");
  const std::vector<Datum> inputs{draw_tensor(random, DType::u8, {1, 32, 6, 6}, 250, 255)};
  const Executable executable = compile(graph, options_for("cpu"));
  EXPECT_EQ(more_than_a_step(executable.run(inputs)[0].tensor(),
                             compile(graph, options_for("reference")).run(inputs)[0].tensor()),
            "")
      << "qlinear_conv";
  EXPECT_TRUE(executable.kernel_choices()[0].kernel.starts_with("cpu.int8_conv_onednn")) << executable.print_plan();
}

// Sums of more than 24 bits, which floats could not hold.
TEST(Int8Kernels, IntegerProductsAreExact) {
  Random random(12);
  for (const DType a_dtype : {DType::u8, DType::i8}) {
    for (const DType b_dtype : {DType::u8, DType::i8}) {
      for (const bool is_constant : {false, true}) {
        Graph graph;
        const int64_t k = 2100;
        const auto draw_bytes = [&](DType dtype, Dims dims) {
          return draw_tensor(random, dtype, std::move(dims), dtype == DType::u8 ? 200 : -128,
                             dtype == DType::u8 ? 255 : -90);
        };
        const Tensor b = draw_bytes(b_dtype, {k, 7});
        const Var left = input(graph, a_dtype, Shape::of({2, 3, k}), "a");
        const Var right = is_constant ? constant(graph, b) : input(graph, b_dtype, Shape::of({k, 7}), "b");
        const Var a_zero = input(graph, a_dtype, Shape(), "a_zero");
        const Var b_zero = constant(graph, draw_tensor(random, b_dtype, {}, 1, 9));
        const Var y = apply(get_op("matmul_integer"), {left, right, a_zero, b_zero});
        graph.add_output(y.id(), "y");
        std::vector<Datum> inputs{draw_bytes(a_dtype, {2, 3, k})};
        if (!is_constant) inputs.emplace_back(b);
        inputs.emplace_back(draw_tensor(random, a_dtype, {}, 1, 9));
        const Executable executable = compile(graph, options_for("cpu"));
        EXPECT_EQ(difference(executable.run(inputs), compile(graph, options_for("reference")).run(inputs), {0, 0}), "");
        const std::string kernel = executable.kernel_choices()[0].kernel;
        EXPECT_EQ(kernel,
                  has_vnni() && !simd::has_wide_vnni() ? "cpu.matmul_integer_onednn" : "cpu.integer_matmul_simd");
      }
    }
  }
}

}  // namespace
}  // namespace autograph
