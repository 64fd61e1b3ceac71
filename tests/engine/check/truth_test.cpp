// Right ways of computing a graph agree with the truth, however they sum; errors are found however small the elements
// are beside others.
#include "autograph/truth.h"

#include <gtest/gtest.h>

#include "autograph/attested_kernels.h"
#include "autograph/builder.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/reference_kernel.h"
#include "autograph/seeded_inputs.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_kernels.h"
#include "engine/check/attestation.h"
#include "engine/check/compare_nodes.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/graphs/random_network.h"
#include "support/slow_op.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

Tensor draw_f32(uint64_t seed, const Dims& dims, double size = 1) {
  Random random(seed);
  return draw_tensor(random, DType::f32, dims, -size, size);
}

Truth truth_of(const Graph& graph, const std::vector<Datum>& inputs, const CompileOptions& options = {}) {
  return Truth::of(graph, inputs, options);
}

TEST(Truth, AcceptsNetworksWithAnyKernels) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    const Graph graph = make_random_network(seed);
    const std::vector<Datum> inputs{draw_f32(seed, graph.type(graph.inputs()[0]).shape().static_dims())};
    const Truth truth = truth_of(graph, inputs);
    EXPECT_TRUE(truth.is_whole());
    const Difference difference = truth.compare_all(compile(graph).run(inputs));
    EXPECT_TRUE(difference.ok) << "seed " << seed << ": " << difference.why;
  }
}

// As a whole, and node by node.
TEST(Truth, StartsFromStatesAsTheyAreBeforeTheFirstRun) {
  Graph graph("stateful");
  const Var x = input(graph, DType::f32, {64, 64}, "x");
  const Var w = state(graph, draw_f32(1, {64, 64}), "w");
  graph.add_output(tanh(matmul(x, w)).id(), "y");
  update(w, add(w, x));
  const std::vector<Datum> inputs{draw_f32(2, {64, 64})};
  for (const double seconds : {0.0, 1e-9}) {
    const Truth truth = Truth::of(graph, inputs, {}, {.seconds = seconds});
    EXPECT_EQ(truth.is_whole(), seconds == 0);
    const Executable executable = compile(graph);
    EXPECT_TRUE(truth.compare_all(executable.run(inputs)).ok);
    EXPECT_FALSE(truth.compare_all(executable.run(inputs)).ok);
  }
}

// Zeros beside large numbers: Winograd's tiles mix what they read.
TEST(Truth, AcceptsWinogradBesideLargeNumbers) {
  Graph graph("windows");
  const Var x = input(graph, DType::f32, {1, 64, 56, 56}, "x");
  const Var w = constant(graph, draw_f32(1, {64, 64, 3, 3}, 0.1));
  graph.add_output(conv(x, w, {}, {.pads = {1, 1, 1, 1}}).id(), "y");
  Tensor image = draw_f32(2, {1, 64, 56, 56}, 1e4);
  float* pixels = image.mutable_data<float>();
  for (int64_t i = 0; i < image.num_elements(); ++i) {
    if (i % 56 < 28) pixels[i] = 0;
  }
  const Executable executable = compile(graph);
  bool is_winograd = false;
  for (const KernelChoice& choice : executable.kernel_choices()) {
    is_winograd = is_winograd || choice.kernel.find("winograd") != std::string::npos;
  }
  EXPECT_TRUE(is_winograd);
  const Difference difference = truth_of(graph, {image}).compare_all(executable.run({image}));
  EXPECT_TRUE(difference.ok) << difference.why;
  EXPECT_GT(difference.max_abs, 0);
}

