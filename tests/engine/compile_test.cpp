#include "autograph/compile.h"
#include "autograph/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "autograph/builder.h"
#include "autograph/devices.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
#include "backends/cpu/cpu_device.h"
#include "backends/cpu/machine/cache_sizes.h"
#include "backends/cpu/simd/conv/pointwise_conv_loops.h"
#include "engine/built_in_devices.h"
#include "support/message_of.h"

namespace autograph {
namespace {

CompileOptions on(const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = 1;
  return options;
}

// y = softmax(sigmoid(relu(x))), z = relu(x).
Graph small_graph(Shape shape) {
  Graph graph("small");
  const Var x = input(graph, DType::f32, std::move(shape), "x");
  const Var r = relu(x);
  graph.add_output(softmax(sigmoid(r)).id(), "y");
  graph.add_output(r.id(), "z");
  return graph;
}

// Counts how often it is asked for a latency.
class CountingDevice : public CpuDevice {
 public:
  CountingDevice() : CpuDevice("counting", {}, "a machine that counts") {}
  std::optional<double> latency_us(const Graph&, const Schedule&) const override { return 1e3 * ++num_asked_; }

 private:
  mutable int num_asked_ = 0;
};

// Of a graph of 100,000 nodes it takes half a second.
TEST(Compile, TheLatencyOfAPlanIsComputedOnce) {
  add_device(std::make_unique<CountingDevice>());
  const Executable executable = compile(small_graph({1, 2}), on("counting"));
  EXPECT_EQ(executable.simulated_latency_ms(), 1);
  EXPECT_EQ(executable.simulated_latency_ms(), 1);
}

TEST(Devices, NamesAreKnownWhetherOrNotTheyAreThere) {
  add_device(std::make_unique<CpuDevice>("named", std::vector<KernelDef>(), "a machine to be named"));
  std::vector<std::string> names = available_devices();
  names.insert(names.end(), {"named", "cuda", "cuda:1", "opencl", "opencl:3", "sim:wide"});
  for (const std::string& name : names) EXPECT_TRUE(is_device_name(name)) << name;
  for (const char* const name : {"", "sim", "cud", "gpu:0", "nam"}) EXPECT_FALSE(is_device_name(name)) << name;
}

TEST(Compile, RunsAStaticGraph) {
  for (const std::string& device : built_in_devices()) {
    const Executable executable = compile(small_graph({1, 2}), on(device));
    const auto outputs = executable.run({Tensor::of<float>({1, 2}, {-1.f, 0.f})});
    EXPECT_EQ(outputs[0].tensor().to_f64(), (std::vector<double>{0.5, 0.5}));
    EXPECT_EQ(outputs[1].tensor().to_f64(), (std::vector<double>{0, 0}));
  }
}

TEST(Compile, BindsSymbolicDimsPerRun) {
  const Executable executable = compile(small_graph({Dim::symbol("batch"), 2}), on("cpu"));
  for (const int64_t batch : {3, 1, 3, 0}) {
    const auto outputs = executable.run({Tensor::zeros(DType::f32, {batch, 2})});
    EXPECT_EQ(outputs[0].tensor().dims(), (Dims{batch, 2}));
  }
}

TEST(Compile, SeveralThreadsShareOneExecutable) {
  const Executable executable = compile(small_graph({Dim::symbol("batch"), 2}), on("cpu"));
  std::vector<std::thread> threads;
  std::vector<int> failures(8, 0);
  for (size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      const int64_t batch = 1 + static_cast<int64_t>(t) % 3;
      const float value = static_cast<float>(t) + 1;
      const Tensor x = Tensor::of<float>({batch, 2}, std::vector<float>(static_cast<size_t>(batch) * 2, value));
      for (int round = 0; round < 200; ++round) {
        const auto outputs = executable.run({x});
        for (const double z : outputs[1].tensor().to_f64()) failures[t] += z != value;
        for (const double y : outputs[0].tensor().to_f64()) failures[t] += y != 0.5;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, std::vector<int>(8, 0));
}

TEST(Compile, RunIntoWritesIntoTheCallersTensors) {
  const Executable executable = compile(small_graph({2, 2}), on("cpu"));
  const std::vector<Tensor> inputs{Tensor::of<float>({2, 2}, {-1, 2, 3, 3})};
  std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {2, 2}), Tensor::zeros(DType::f32, {2, 2})};
  const void* before = outputs[1].raw();
  executable.run_into(inputs, outputs);
  EXPECT_EQ(outputs[1].raw(), before);
  EXPECT_EQ(outputs[1].to_f64(), (std::vector<double>{0, 2, 3, 3}));
  outputs[0] = Tensor::zeros(DType::f32, {4});
  EXPECT_EQ(message_of<ShapeError>([&] { executable.run_into(inputs, outputs); }),
            "[run] output 0: expected f32[2,2], got f32[4]");
}

TEST(Compile, InputsAndWeightsCanBeOutputs) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var c = constant(graph, Tensor::of<float>({2}, {7, 8}));
  for (const Var& v : {x, c, x}) graph.add_output(v.id());
  const auto outputs = compile(std::move(graph), on("reference")).run({Tensor::of<float>({2}, {1, 2})});
  EXPECT_EQ(outputs[0].tensor().to_f64(), (std::vector<double>{1, 2}));
  EXPECT_EQ(outputs[1].tensor().to_f64(), (std::vector<double>{7, 8}));
  EXPECT_EQ(outputs[2].tensor().to_f64(), (std::vector<double>{1, 2}));
}

