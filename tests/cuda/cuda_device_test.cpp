// Plans on a CUDA device, as far as that can be seen without one: the stand-in compiles and runs what is emitted for
// CUDA, does work as late as events let it, and notes what may not be done.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/train.h"
#include "autograph/zoo.h"
#include "backends/cuda/cuda_device.h"
#include "backends/cuda/libraries/libraries.h"
#include "backends/cuda/machine.h"
#include "backends/cuda/stream.h"
#include "backends/gpu/emit/emitted.h"
#include "cli/run_program.h"
#include "cuda/cuda_test_device.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/random_graph.h"
#include "support/graphs/random_network.h"
#include "support/graphs/random_schedule.h"
#include "support/graphs/sample_graph.h"
#include "support/kernels/run_kernel.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

const Device& device() { return get_device("cuda"); }
const cuda::Machine& machine() { return cuda::get_machine(0); }

Tensor draw_f32(uint64_t seed, Dims dims) {
  Random random(seed);
  return draw_tensor(random, DType::f32, std::move(dims), -1, 1);
}

// ---- Libraries -----------------------------------------------------------------------------------------------------

// As pip installs them: a folder for each package, or one for all of a version.
TEST(CudaFolders, AreThoseOfPythonEnvironmentsToo) {
  const TestFolder environment;
  const std::string packages = environment / "lib/python3.12/site-packages/nvidia";
  for (const char* package : {"/cu13/lib", "/cudnn/lib"}) std::filesystem::create_directories(packages + package);
  ::setenv("VIRTUAL_ENV", (environment / "").c_str(), 1);
  const std::vector<std::string> folders = cuda::library_folders();
  ::unsetenv("VIRTUAL_ENV");
  ASSERT_FALSE(folders.empty());
  EXPECT_EQ(folders[0], AG_STANDIN_FOLDER) << "what AUTOGRAPH_CUDA_PATH names comes first";
  for (const char* package : {"/cu13/lib", "/cudnn/lib"}) {
    EXPECT_EQ(std::count(folders.begin(), folders.end(), packages + package), 1) << testing::PrintToString(folders);
  }
}

TEST(CudaNames, AreThoseOfDevices) {
  EXPECT_EQ(cuda_device_names(), std::vector<std::string>{"cuda"});
  EXPECT_EQ(make_cuda("cudax"), nullptr);
  EXPECT_EQ(make_cuda("cuda:"), nullptr);
  EXPECT_EQ(make_cuda("cuda:1x"), nullptr);
  EXPECT_NE(message_of<DeviceError>([] { make_cuda("cuda:1"); }), "");
  EXPECT_NE(message_of<DeviceError>([] { make_cuda("cuda:99"); }), "");
}

TEST(CudaNames, AreWhatGpuStandsFor) {
  for (const char* name : {"gpu", "GPU", "gpu:1", "nvidia"}) {
    const std::string message = message_of<DeviceError>([&] { get_device(name); });
    EXPECT_NE(message.find("(did you mean 'cuda'"), std::string::npos) << message;
  }
  EXPECT_EQ(device_hint("cpuu"), " (did you mean 'cpu'?)");
}

// ---- Kernels of their own kind -------------------------------------------------------------------------------------

using CudaKernels = CudaTest;

// Four elements are read and written at once where the address allows: here it does not, at both ends.
TEST_F(CudaKernels, MoveFoursFromAndToAnyPlace) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {1 + 16384 + 3});
  const std::vector<Var> pieces = split(x, std::vector<int64_t>{1, 16384, 3});
  graph.output("y", concat({pieces[2], pieces[1], pieces[0]}, 0));
  const Var a = graph.input("a", DType::f32, {127, 130});
  const Var b = graph.input("b", DType::f32, {130});
  const Var c = graph.input("c", DType::f32, {127, 1});
  graph.output("z", relu(a * b + c));
  const Graph built = graph.build();
  const std::vector<Datum> inputs{draw_f32(1, {16388}), draw_f32(2, {127, 130}), draw_f32(3, {130}),
                                  draw_f32(4, {127, 1})};
  EXPECT_EQ(difference(compile(built, on_cuda()).run(inputs), compile(built, on_reference()).run(inputs)), "");
}

