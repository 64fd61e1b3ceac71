// Every op on the CPU backend against the reference, on the op's own random samples; and every CPU kernel must have
// been chosen for some of them, so that none goes untested.
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/simd/isa.h"
#include "backends/cpu/simd/recurrent/byte_gates.h"

#include <gtest/gtest.h>

#include <limits>

#include <map>
#include <set>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "ops/sample.h"
#include "support/agreement.h"
#include "support/compare.h"
#include "support/graphs/random_graph.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

constexpr int kSamples = 40;

CompileOptions options_for(const std::string& device, bool optimize) {
  CompileOptions options;
  options.device = device;
  options.expert.use_passes = optimize;
  options.threads = 1;
  return options;
}

// Outputs, or the message of the error that the run ended with.
std::pair<std::vector<Datum>, std::string> outcome(const TestGraph& test, const CompileOptions& options,
                                                   std::set<std::string>& used) {
  try {
    const Executable executable = compile(test.graph, options);
    auto outputs = executable.run(test.inputs);
    for (const KernelChoice& choice : executable.kernel_choices()) used.insert(choice.kernel);
    return {std::move(outputs), ""};
  } catch (const UserError& error) {
    return {{}, error.what()};
  }
}

// Turns every input but the first into a constant, as weights are: kernels then pack them.
TestGraph with_constant_weights(TestGraph test) {
  while (test.inputs.size() > 1 && test.inputs.back().is_tensor()) {
    const ValueId input = test.graph.inputs().back();
    test.graph.replace_uses(input, test.graph.add_constant(test.inputs.back().tensor()));
    test.graph.erase_value(input);
    test.inputs.pop_back();
  }
  return test;
}

std::set<std::string> compare_devices(const OpDef& op) {
  std::set<std::string> used;
  std::set<std::string> ignored;
  Random random(std::hash<std::string_view>{}(op.name));
  for (int i = 0; i < kSamples; ++i) {
    const OpSample sample = op.sample(random);
    TestGraph test = make_sample_graph(op, sample, false);
    if (i % 2 == 1) test = with_constant_weights(std::move(test));
    const auto expected = outcome(test, options_for("reference", false), ignored);
    const auto actual = outcome(test, options_for("cpu", false), used);
    EXPECT_EQ(actual.second, expected.second) << op.name << " sample " << i;
    EXPECT_EQ(difference(actual.first, expected.first, {1e-4, 1e-4}), "") << op.name << " sample " << i;
  }
  return used;
}

// Others are cheaper on tensors as small as those of samples: grouped_conv_test.cpp, winograd_conv_test.cpp,
// pointwise_conv_test.cpp, tap_conv_test.cpp, plane_conv_test.cpp, weight_product_test.cpp, pool_test.cpp,
// channel_gate_test.cpp, conv_transpose_test.cpp, backward_kernels_test.cpp. Ops with states are not drawn:
// philox_test.cpp. Mixtures are bodies that no sample draws: chosen_experts_test.cpp.
constexpr std::string_view kTestedByVariant[] = {"cpu.grouped_conv_simd",
                                                 "cpu.winograd_conv_simd",
                                                 "cpu.pointwise_conv_simd",
                                                 "cpu.tap_conv_simd",
                                                 "cpu.conv_of_planes",
                                                 "cpu.weight_product_simd",
                                                 "cpu.max_pool_onednn",
                                                 "cpu.average_pool_onednn",
                                                 "cpu.max_pool_pixels",
                                                 "cpu.average_pool_pixels",
                                                 "cpu.channel_gate_simd",
                                                 "cpu.global_max_pool_onednn",
                                                 "cpu.conv_transpose_product_onednn",
                                                 "cpu.packed_gemm_simd",
                                                 "cpu.philox",
                                                 "cpu.chosen_experts_simd",
                                                 "cpu.quantized_pair_simd",
                                                 "cpu.quantized_product_simd"};

// They add four products of bytes in one instruction, which not every processor has. With vectors of 512 bits ours are
// faster.
constexpr std::string_view kNeedsNarrowVnni[] = {"cpu.matmul_integer_onednn", "cpu.conv_integer_onednn"};