// What is left when large numbers cancel carries their errors, and passes them on.
TEST(Truth, AcceptsWhatIsLeftOfLargeNumbers) {
  Graph graph("cancellation");
  const Var x = input(graph, DType::f32, {64, 32}, "x");
  const Var large = constant(graph, draw_f32(3, {32, 32}, 1e4));
  const Var small = constant(graph, draw_f32(4, {32, 32}, 0.1));
  const Var product = matmul(x, add(large, small));
  const Var rest = sub(product, matmul(x, large));
  graph.add_output(relu(matmul(rest, small)).id(), "y");
  const std::vector<Datum> inputs{draw_f32(5, {64, 32})};
  const std::vector<Datum> actual = compile(graph).run(inputs);
  const Difference difference = truth_of(graph, inputs).compare_all(actual);
  EXPECT_TRUE(difference.ok) << difference.why;
  CompileOptions reference;
  reference.device = "reference";
  reference.expert.use_passes = false;
  EXPECT_FALSE(compare_all(actual, compile(graph, reference).run(inputs), {}).ok)
      << "no share of the result tells that this is right";
}

TEST(Truth, AcceptsBf16) {
  if (!why_no_bf16().empty()) GTEST_SKIP() << why_no_bf16();
  CompileOptions options;
  options.precision = Precision::bf16;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Graph graph = make_random_network(seed);
    const std::vector<Datum> inputs{draw_f32(seed, graph.type(graph.inputs()[0]).shape().static_dims())};
    const Difference difference = truth_of(graph, inputs, options).compare_all(compile(graph, options).run(inputs));
    EXPECT_TRUE(difference.ok) << "seed " << seed << ": " << difference.why;
  }
}

// A product one of whose columns is 1e4 times smaller than the others.
Graph uneven() {
  Graph graph("uneven");
  const Var x = input(graph, DType::f32, {8, 64}, "x");
  Tensor weights = draw_f32(6, {64, 16});
  float* w = weights.mutable_data<float>();
  for (int64_t k = 0; k < 64; ++k) w[k * 16 + 5] *= 1e-4F;
  graph.add_output(relu(matmul(x, constant(graph, weights))).id(), "y");
  return graph;
}

TEST(Truth, FindsErrorsInSmallChannels) {
  const Graph graph = uneven();
  const std::vector<Datum> inputs{draw_f32(7, {8, 64})};
  const Truth truth = truth_of(graph, inputs);
  std::vector<Datum> outputs = compile(graph).run(inputs);
  EXPECT_TRUE(truth.compare_all(outputs).ok);
  const std::vector<Datum> right = outputs;
  Tensor wrong = outputs[0].tensor().clone();
  float* y = wrong.mutable_data<float>();
  int64_t row = 0;
  while (y[row * 16 + 5] <= 0) ++row;
  y[row * 16 + 5] *= 1.1F;
  outputs[0] = wrong;
  const Difference difference = truth.compare_all(outputs);
  EXPECT_FALSE(difference.ok);
  EXPECT_EQ(difference.num_bad, 1);
  EXPECT_EQ(difference.first_bad, row * 16 + 5);
  EXPECT_TRUE(compare_all(outputs, right, {}).ok) << "beside the largest element it is nothing";
}

TEST(Truth, TakesStepsForWhatTheyAre) {
  Graph graph("steps");
  const Var x = input(graph, DType::f32, {4}, "x");
  // The last one comes to the middle between two bytes, but for the rounding of the product.
  const Var y = mul(x, constant(graph, Tensor::scalar(3.0F)));
  graph.add_output(
      quantize_linear(y, constant(graph, Tensor::scalar(1.0F)), constant(graph, Tensor::scalar<uint8_t>(0))).id(), "y");
  const std::vector<Datum> inputs{Tensor::of<float>({4}, {1.1F, 2.2F, 3.4F, 7.5F / 3})};
  const Truth truth = truth_of(graph, inputs);
  const std::vector<Datum> outputs = compile(graph).run(inputs);
  EXPECT_TRUE(truth.compare_all(outputs).ok);
  for (int64_t i = 0; i < 4; ++i) {
    for (const int step : {-1, 1}) {
      Tensor changed = outputs[0].tensor().clone();
      changed.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(changed.data<uint8_t>()[i] + step);
      EXPECT_EQ(truth.compare_all({Datum(changed)}).ok, i == 3) << i << " by " << step;
    }
  }
}