// What follows a product is computed with it, whoever computes the product.
TEST_F(CudaKernels, ComputeWhatFollowsAProduct) {
  GraphBuilder graph;
  const Var a = graph.input("a", DType::f32, {20, 30});
  const Var b = graph.input("b", DType::f32, {30, 40});
  graph.output("y", relu(matmul(a, b)));
  const Executable there = compile(graph.build(), on_cuda());
  EXPECT_EQ(there.kernel_choices().size(), 1U);
  const std::vector<Datum> inputs{draw_f32(1, {20, 30}), draw_f32(2, {30, 40})};
  EXPECT_EQ(difference(there.run(inputs), compile(graph.build(), on_reference()).run(inputs)), "");
}

// Parts that lie behind each other in the whole are written and read where they are; others are copied there.
TEST_F(CudaKernels, JoinAndTakeApartInPlace) {
  GraphBuilder graph;
  const Var a = graph.input("a", DType::f32, {1, 3, 5, 7});
  const Var b = graph.input("b", DType::f32, {1, 4, 5, 7});
  const Var whole = concat({relu(a), b, sigmoid(b)}, 1);
  const std::vector<Var> pieces = split(whole, std::vector<int64_t>{6, 5}, 1);
  graph.output("whole", whole);
  graph.output("first", relu(pieces[0]));
  graph.output("second", pieces[1]);
  graph.output("rows", concat({a, a}, 2));
  const Graph built = graph.build();
  const Executable there = compile(built, on_cuda());
  size_t parts = 0;
  for (const KernelChoice& choice : there.kernel_choices()) parts += choice.kernel == "gpu.parts" ? 1 : 0;
  EXPECT_EQ(parts, 2U);
  const std::vector<Datum> inputs{draw_f32(1, {1, 3, 5, 7}), draw_f32(2, {1, 4, 5, 7})};
  const std::vector<Datum> expected = compile(built, on_reference()).run(inputs);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run(inputs), expected), "") << "run " << run;
}

// ---- Every op ------------------------------------------------------------------------------------------------------

class OpOnCuda : public CudaTest, public testing::WithParamInterface<const OpDef*> {};

// A sample that an emitter takes, where the op has one.
std::optional<uint64_t> seed_for(const OpDef& op) {
  const bool has_emitter = std::any_of(gpu::emitters().begin(), gpu::emitters().end(),
                                       [&](const gpu::Emitter& emitter) { return emitter.op == &op; });
  for (uint64_t seed = 100; seed < 140; ++seed) {
    Random random(seed);
    const KernelCase test(op, op.sample(random));
    if (!has_emitter || gpu::emit(test.call(), machine().target()).refusal.empty()) return seed;
  }
  return std::nullopt;
}

// Three runs: the second one is captured, and what was captured is replayed.
TEST_P(OpOnCuda, MatchesTheReference) {
  const OpDef& op = *GetParam();
  if (op.traits.random) return;
  const auto seed = seed_for(op);
  ASSERT_TRUE(seed) << op.name << " has an emitter that takes none of its samples";
  Random random(*seed);
  const TestGraph test = make_sample_graph(op, op.sample(random));
  const Executable there = compile(test.graph, on_cuda());
  const std::vector<Datum> expected = compile(test.graph, on_reference()).run(test.inputs);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run(test.inputs), expected), "") << "run " << run;
}

INSTANTIATE_TEST_SUITE_P(All, OpOnCuda, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

// ---- Graphs and streams --------------------------------------------------------------------------------------------

TEST_F(CudaTest, RunsRandomGraphs) {
  int num_compared = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    Random random(seed);
    const TestGraph test = make_random_graph(random, 10);
    const Executable there = compile(test.graph, on_cuda());
    std::vector<Datum> expected;
    try {
      expected = compile(test.graph, on_reference()).run(test.inputs);
    } catch (const UserError&) {  // what feeds an op may be out of its range
      continue;
    }
    ++num_compared;
    for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run(test.inputs), expected), "") << "seed " << seed;
  }
  EXPECT_GT(num_compared, 2);
}

TEST_F(CudaTest, GivesTheSameOnSeveralStreamsAndInOneGraph) {
  size_t width = 0;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const Graph graph = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    CompileOptions options = on_cuda();
    options.expert.schedule = std::make_shared<Schedule>(make_random_schedule(random, graph, 4, 1));
    width = std::max(width, static_cast<size_t>(options.expert.schedule->width()));
    const Executable there = compile(graph, options);
    const auto expected = compile(graph, on_reference()).run({x});
    for (int run = 0; run < 4; ++run) EXPECT_EQ(difference(there.run({x}), expected), "") << "seed " << seed;
  }
  EXPECT_GT(width, 1U);
}