bool is_expected(std::string_view kernel) {
  if (std::count(std::begin(kTestedByVariant), std::end(kTestedByVariant), kernel)) return false;
  if (kernel == "cpu.dynamic_quantize_lstm_simd") return simd::has_byte_products();
  const bool has_narrow_vnni = has_vnni() && !simd::has_wide_vnni();
  return has_narrow_vnni || !std::count(std::begin(kNeedsNarrowVnni), std::end(kNeedsNarrowVnni), kernel);
}

TEST(CpuKernels, AgreeWithTheReferenceOnSamplesOfEveryOp) {
  std::set<std::string> used;
  for (const OpDef* op : all_ops()) {
    if (!is_drawable(*op)) continue;
    used.merge(compare_devices(*op));
  }
  // Names of choices go on with the variant.
  std::set<std::string> kernels;
  for (const std::string& name : used) kernels.insert(name.substr(0, name.find(' ')));
  for (const KernelDef& kernel : cpu_kernels()) {
    if (!kernel.op.empty() && !find_op(kernel.op)) continue;
    if (!is_expected(kernel.name)) continue;
    EXPECT_TRUE(kernels.count(std::string(kernel.name))) << kernel.name << " was never chosen";
  }
}

TEST(CpuKernels, RandomGraphsAgreeWithTheReference) {
  if (!find_op("reshape")) GTEST_SKIP() << "random graphs need reshape";
  Random random(11);
  std::set<std::string> ignored;
  for (int i = 0; i < 200; ++i) {
    const TestGraph test = make_random_graph(random, 8);
    const auto expected = outcome(test, options_for("reference", false), ignored);
    const auto actual = outcome(test, options_for("cpu", true), ignored);
    ASSERT_EQ(actual.second.empty(), expected.second.empty()) << actual.second << expected.second;
    ASSERT_EQ(disagreement(actual.first, expected.first, test), "") << "graph " << i;
  }
}

TEST(CpuKernels, PoolsOfOneTapTakeAnyDilation) {
  for (const char* op : {"average_pool", "max_pool"}) {
    for (const int64_t extent : {1, 3}) {
      Graph graph;
      const ValueId x = graph.add_input(Type(DType::f32, {1, 2, Dim(extent)}), "x");
      const Attributes attributes{{"kernel_shape", std::vector<int64_t>{1}},
                                  {"dilations", std::vector<int64_t>{2}},
                                  {"strides", std::vector<int64_t>{2}}};
      graph.add_output(graph.node(graph.add_node(get_op(op), {x}, attributes, {{}, 1})).output(0), "y");
      Random random(1);
      const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {1, 2, extent})};
      const auto expected = compile(graph, options_for("reference", false)).run(inputs);
      EXPECT_EQ(difference(compile(graph, options_for("cpu", true)).run(inputs), expected), "") << op;
    }
  }
}

TEST(CpuKernels, ElementwiseOpsTakeSixteenInputs) {
  Graph graph;
  Random random(4);
  std::vector<Var> xs;
  std::vector<Datum> inputs;
  for (int64_t i = 0; i < 16; ++i) {
    const Dims dims{3, i % 2 + 1, 5};  // some broadcast
    xs.push_back(input(graph, DType::f64, Shape::of(dims), "x" + std::to_string(i)));
    inputs.push_back(draw_tensor(random, DType::f64, dims));
  }
  graph.add_output(max(xs).id(), "y");
  const Executable program = compile(graph, options_for("cpu", false));
  EXPECT_NE(program.print_plan().find("cpu.elementwise"), std::string::npos) << program.print_plan();
  EXPECT_EQ(difference(program.run(inputs), compile(graph, options_for("reference", false)).run(inputs)), "");
}

// oneDNN's brgconv crashes where post-ops meet a window that lies in the padding alone.
TEST(CpuKernels, ConvolutionsMayHaveEmptyWindows) {
  Random random(16);
  Graph graph;
  const Var x = input(graph, DType::f32, Shape::of({1, 16, 7, 8}), "x");
  const Var r = input(graph, DType::f32, Shape::of({1, 5, 5, 9}), "r");
  const Var w = constant(graph, draw_tensor(random, DType::f32, {5, 16, 1, 3}));
  const Var y = conv(x, w, {}, {.strides = {2, 1}, .pads = {1, 1, 1, 2}});
  const Var bounds[]{constant(graph, Tensor::scalar(-0.5F)), constant(graph, Tensor::scalar(6.0F))};
  graph.add_output(clip(add(y, r), bounds[0], bounds[1]).id(), "y");
  const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {1, 16, 7, 8}),
                                  draw_tensor(random, DType::f32, {1, 5, 5, 9})};
  EXPECT_EQ(difference(compile(graph, options_for("cpu", true)).run(inputs),
                       compile(graph, options_for("reference", false)).run(inputs)),
            "");
}

