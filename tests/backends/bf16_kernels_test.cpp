// CompileOptions::precision = "bf16": convolutions and products compute what the definition gives for operands that are
// rounded to bf16, summed in f32.
#include <gtest/gtest.h>

#include <map>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/small_float.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/sample.h"
#include "support/compare.h"

namespace autograph {
namespace {

constexpr int kGraphs = 20;

Tensor rounded(Tensor tensor) {
  float* x = tensor.mutable_data<float>();
  for (int64_t i = 0; i < tensor.num_elements(); ++i) x[i] = static_cast<float>(BFloat16(x[i]));
  return tensor;
}

CompileOptions with_precision(Precision precision, const std::string& device = "cpu") {
  CompileOptions options;
  options.precision = precision;
  options.device = device;
  options.expert.use_passes = device == "cpu";
  options.threads = 1;
  return options;
}

// A graph, and the same with its constant weights rounded to bf16.
struct Pair {
  Graph plain, rounded_weights;
};

template <class Build>
Pair build_both(Random& random, const Build& build) {
  Pair pair;
  Random copy = random;
  build(pair.plain, random, [](Tensor w) { return w; });
  build(pair.rounded_weights, copy, [](const Tensor& w) { return rounded(w.clone()); });
  return pair;
}

template <class Round>
void build_conv(Graph& graph, Random& random, const Round& round) {
  const int64_t group = draw_bool(random) ? 1 : 2;
  const int64_t in = group * draw(random, 16, 40);
  const int64_t out = group * draw(random, 64, 80);  // enough for rounding x to pay everywhere
  const Dims dims{1, in, draw(random, 14, 20), draw(random, 14, 20)};
  ConvOptions options{.strides = {draw(random, 1, 2), 1}, .pads = {1, 0, 1, 1}, .group = group};
  const Var x = input(graph, DType::f32, Shape::of(dims), "x");
  const Var w = constant(graph, round(draw_tensor(random, DType::f32, {out, in / group, 3, 3})));
  const Var b = draw_bool(random) ? constant(graph, draw_tensor(random, DType::f32, {out})) : Var();
  const Var y = conv(x, w, b, options);
  graph.add_output((draw_bool(random) ? relu(y) : y).id(), "y");
}

template <class Round>
void build_product(Graph& graph, Random& random, const Round& round) {
  const int64_t k = draw(random, 100, 300);
  const int64_t n = draw(random, 100, 300);
  const Var x = input(graph, DType::f32, Shape::of({draw(random, 50, 90), k}), "x");
  const bool transposed = draw_bool(random);
  const Var w = constant(graph, round(draw_tensor(random, DType::f32, transposed ? Dims{n, k} : Dims{k, n})));
  const Var b = constant(graph, draw_tensor(random, DType::f32, {n}));
  const Var y = transposed ? gemm(x, w, b, {.transpose_b = true}) : add(matmul(x, w), b);
  graph.add_output(y.id(), "y");
}

template <class Build>
void expect_rounded_operands(const std::string& kernel, const Build& build) {
  if (!why_no_bf16().empty()) GTEST_SKIP() << why_no_bf16();
  Random random(8);
  for (int i = 0; i < kGraphs; ++i) {
    const Pair pair = build_both(random, build);
    const Dims dims = pair.plain.type(pair.plain.inputs()[0]).shape().static_dims();
    const Tensor x = draw_tensor(random, DType::f32, dims);
    CompileOptions options = with_precision(Precision::bf16);
    // Where products of bf16 are only a little faster, Winograd's algorithm on f32 would be taken.
    options.exact = true;
    const Executable executable = compile(pair.plain, options);
    const auto actual = executable.run({Datum(x)});
    const auto expected =
        compile(pair.rounded_weights, with_precision(Precision::f32, "reference")).run({Datum(rounded(x.clone()))});
    // Only the order of summation differs: far less than the rounding of the operands, which is 4e-3.
    EXPECT_EQ(difference(actual, expected, {1e-4, 1e-3}), "") << "graph " << i;
    bool found = false;
    for (const KernelChoice& choice : executable.kernel_choices()) found = found || choice.kernel.starts_with(kernel);
    EXPECT_TRUE(found) << "graph " << i << "\n" << executable.print_plan();
  }
}

TEST(Bf16Kernels, ConvolutionsRoundTheirOperands) {
  expect_rounded_operands("cpu.conv_bf16_onednn",
                          [](Graph& graph, Random& random, const auto& round) { build_conv(graph, random, round); });
}

TEST(Bf16Kernels, ProductsRoundTheirOperands) {
  expect_rounded_operands("cpu.matmul_bf16_onednn",
                          [](Graph& graph, Random& random, const auto& round) { build_product(graph, random, round); });
}

TEST(Bf16Kernels, ProductsOfTwoInputsRoundBoth) {
  if (!why_no_bf16().empty()) GTEST_SKIP() << why_no_bf16();
  Random random(9);
  Graph graph;
  const Var a = input(graph, DType::f32, Shape::of({2, 256, 256}), "a");
  const Var b = input(graph, DType::f32, Shape::of({2, 256, 300}), "b");
  graph.add_output(matmul(a, b).id(), "y");
  const Tensor x = draw_tensor(random, DType::f32, {2, 256, 256});
  const Tensor y = draw_tensor(random, DType::f32, {2, 256, 300});
  const Executable executable = compile(graph, with_precision(Precision::bf16));
  const auto expected = compile(graph, with_precision(Precision::f32, "reference"))
                            .run({Datum(rounded(x.clone())), Datum(rounded(y.clone()))});
  EXPECT_EQ(difference(executable.run({Datum(x), Datum(y)}), expected, {1e-4, 1e-3}), "");
  EXPECT_TRUE(executable.kernel_choices()[0].kernel.starts_with("cpu.matmul_bf16")) << executable.print_plan();
}

TEST(Bf16Kernels, AreOffByDefault) {
  Random random(10);
  Graph graph;
  build_product(graph, random, [](Tensor w) { return w; });
  for (const KernelChoice& choice : compile(graph).kernel_choices()) {
    EXPECT_EQ(choice.kernel.find("bf16"), std::string::npos) << choice.kernel;
  }
}

TEST(Bf16Kernels, AreRefusedWhereTheyAreNotThere) {
  Random random(11);
  Graph graph;
  build_product(graph, random, [](Tensor w) { return w; });
  EXPECT_THROW(compile(graph, with_precision(Precision::bf16, "reference")), UnsupportedError);
  EXPECT_THROW(precision_named("f8"), ValueError);
  if (!why_no_bf16().empty()) {
    EXPECT_THROW(compile(graph, with_precision(Precision::bf16)), DeviceError);
  }
}

}  // namespace
}  // namespace autograph