Graph make_chain() {
  GraphBuilder graph("chain");
  const Var x = graph.input("x", DType::f32, {4, 8});
  graph.output("y", softmax(sigmoid(x * x + 1)));
  return graph.build();
}

TEST_F(CudaTest, ReplaysWhatItHasCaptured) {
  const Executable there = compile(make_chain(), on_cuda());
  const Tensor x = draw_f32(1, {4, 8}).to(device().memory());
  Tensor y = Tensor::empty(DType::f32, {4, 8}, device().memory());
  const auto expected = compile(make_chain(), on_reference()).run({x.to_host()});
  const standin::Counts before = standin::counts();
  std::vector<Datum> outputs;
  for (int run = 0; run < 5; ++run) outputs = there.run({x});
  const standin::Counts after = standin::counts();
  EXPECT_EQ(after.captures - before.captures, 1U);
  EXPECT_EQ(after.replays - before.replays, 4U);
  EXPECT_EQ(difference(outputs, expected), "");
}

// An input and an output that change places: each way round has a graph of its own.
TEST_F(CudaTest, KeepsAGraphForEachPlaceThatBuffersComeBackTo) {
  const Executable there = compile(make_chain(), on_cuda());
  const Executable here = compile(make_chain(), on_reference());
  Tensor expected = draw_f32(1, {4, 8});
  const std::vector<Tensor> buffers{expected.to(device().memory()),
                                    Tensor::empty(DType::f32, {4, 8}, device().memory())};
  const standin::Counts before = standin::counts();
  for (size_t run = 0; run < 8; ++run) {
    std::vector<Tensor> output{buffers[(run + 1) % 2]};
    there.run_into({buffers[run % 2]}, output);
    expected = here.run({expected})[0].tensor();
    EXPECT_EQ(difference(Datum(output[0].to_host()), Datum(expected)), "") << "run " << run;
  }
  const standin::Counts after = standin::counts();
  EXPECT_EQ(after.captures - before.captures, 2U);
  EXPECT_EQ(after.replays - before.replays, 6U);
}

// Outputs that the caller has let go of are those of the next run: two places in turn, and a graph for each.
TEST_F(CudaTest, ReplaysWhereOutputsStayOnTheDevice) {
  CompileOptions options = on_cuda();
  options.keep_on_device = true;
  const Executable there = compile(make_chain(), options);
  const Tensor x = draw_f32(1, {4, 8}).to(device().memory());
  const auto expected = compile(make_chain(), on_reference()).run({x.to_host()})[0];
  const standin::Counts before = standin::counts();
  std::vector<Datum> outputs;
  size_t allocated = 0;
  for (int run = 0; run < 8; ++run) {
    outputs = there.run({x});
    EXPECT_EQ(difference(Datum(outputs[0].tensor().to_host()), expected), "") << "run " << run;
    if (run == 1) allocated = standin::counts().allocated;
  }
  const standin::Counts after = standin::counts();
  EXPECT_EQ(after.captures - before.captures, 2U);
  EXPECT_EQ(after.replays - before.replays, 6U);
  EXPECT_EQ(after.allocated, allocated);
}

// Outputs that stay somewhere else each time: there is nothing to capture, and no graph is left of places of before.
TEST_F(CudaTest, KeepsFewGraphsOfPlaces) {
  const Executable there = compile(make_chain(), on_cuda());
  const Tensor x = draw_f32(1, {4, 8}).to(device().memory());
  const size_t graphs = standin::counts().graphs;
  std::vector<Tensor> outputs;
  for (int place = 0; place < 9; ++place) {
    std::vector<Tensor> output{Tensor::empty(DType::f32, {4, 8}, device().memory())};
    for (int run = 0; run < 2; ++run) there.run_into({x}, output);
    outputs.push_back(output[0]);
    EXPECT_TRUE(output[0].to_host().bitwise_equal(outputs[0].to_host()));
  }
  EXPECT_EQ(standin::counts().graphs - graphs, 4U);
}