TEST(Truth, OfPartsWhereTheWholeTakesTooLong) {
  const Graph graph = uneven();
  const std::vector<Datum> inputs{draw_f32(7, {8, 64})};
  const Truth truth = Truth::of(graph, inputs, {}, {.seconds = 1e-6});
  EXPECT_FALSE(truth.is_whole());
  EXPECT_NE(truth.how().find("cut-out parts"), std::string::npos) << truth.how();
  EXPECT_EQ(truth.fault(), "");
  std::vector<Datum> outputs = compile(graph).run(inputs);
  EXPECT_TRUE(truth.compare_all(outputs).ok) << truth.compare_all(outputs).why;
  Tensor wrong = outputs[0].tensor().clone();
  wrong.mutable_data<float>()[0] += 1;
  EXPECT_FALSE(truth.compare_all({Datum(wrong)}).ok);
}

// The reference runs once for each node, not six times and more.
TEST(Truth, FollowsTheLastScalesWhereTimeDoesForTheValuesAlone) {
  const Graph graph = uneven();
  const std::vector<Datum> inputs{draw_f32(7, {8, 64})};
  const ScaledRunCost cost = cost_of_scaled_run(graph);
  ASSERT_LT(cost.plain_flops, cost.flops);
  const Truth truth = Truth::of(graph, inputs, {}, {.seconds = (cost.plain_flops + cost.flops) / 2e9});
  EXPECT_TRUE(truth.is_whole());
  EXPECT_NE(truth.how().find("all outputs by the reference, tolerances by the last"), std::string::npos) << truth.how();
  std::vector<Datum> outputs = compile(graph).run(inputs);
  EXPECT_TRUE(truth.compare_all(outputs).ok) << truth.compare_all(outputs).why;
  Tensor wrong = outputs[0].tensor().clone();
  wrong.mutable_data<float>()[0] += 1;
  EXPECT_FALSE(truth.compare_all({Datum(wrong)}).ok);
}

// A chain of 200 nodes.
Graph long_chain(int64_t extent) {
  Graph graph("chain");
  Var x = input(graph, DType::f32, {extent, extent}, "x");
  for (int i = 0; i < 200; ++i) x = sin(x);
  graph.add_output(x.id(), "y");
  return graph;
}

// Of all nodes what they are, of the last ones alone what they may be off by.
TEST(Truth, ScalesAreFollowedFromTheTailOn) {
  const Graph graph = long_chain(8);
  const std::vector<ScaledDatum> inputs{{draw_f32(11, {8, 8}), {}}};
  const ErrorModel model;
  const std::vector<NodeId> tail = last_nodes(graph, 0.2 * cost_of_scaled_run(graph).flops);
  EXPECT_EQ(tail.size(), 40U);
  const ScaledDatum all = run_scaled(graph, inputs, model)[0];
  const ScaledDatum last = run_scaled_behind(graph, tail, inputs, model, nullptr)[0];
  EXPECT_TRUE(all.value.tensor().content_hash() == last.value.tensor().content_hash());
  EXPECT_TRUE(last.scale.is_present());
  const Tensor estimate = usual_scale(all.value.tensor());
  EXPECT_FALSE(estimate.content_hash() == last.scale.content_hash()) << "which were followed for 40 nodes";
  const ScaledDatum none = run_scaled_behind(graph, {}, inputs, model, nullptr)[0];
  EXPECT_TRUE(estimate.content_hash() == none.scale.content_hash());
  EXPECT_TRUE(run_scaled_behind(graph, tail, inputs, model, [] { return true; }).empty());
}

// A hundred nodes, two of which are slow: such as are compared last.
Graph slow_in_places() {
  Graph graph("slow");
  Var x = input(graph, DType::f32, {2, 3}, "x");
  for (int i = 0; i < 100; ++i) x = i == 6 || i == 13 ? apply(slow_relu_def(), {x}) : tanh(x);
  graph.add_output(x.id(), "y");
  return graph;
}

// What it takes is longer than what it says: 10 ms for six elements.
TEST(Truth, OfPartsWhereTheReferenceIsSlowerThanExpected) {
  const Truth truth =
      Truth::of(slow_in_places(), {draw_f32(10, {2, 3})}, {}, {.seconds = 10, .overdue_seconds = 0.008});
  EXPECT_FALSE(truth.is_whole());
  EXPECT_NE(truth.how().find("of 100 nodes"), std::string::npos) << truth.how();
  EXPECT_EQ(truth.fault(), "");
}

