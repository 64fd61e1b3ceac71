// Choosing kernels by running whole plans.
#include "engine/tune_in_network.h"

#include <gtest/gtest.h>

#include <span>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/seeded_inputs.h"
#include "support/compare.h"
#include "support/graphs/random_network.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

Tensor filled(Dims dims, float value) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(dims));
  for (float& x : std::span(tensor.mutable_data<float>(), static_cast<size_t>(tensor.num_elements()))) x = value;
  return tensor;
}

class TuneInNetworkTest : public testing::Test {
 protected:
  TuneInNetworkTest() {
    options_.tune = true;
    options_.threads = 1;
    options_.cache_folder = folder_.path();
    options_.on_tune = [this](const TuneProgress& at) { num_plans_ += at.in_network ? 1 : 0; };
  }

  // Makes sure that what is the fastest alone is not what estimates choose, so that there are plans to run.
  void turn_times_round(const Graph& graph) {
    CompileOptions alone = options_;
    alone.expert.tune_in_network = false;
    KernelTimes times = compile(graph, alone).kernel_times();
    for (auto& [key, us] : times) us = 1e6 / us;
    options_.expert.kernel_times = std::make_shared<const KernelTimes>(std::move(times));
    EXPECT_EQ(num_plans_, 0) << "not asked for";
  }

  static std::vector<Datum> expected(const Graph& graph, const std::vector<Datum>& inputs) {
    CompileOptions reference;
    reference.device = "reference";
    reference.expert.use_passes = false;
    return compile(graph, reference).run(inputs);
  }

  static std::vector<std::string> kernels(const Executable& executable) {
    std::vector<std::string> names;
    for (const KernelChoice& choice : executable.kernel_choices()) names.push_back(choice.kernel);
    return names;
  }

  TestFolder folder_;
  CompileOptions options_;
  int num_plans_ = 0;
};

TEST_F(TuneInNetworkTest, RunsPlansOnceAndGivesTheSameNumbers) {
  const Graph graph = make_random_network(3);
  turn_times_round(graph);
  const Executable tuned = compile(graph, options_);
  EXPECT_GT(num_plans_, 0);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_EQ(difference(tuned.run(inputs), expected(graph, inputs), {2e-3, 2e-3}), "");

  num_plans_ = 0;
  EXPECT_EQ(kernels(compile(graph, options_)), kernels(tuned)) << "by what the cache has kept";
  CompileOptions no_plans = options_;
  no_plans.expert.tune_in_network = false;
  EXPECT_EQ(kernels(compile(graph, no_plans)), kernels(tuned)) << "which no plan has to be run for";
  options_.cache_folder = folder_ / "elsewhere";
  options_.expert.kernel_times = std::make_shared<const KernelTimes>(tuned.kernel_times());
  options_.release_weights = true;
  const Executable loaded = compile(graph, options_);
  EXPECT_EQ(kernels(loaded), kernels(tuned)) << "by what a plan file would bring";
  EXPECT_EQ(num_plans_, 0);
  EXPECT_EQ(difference(loaded.run(inputs), expected(graph, inputs), {2e-3, 2e-3}), "");
}

TEST_F(TuneInNetworkTest, RunsNoPlansWhereNothingMayBeMeasured) {
  const Graph graph = make_random_network(3);
  turn_times_round(graph);
  options_.expert.may_try = [](KernelTrial trial, std::string_view) { return trial != KernelTrial::measure; };
  compile(graph, options_);
  EXPECT_EQ(num_plans_, 0) << "they take as long as a dozen runs each";
}

TEST_F(TuneInNetworkTest, ReleasesWeightsOfThePlanItKeeps) {
  const Graph graph = make_random_network(4);
  turn_times_round(graph);
  options_.release_weights = true;
  const Executable tuned = compile(graph, options_);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_EQ(difference(tuned.run(inputs), expected(graph, inputs), {2e-3, 2e-3}), "");
}

// Indices are drawn below the first extent, which is more than the last.
TEST_F(TuneInNetworkTest, TakesTheKernelsThatAreFastAloneWhereDrawnInputsCannotBeRun) {
  Graph graph;
  const Var x = input(graph, DType::f32, {8, 32, 14, 1}, "x");
  const Var indices = input(graph, DType::i64, {64, 4}, "indices");
  const Var y = apply(get_op("conv"), {x, constant(graph, filled({32, 32, 3, 3}, 0.25F))},
                      {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  graph.add_output(apply(get_op("gather_nd"), {y, indices}).id(), "y");
  turn_times_round(graph);
  const Executable tuned = compile(graph, options_);
  EXPECT_EQ(num_plans_, 1) << "one was tried";
  const Tensor ones = filled({8, 32, 14, 1}, 1);
  const Tensor zeros = Tensor::zeros(DType::i64, {64, 4});
  EXPECT_EQ(difference(tuned.run({ones, zeros}), expected(graph, {ones, zeros}), {1e-5, 1e-5}), "");
}

TEST(NetworkKey, TellsNetworksApartButNotTheirWeights) {
  const auto make = [](int64_t width, float weight, const std::string& op) {
    Graph graph;
    const Var x = input(graph, DType::f32, {4, width}, "x");
    const Var y = apply(get_op("matmul"), {x, constant(graph, filled({width, 8}, weight))});
    graph.add_output(apply(get_op(op), {y}).id(), "y");
    return graph;
  };
  const CompileOptions options;
  const std::string key = network_key(make(16, 1, "relu"), options, 2);
  EXPECT_EQ(network_key(make(16, 2, "relu"), options, 2), key);
  EXPECT_NE(network_key(make(32, 1, "relu"), options, 2), key);
  EXPECT_NE(network_key(make(16, 1, "tanh"), options, 2), key);
  EXPECT_NE(network_key(make(16, 1, "relu"), options, 1), key);
  CompileOptions in_sequence;
  in_sequence.expert.schedule = std::make_shared<const Schedule>();
  EXPECT_EQ(network_key(make(16, 1, "relu"), in_sequence, 2), key);
  CompileOptions exact;
  exact.exact = true;
  EXPECT_NE(network_key(make(16, 1, "relu"), exact, 2), key);
}

}  // namespace
}  // namespace autograph