// A plan file may have more streams than the device is worth.
TEST_F(CudaTest, SharesEightStreamsAmongAllThatAScheduleHas) {
  Graph graph("wide");
  const Var x = input(graph, DType::f32, {4, 8}, "x");
  CompileOptions options = on_cuda();
  Schedule schedule;
  schedule.stages.resize(2);
  std::vector<Var> branches;
  for (int k = 0; k < 12; ++k) {
    branches.push_back(sigmoid(x + static_cast<double>(k)));
    const NodeId last = graph.value(branches.back().id()).producer();
    schedule.stages[0].streams.push_back({graph.value(graph.node(last).inputs()[0]).producer(), last});
  }
  const Var y = concat(branches, 0);
  schedule.stages[1].streams.push_back({graph.value(y.id()).producer()});
  graph.add_output(y.id(), "y");
  options.expert.schedule = std::make_shared<Schedule>(schedule);
  machine();  // has a stream of its own
  const size_t before = standin::counts().streams;
  const Executable there = compile(graph, options);
  const Tensor in = draw_f32(1, {4, 8});
  const auto expected = compile(graph, on_reference()).run({in});
  for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run({in}), expected), "") << "run " << run;
  EXPECT_EQ(standin::counts().streams - before, 8U);
}

// What the driver does not capture, inside of a library for example, runs as it is.
TEST_F(CudaTest, GoesOnWhereTheDriverEndsACapture) {
  cuda::CudaStream stream(machine());
  const auto piece = device().memory()->allocate(64);
  EXPECT_EQ(stream.capture([&] { device().memory()->allocate(64); }), nullptr);
  EXPECT_EQ(standin::take_misuses().size(), 1U) << "as libraries do";
  const auto copies = [&] { device().memory()->copy(piece.get(), static_cast<char*>(piece.get()) + 32, 32, &stream); };
  EXPECT_NE(stream.capture(copies), nullptr);
  copies();
  stream.wait();
}

// One graph more than the device has room for.
TEST_F(CudaTest, GoesOnWithoutRoomForAGraph) {
  const Executable there = compile(make_chain(), on_cuda());
  const Tensor x = draw_f32(1, {4, 8});
  const auto expected = compile(make_chain(), on_reference()).run({x});
  const size_t replays = standin::counts().replays;
  ::setenv("AG_STANDIN_GRAPHS", "0", 1);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run({x}), expected), "") << "run " << run;
  ::unsetenv("AG_STANDIN_GRAPHS");
  EXPECT_EQ(standin::counts().replays, replays);
}

// Nothing of the step runs on the host: forward, backward and update are one graph.
TEST_F(CudaTest, CapturesAStepOfTrainingAGru) {
  Graph model("gru");
  const auto weight = [&](uint64_t seed, Dims dims) { return constant(model, draw_f32(seed, std::move(dims))); };
  const Var x = input(model, DType::f32, {3, 2, 4}, "x");
  const Var last = gru(x, weight(1, {1, 15, 4}), weight(2, {1, 15, 5}), weight(3, {1, 30}))[1];
  model.add_output(squeeze(last, {0}).id(), "scores");
  const Graph step = training_graph(model, {.optimizer = Sgd{.learning_rate = 0.1}});
  const Executable there = compile(step, on_cuda()), here = compile(step, on_reference());
  const std::vector<Datum> batch{draw_f32(4, {3, 2, 4}), Tensor::vector({1, 4})};
  const standin::Counts before = standin::counts();
  for (int run = 0; run < 4; ++run) {
    EXPECT_EQ(difference(there.run(batch)["loss"], here.run(batch)["loss"], {1e-5, 1e-5}), "") << "step " << run;
  }
  const standin::Counts after = standin::counts();
  EXPECT_EQ(after.captures - before.captures, 1U);
  EXPECT_GE(after.replays - before.replays, 2U);
}

// A node that the host computes waits: the plan is not captured, and gives the same.
TEST_F(CudaTest, CapturesNothingThatWaits) {
  Graph graph("waits");
  graph.add_output(column_on_host(input(graph, DType::f32, {4, 8}, "x")).id(), "y");
  const Executable there = compile(graph, on_cuda());
  const std::vector<Datum> inputs{draw_f32(1, {4, 8})};
  const auto expected = compile(graph, on_reference()).run(inputs);
  const standin::Counts before = standin::counts();
  for (int run = 0; run < 4; ++run) EXPECT_EQ(difference(there.run(inputs), expected), "");
  const standin::Counts after = standin::counts();
  EXPECT_EQ(after.captures - before.captures, 1U) << "tried once";
  EXPECT_EQ(after.replays, before.replays);
  EXPECT_EQ(after.graphs, before.graphs);
}