// A run of the graph is of its time: few nodes are compared where that was all of it.
TEST(Truth, OfPartsTakesTheRunForItsTime) {
  const CompileOptions options;
  const NodeComparison compared =
      compare_nodes(slow_in_places(), {draw_f32(10, {2, 3})}, options, error_model_of(options), 0.015);
  EXPECT_EQ(compared.num_nodes, 100U);
  EXPECT_EQ(compared.num_compared, 8U);
}

// Values that there is no time to look at take no memory: all of them would take 50 MiB.
TEST(Truth, OfPartsKeepsFewValuesWhereTimeIsShort) {
  CompileOptions options;
  options.memory_budget_bytes = size_t{20} << 20;
  const Graph graph = long_chain(256);
  const std::vector<Datum> inputs{draw_f32(11, {256, 256})};
  const ErrorModel model = error_model_of(options);
  EXPECT_EQ(compare_nodes(graph, inputs, options, model, 1e-6).num_compared, 8U);
  EXPECT_THROW(compare_nodes(graph, inputs, options, model, 10), BudgetError) << "all are kept where time allows";
}

TEST(Truth, OfPartsSaysWhatThereWasNoTimeToAttest) {
  const TestFolder folder;
  CompileOptions options;
  options.cache_folder = folder.path();
  const std::vector<Datum> inputs{draw_f32(7, {8, 64})};
  const Truth truth = Truth::of(uneven(), inputs, options, {.seconds = 1e-6});
  EXPECT_NE(truth.how().find("no time to attest"), std::string::npos) << truth.how();
  EXPECT_EQ(attested_kernels(options).trusted, 0);
  EXPECT_EQ(truth.fault(), "");
  const NodeComparison compared = compare_nodes(uneven(), inputs, options, error_model_of(options), 100);
  EXPECT_EQ(compared.num_unattested, 0U);
  EXPECT_GT(attested_kernels(options).trusted, 0);
}

// Sigmoid by the reference, but wrong behind arguments that attestation does not try.
class WrongFarOut : public Kernel {
 public:
  explicit WrongFarOut(const KernelCall& call) : op_(call.op), attributes_(call.attributes) {}
  void run(const KernelArgs& args) const override {
    call_reference(op_, {attributes_, args.inputs, args.outputs});
    for (int64_t i = 0; i < args.inputs[0].num_elements(); ++i) {
      if (args.inputs[0].data<float>()[i] > 1e3F) args.outputs[0].mutable_data<float>()[i] = 0.25F;
    }
  }

 private:
  const OpDef& op_;
  const Attributes& attributes_;
};

TEST(Truth, OfPartsNamesTheNodeWhoseKernelIsWrong) {
  const KernelDef wrong{.name = "cpu.wrong_far_out",
                        .op = "sigmoid",
                        .why_not = [](const KernelCall&) { return std::string(); },
                        .prepare =
                            [](const KernelCall& call) {
                              return Prepared{std::make_unique<WrongFarOut>(call), ""};
                            }};
  add_device(
      std::make_unique<CpuDevice>("wrong_far_out", std::vector<KernelDef>{wrong}, "a machine that is wrong far out"));
  CompileOptions options;
  options.device = "wrong_far_out";
  Graph graph("far_out");
  const Var x = input(graph, DType::f32, {8, 8}, "x");
  graph.add_output(sigmoid(mul(x, constant(graph, Tensor::scalar(1e4F)))).id(), "y");
  const std::vector<Datum> inputs{draw_f32(9, {8, 8})};
  const Truth truth = Truth::of(graph, inputs, options, {.seconds = 1e-6});
  EXPECT_NE(truth.fault().find("sigmoid"), std::string::npos) << truth.fault();
  EXPECT_FALSE(truth.compare_all(compile(graph, options).run(inputs)).ok);
}

}  // namespace
}  // namespace autograph