TEST(Compile, OneValueCanBeTwoOutputs) {
  Graph graph;
  const Var y = relu(input(graph, DType::f32, {2}, "x"));
  graph.add_output(y.id());
  graph.add_output(y.id());
  const auto outputs = compile(std::move(graph), on("cpu")).run({Tensor::of<float>({2}, {-1, 2})});
  EXPECT_TRUE(outputs[0].tensor().bitwise_equal(outputs[1].tensor()));
  EXPECT_NE(outputs[0].tensor().raw(), outputs[1].tensor().raw());
}

TEST(Compile, RejectsInputsThatDoNotFit) {
  Graph graph;
  const Var a = input(graph, DType::f32, {Dim::symbol("n"), 2}, "a");
  const Var b = input(graph, DType::f32, {Dim::symbol("n")}, "b");
  graph.add_output(relu(a).id());
  graph.add_output(relu(b).id());
  const Executable e = compile(std::move(graph), on("cpu"));
  const Tensor good = Tensor::zeros(DType::f32, {3, 2});
  EXPECT_EQ(message_of<ValueError>([&] { e.run({good}); }), "[run] inputs: expected 2, got 1");
  EXPECT_EQ(message_of<TypeError>([&] {
              e.run({Tensor::zeros(DType::f64, {3, 2}), good});
            }),
            "[run] input 'a': expected f32[n,2], got f64[3,2]");
  EXPECT_EQ(message_of<TypeError>([&] { e.run({Datum(), good}); }), "[run] input 'a': expected f32[n,2], got nothing");
  EXPECT_EQ(message_of<ShapeError>([&] {
              e.run({Tensor::zeros(DType::f32, {3, 4}), good});
            }),
            "[run] input 'a': expected f32[n,2], got f32[3,4]");
  EXPECT_EQ(message_of<ShapeError>([&] {
              e.run({good, Tensor::zeros(DType::f32, {4})});
            }),
            "[run] input 'b': dim 'n' is 4 here, but 3 in input 'a'");
}

TEST(Compile, NamesTheNearestStrategyAndDevice) {
  EXPECT_EQ(message_of<ValueError>([] { strategy_named("sequental"); }),
            "[search] strategy: expected one of "
            "[sequential,greedy,list,taso,ios,nimble,taso+nimble,paper,search,autograph], got "
            "'sequental' (did you mean 'sequential'?)");
  try {
    compile(small_graph({2}), on("cuda"));
    FAIL() << "compiled for a device that is not there";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::device_unavailable);
  }
}

TEST(Compile, BudgetIsCheckedBeforeAllocating) {
  CompileOptions options = on("cpu");
  options.memory_budget_bytes = 1500;
  const std::string text = message_of<BudgetError>([&] { compile(small_graph({16, 16}), options); });
  EXPECT_NE(text.find("exceed the budget of 1500 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("1024 bytes f32[16,16]"), std::string::npos) << text;
  EXPECT_NE(text.find("made by node #0 relu"), std::string::npos) << text;
}

TEST(Compile, AbsurdShapesAreABudgetError) {
  for (const int64_t extent : {int64_t{1} << 40, int64_t{1} << 61}) {
    EXPECT_THROW(compile(small_graph({extent, 2}), on("cpu")), BudgetError) << extent;
  }
}

TEST(Compile, ProfileHasOneEntryPerStep) {
  CompileOptions options = on("cpu");
  options.profile = true;
  const Executable executable = compile(small_graph({2, 2}), options);
  EXPECT_TRUE(executable.profile().empty());
  executable.run({Tensor::zeros(DType::f32, {2, 2})});
  const auto profile = executable.profile();
  ASSERT_EQ(profile.size(), 3u);
  EXPECT_EQ(profile[2].op, "softmax");
  EXPECT_GE(profile[2].start_us, profile[1].start_us + profile[1].duration_us);
}

TEST(Compile, ProfileTellsWorkLayoutAndChoiceOfEveryStep) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape({1, 16, 8, 8}), "x");
  const Var w = constant(graph, Tensor::zeros(DType::f32, {32, 16, 1, 1}));
  graph.add_output(conv(x, w).id(), "y");
  CompileOptions options = on("cpu");
  options.profile = true;
  const Executable executable = compile(std::move(graph), options);
  for (int run = 0; run < 2; ++run) executable.run({Tensor::zeros(DType::f32, {1, 16, 8, 8})});
  const std::vector<KernelChoice> choices = executable.kernel_choices();
  const std::vector<StepProfile> profile = executable.profile();
  ASSERT_EQ(profile.size(), choices.size());
  for (const StepProfile& step : profile) {
    EXPECT_EQ(choices[step.choice].kernel, step.kernel);
    const bool is_conv = step.op == "conv";  // the others change its layout
    EXPECT_EQ(step.flops, is_conv ? 2.0 * 32 * 16 * 8 * 8 : 0) << step.op;
    EXPECT_GT(step.bytes, 0) << step.op;
    EXPECT_TRUE(is_conv ? !step.layout.empty() : step.layout.find(" -> ") != std::string::npos) << step.layout;
  }
}