// The index is found to be wrong while the device works, also by a graph that is replayed.
TEST_F(CudaTest, NamesTheStepThatHasAWrongIndex) {
  Graph graph("wrong");
  const Var x = input(graph, DType::f32, {4, 2}, "x");
  const Var indices = input(graph, DType::i64, {3}, "indices");
  graph.add_output(relu(gather(relu(x), indices)).id(), "y");
  const Executable there = compile(graph, on_cuda());
  const Executable reference = compile(graph, on_reference());
  const Tensor values = draw_f32(1, {4, 2});
  const std::vector<Datum> right{values, Tensor::vector({0, -1, 1})};
  const std::vector<Datum> wrong{values, Tensor::vector({0, 9, 1})};
  for (int run = 0; run < 4; ++run) {
    EXPECT_EQ(difference(there.run(right), reference.run(right)), "") << "run " << run;
    const std::string message = message_of<ValueError>([&] { there.run(wrong); });
    EXPECT_EQ(message.find("[gather] indices: expected -4..3 for extent 4, got 9 (in "), 0U) << message;
  }
}

TEST_F(CudaTest, TellsTimesOfTheDevice) {
  CompileOptions options = on_cuda();
  options.profile = true;
  const Executable there = compile(make_chain(), options);
  there.run({draw_f32(1, {4, 8})});
  ASSERT_FALSE(there.profile().empty());
  // The clock of the stand-in: a microsecond for whatever there is in a stream.
  for (const StepProfile& step : there.profile()) EXPECT_NEAR(step.duration_us, std::round(step.duration_us), 1e-3);
}

TEST_F(CudaTest, RunsModels) {
  const Graph graph = build_zoo_model("mlp");
  std::vector<Datum> inputs;
  for (const ValueId v : graph.inputs()) {
    Random random(v.index);
    const Type& type = graph.type(v);
    inputs.emplace_back(draw_tensor(random, type.dtype(), type.shape().static_dims(), 0, 1));
  }
  const Executable there = compile(graph, on_cuda());
  for (const KernelChoice& choice : there.kernel_choices()) EXPECT_NE(choice.kernel, "reference") << choice.op;
  EXPECT_EQ(difference(there.run(inputs), compile(graph, on_reference()).run(inputs), {1e-4, 1e-4}), "");
}

// ---- Memory and lifetimes ------------------------------------------------------------------------------------------

TEST_F(CudaTest, LeavesNothingBehind) {
  // What a device keeps as long as the process lives is there afterwards.
  compile(make_chain(), on_cuda()).run({draw_f32(1, {4, 8})});
  const standin::Counts before = standin::counts();
  {
    const Executable there = compile(make_chain(), on_cuda());
    for (int run = 0; run < 3; ++run) there.run({draw_f32(1, {4, 8})});
    EXPECT_GT(standin::counts().allocations, before.allocations);
    EXPECT_GT(standin::counts().modules, before.modules);
    EXPECT_GT(standin::counts().graphs, before.graphs);
  }
  const standin::Counts after = standin::counts();
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.pinned, before.pinned);
  EXPECT_EQ(after.streams, before.streams);
  EXPECT_EQ(after.events, before.events);
  EXPECT_EQ(after.modules, before.modules);
  EXPECT_EQ(after.graphs, before.graphs);
}

// A rule of the stand-in: graphs keep no modules.
TEST_F(CudaTest, FindsGraphsThatOutliveTheirKernels) {
  auto module = machine().modules().get("extern \"C\" __global__ void kernel0(int* x) { x[0] = 1; }");
  const auto piece = device().memory()->allocate(64);
  cuda::CudaStream stream(machine());
  const void* const pointer = piece.get();
  const auto captured = stream.capture([&] { stream.launch({module->function("kernel0"), 1, 1, {&pointer, 1}, "x"}); });
  ASSERT_NE(captured, nullptr);
  captured->replay(stream);
  stream.wait();
  EXPECT_EQ(standin::take_misuses().size(), 0U);
  module.reset();
  captured->replay(stream);
  stream.wait();
  EXPECT_EQ(standin::take_misuses().size(), 1U);
}