// conv_next's block: channels go to the end for a product and come back for a sum. In channels-last nothing moves.
TEST(CpuKernels, TransposesOfChannelsCostNothingBesideConvolutions) {
  if (!cpu_reorder()) GTEST_SKIP() << "a build without oneDNN";
  Random random(12);
  TestGraph test;
  const auto weights = [&](Dims dims) {
    return constant(test.graph, draw_tensor(random, DType::f32, std::move(dims), -0.1, 0.1));
  };
  const Var x = input(test.graph, DType::f32, {1, 64, 28, 28}, "x");
  const Attributes pads{{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  const Var before = apply(*find_op("conv"), {x, weights({64, 64, 3, 3})}, pads);
  const Var rows = matmul(transpose(before, {0, 2, 3, 1}), weights({64, 64}));
  const Var sum = add(transpose(rows, {0, 3, 1, 2}), before);
  test.graph.add_output(apply(*find_op("conv"), {sum, weights({64, 64, 3, 3})}, pads).id());
  test.inputs = {draw_tensor(random, DType::f32, {1, 64, 28, 28}, -1, 1)};
  std::set<std::string> used;
  const auto expected = outcome(test, options_for("reference", false), used);
  used.clear();
  const auto actual = outcome(test, options_for("cpu", true), used);
  EXPECT_EQ(difference(actual.first, expected.first, {1e-4, 1e-4}), "");
  EXPECT_TRUE(std::any_of(used.begin(), used.end(),
                          [](const std::string& name) { return name.starts_with("cpu.transpose_simd in place"); }));
}

// Squares as exporters of language models write them: kernels that read what stands behind them read numbers of f32.
TEST(CpuKernels, ExponentsOfOtherDtypesBehindProductsAndConvolutions) {
  Random random(23);
  for (const bool is_conv : {false, true}) {
    for (const Tensor& exponent : {Tensor::scalar(int32_t{2}), Tensor::scalar(int64_t{2}), Tensor::scalar(2.0)}) {
      TestGraph test;
      const Dims dims = is_conv ? Dims{1, 16, 9, 9} : Dims{4, 16};
      const Dims w_dims = is_conv ? Dims{16, 16, 3, 3} : Dims{16, 16};
      const Var x = input(test.graph, DType::f32, Shape::of(dims), "x");
      const Var w = constant(test.graph, draw_tensor(random, DType::f32, w_dims, -1, 1));
      const Var product = is_conv ? conv(x, w) : matmul(x, w);
      test.graph.add_output(pow(product, constant(test.graph, exponent)).id(), "y");
      test.inputs = {draw_tensor(random, DType::f32, dims, -1, 1)};
      std::set<std::string> used;
      const auto expected = outcome(test, options_for("reference", false), used);
      const auto actual = outcome(test, options_for("cpu", true), used);
      EXPECT_EQ(actual.second, "");
      EXPECT_EQ(difference(actual.first, expected.first, {1e-4, 1e-4}), "") << to_string(exponent.type());
    }
  }
}

TEST(CpuKernels, SoftmaxPropagatesNanAndInfinity) {
  Graph graph;
  const ValueId x = graph.add_input(Type(DType::f32, {5, 3}), "x");
  graph.add_output(graph.node(graph.add_node(get_op("softmax"), {x})).output(0), "y");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> rows[]{{1, nan, 3}, {1, inf, 3}, {1, -inf, 3}, {-inf, -inf, -inf}};
  for (const std::vector<float>& row : rows) {
    std::vector<float> elements(15, 2);
    std::copy(row.begin(), row.end(), elements.begin() + 6);
    const std::vector<Datum> inputs{Tensor::of<float>({5, 3}, elements)};
    CompileOptions cpu;
    CompileOptions reference;
    reference.device = "reference";
    EXPECT_EQ(difference(compile(graph, cpu).run(inputs), compile(graph, reference).run(inputs)), "") << row[1];
  }
}

}  // namespace
}  // namespace autograph