TEST(Compile, ReleasesWeightsThatKernelsHavePacked) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 16, 8, 8}, "x");
  const Var w = constant(graph, Tensor::zeros(DType::f32, {16, 16, 3, 3}), "w");
  graph.add_output(conv(x, w).id(), "y");
  CompileOptions options = on("cpu");
  const Executable kept = compile(graph, options);
  options.release_weights = true;
  const Executable released = compile(graph, options);
  const Tensor data = Tensor::zeros(DType::f32, {1, 16, 8, 8});
  EXPECT_TRUE(released.run({data})[0].tensor().bitwise_equal(kept.run({data})[0].tensor()));
  for (const ValueId v : kept.graph().constants()) EXPECT_NE(kept.graph().value(v).constant().raw(), nullptr);
  for (const ValueId v : released.graph().constants()) {
    EXPECT_EQ(released.graph().value(v).constant().raw(), nullptr);
    EXPECT_EQ(released.graph().type(v), Type(DType::f32, {16, 16, 3, 3}));
  }
  EXPECT_LT(released.memory().weight_bytes, kept.memory().weight_bytes);
  // Working memory of kernels counts in all three.
  EXPECT_LE(kept.memory().lower_bound_bytes, kept.memory().arena_bytes);
  EXPECT_LE(kept.memory().arena_bytes, kept.memory().sum_of_tensors_bytes);
}

// How many of `layers` products, of 100 rows each with an eighth of what the second cache holds, have the kernel that
// reads weights ahead.
int64_t products_ahead(int64_t layers) {
  const auto weights = static_cast<double>(cache_bytes(_SC_LEVEL2_CACHE_SIZE, 0) / sizeof(float)) / 8;
  const auto extent = static_cast<int64_t>(std::sqrt(weights));
  Graph graph("products");
  Var x = input(graph, DType::f32, {100, extent}, "x");
  for (int64_t k = 0; k < layers; ++k) {
    Tensor weight = Tensor::empty(DType::f32, {extent, extent});
    std::fill_n(weight.mutable_data<float>(), weight.num_elements(), static_cast<float>(k));
    x = relu(matmul(x, constant(graph, std::move(weight))));
  }
  graph.add_output(x.id());
  const std::vector<KernelChoice> choices = compile(graph, on("cpu")).kernel_choices();
  return std::count_if(choices.begin(), choices.end(),
                       [](const KernelChoice& choice) { return choice.kernel == "cpu.weight_product_simd"; });
}

TEST(Compile, ReadsWeightsAheadThatTheSecondCacheDoesNotHold) {
  if (cache_bytes(_SC_LEVEL2_CACHE_SIZE, 0) == 0) GTEST_SKIP() << "a second cache of unknown size";
  EXPECT_EQ(products_ahead(1), 0);
  EXPECT_EQ(products_ahead(16), 16);
}

// The kernel of a product of so many rows with a known matrix.
std::string kernel_of_product(int64_t rows, int64_t depth, int64_t columns) {
  Graph graph("product");
  const Var x = input(graph, DType::f32, {rows, depth}, "x");
  graph.add_output(matmul(x, constant(graph, Tensor::zeros(DType::f32, {depth, columns}))).id());
  return compile(std::move(graph), on("cpu")).kernel_choices().front().kernel;
}

TEST(Compile, MakesNoCodeForProductsThatOneThreadComputes) {
  for (const int64_t extent : {8, 16, 24, 32}) {
    EXPECT_EQ(kernel_of_product(extent, extent, extent), "cpu.weight_product_simd") << extent;
  }
  if (simd::pointwise_vector_width() == 16) {
    EXPECT_NE(kernel_of_product(500, 10, 10), "cpu.weight_product_simd") << "panels of which most is padding";
  }
  EXPECT_NE(kernel_of_product(1, 256, 256), "cpu.weight_product_simd") << "it reads weights, and does little else";
}

TEST(Compile, MemoryReportAndPlanText) {
  const Executable executable = compile(small_graph({16, 16}), on("reference"));
  const MemoryReport memory = executable.memory();
  EXPECT_EQ(memory.arena_bytes, 1024u);
  EXPECT_EQ(memory.sum_of_tensors_bytes, 1024u);
  const std::string text = executable.print_plan();
  EXPECT_NE(text.find("plan: 3 steps, arena 1024 bytes"), std::string::npos) << text;
  EXPECT_NE(text.find("softmax [reference]"), std::string::npos) << text;
  EXPECT_NE(text.find("output1 \"z\""), std::string::npos) << text;
}

}  // namespace
}  // namespace autograph