TEST_F(CudaTest, CopiesThereBackAndWithin) {
  const Tensor host = draw_f32(1, {5, 7});
  const Tensor there = host.to(device().memory());
  EXPECT_FALSE(there.is_on_host());
  EXPECT_NE(message_of<DeviceError>([&] { static_cast<void>(there.raw()); }).find("to_host()"), std::string::npos);
  EXPECT_TRUE(there.to_host().bitwise_equal(host));
  EXPECT_TRUE(there.clone().to_host().bitwise_equal(host));
  EXPECT_EQ(device().memory()->allocate(0), nullptr);
}

// By way of page-locked memory where it has room, which grows; else as the driver does it.
TEST_F(CudaTest, CopiesOfAllSizesPassThroughAStream) {
  const Memory& memory = *device().memory();
  cuda::CudaStream stream(machine());
  for (const int64_t count : {1, 1000, 1 << 20, 1, 12 << 20, 3}) {
    std::vector<Tensor> given, taken;
    std::vector<std::shared_ptr<void>> pieces;
    for (uint64_t k = 0; k < 3; ++k) {
      given.push_back(draw_tensor(*std::make_unique<Random>(k), DType::u8, {count}));
      taken.push_back(Tensor::zeros(DType::u8, {count}));
      pieces.push_back(memory.allocate(static_cast<size_t>(count)));
      memory.write(pieces[k].get(), given[k].raw(), static_cast<size_t>(count), &stream);
    }
    for (size_t k = 0; k < 3; ++k) {
      memory.read(taken[k].mutable_raw(), pieces[k].get(), static_cast<size_t>(count), &stream);
    }
    stream.wait();
    for (size_t k = 0; k < 3; ++k) EXPECT_TRUE(taken[k].bitwise_equal(given[k])) << count;
  }
}

TEST_F(CudaTest, RefusesWhatIsTooLarge) {
  const std::string message = message_of<BudgetError>([&] { device().memory()->allocate(size_t{1} << 50); });
  EXPECT_NE(message.find(std::to_string(size_t{1} << 50)), std::string::npos) << message;
  EXPECT_NE(message.find("free"), std::string::npos) << message;
}

// A device may have more memory than the host.
TEST_F(CudaTest, PlansForMoreMemoryThanTheHostHas) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {int64_t{1} << 38});
  graph.output("y", relu(x));
  const Graph built = graph.build();
  EXPECT_NE(message_of<BudgetError>([&] { compile(built, on_reference()); }), "");
  EXPECT_EQ(compile(built, on_cuda()).kernel_choices()[0].kernel, "cuda.generated");
  CompileOptions options = on_cuda();
  options.memory_budget_bytes = size_t{1} << 30;
  EXPECT_NE(message_of<BudgetError>([&] { compile(built, options); }).find("1073741824 may be used"),
            std::string::npos);
}

TEST_F(CudaTest, NamesTheLargestTensorsWhereAnInputHasNoRoom) {
  GraphBuilder graph;
  graph.output("y", relu(graph.input("x", DType::f32, {1000})));
  const Executable there = compile(graph.build(), on_cuda());
  ::setenv("AG_STANDIN_MEMORY", "100", 1);
  const std::string message = message_of<BudgetError>([&] { there.run({draw_f32(1, {1000})}); });
  ::unsetenv("AG_STANDIN_MEMORY");
  EXPECT_NE(message.find("no room for 4000 bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("the largest tensors are:"), std::string::npos) << message;
  EXPECT_EQ(there.run({draw_f32(1, {1000})}).size(), 1U) << "as soon as there is room";
}

TEST_F(CudaTest, BuildsProgramsOnce) {
  const std::string source =
      "extern \"C\" __global__ void kernel0(int* x) { x[0] = " + std::to_string(::getpid()) + "; }";
  const TestFolder folder;
  cuda::ModuleCache first(machine(), folder.path());
  const auto program = first.get(source);
  EXPECT_EQ(first.get(source), program);
  EXPECT_EQ(first.counts().compiled, 1U);
  EXPECT_EQ(first.counts().shared, 1U);
  cuda::ModuleCache second(machine(), folder.path());
  second.get(source);
  EXPECT_EQ(second.counts().from_file, 1U) << "what the first one left";
  const std::string message = message_of<InternalError>(
      [&] { machine().modules().get("extern \"C\" __global__ void kernel0() { no_such_name(); }"); });
  EXPECT_NE(message.find("no_such_name"), std::string::npos) << message;
}

}  // namespace
}  // namespace autograph
