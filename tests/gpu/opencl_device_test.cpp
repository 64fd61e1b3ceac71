// Plans on an OpenCL device: memory, streams, programs, and all ops beside the reference.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>

#include "autograph/builder.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/zoo.h"
#include "backends/gpu/emit/emitted.h"
#include "backends/gpu/program_store.h"
#include "backends/opencl/api.h"
#include "backends/opencl/declarations.h"
#include "backends/opencl/machine.h"
#include "gpu/opencl_test_device.h"
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

const Memory* device_memory() { return get_device("opencl").memory(); }

Tensor draw_f32(uint64_t seed, Dims dims) {
  Random random(seed);
  return draw_tensor(random, DType::f32, std::move(dims), -1, 1);
}

// ---- The library -----------------------------------------------------------------------------------------------

TEST(OpenClLibrary, SaysWhatItLookedFor) {
  constexpr const char* kNone[] = {"libno_such_opencl.so.1", "libm.so.6"};
  opencl::Api api;
  std::string why_not;
  EXPECT_FALSE(opencl::load_api(kNone, api, why_not));
  EXPECT_NE(why_not.find("libno_such_opencl.so.1"), std::string::npos) << why_not;
  EXPECT_NE(why_not.find("libm.so.6: has no cl"), std::string::npos) << why_not;
}

TEST(OpenClLibrary, HasNoDeviceBeyondItsList) {
  const size_t count = opencl_device_names().size();
  EXPECT_NE(message_of<DeviceError>([&] { make_opencl("opencl:" + std::to_string(count)); }), "");
  EXPECT_NE(message_of<DeviceError>([&] { make_opencl("opencl:99"); }), "");
  EXPECT_EQ(make_opencl("openclx"), nullptr);
  EXPECT_EQ(make_opencl("opencl:"), nullptr);
  EXPECT_EQ(make_opencl("opencl:1x"), nullptr);
}

// The index is found to be wrong while the device works, and the step is named all the same.
TEST(OpenCl, NamesTheStepThatHasAWrongIndex) {
  AG_NEEDS_OPENCL();
  Graph graph("wrong");
  const Var x = input(graph, DType::f32, {4, 2}, "x");
  const Var indices = input(graph, DType::i64, {3}, "indices");
  graph.add_output(relu(gather(relu(x), indices)).id(), "y");
  const Executable there = compile(graph, on_opencl());
  const Tensor values = draw_f32(1, {4, 2});
  for (int run = 0; run < 2; ++run) {
    const std::string message = message_of<ValueError>([&] { there.run({values, Tensor::vector({0, 9, 1})}); });
    EXPECT_EQ(message.find("[gather] indices: expected -4..3 for extent 4, got 9 (in "), 0U) << message;
    EXPECT_NE(message.find("gather"), message.rfind("gather")) << message;
    const std::vector<Datum> right{values, Tensor::vector({0, -1, 1})};
    EXPECT_EQ(difference(there.run(right), compile(graph, on_reference()).run(right)), "");
  }
}

// ---- Memory and programs ---------------------------------------------------------------------------------------

TEST(OpenClMemory, CopiesThereBackAndWithin) {
  AG_NEEDS_OPENCL();
  const Tensor host = draw_f32(1, {5, 7});
  const Tensor there = host.to(device_memory());
  EXPECT_FALSE(there.is_on_host());
  EXPECT_NE(message_of<DeviceError>([&] { static_cast<void>(there.raw()); }).find("to_host()"), std::string::npos);
  EXPECT_TRUE(there.to_host().bitwise_equal(host));
  EXPECT_TRUE(there.clone().to_host().bitwise_equal(host));
}

TEST(OpenClMemory, FindsAddressesThatWereFreed) {
  AG_NEEDS_OPENCL();
  const opencl::OpenClMemory& memory = opencl::get_machine(0).memory();
  const void* freed = nullptr;
  {
    const auto piece = memory.allocate(100);
    freed = piece.get();
    EXPECT_EQ(memory.locate(static_cast<const char*>(freed) + 99).offset, 99U);
    EXPECT_NE(message_of<InternalError>([&] { memory.locate(static_cast<const char*>(freed) + 100); }), "");
  }
  EXPECT_NE(message_of<InternalError>([&] { memory.locate(freed); }), "");
  EXPECT_NE(message_of<InternalError>([&] { memory.locate(&memory); }), "");
  EXPECT_EQ(memory.allocate(0), nullptr);
}

TEST(OpenClMemory, RefusesWhatIsTooLarge) {
  AG_NEEDS_OPENCL();
  const std::string message = message_of<BudgetError>([&] { device_memory()->allocate(size_t{1} << 50); });
  EXPECT_NE(message.find(std::to_string(size_t{1} << 50)), std::string::npos) << message;
}

TEST(OpenClPrograms, AreBuiltOnce) {
  AG_NEEDS_OPENCL();
  const std::string source = "__kernel void kernel0(__global int* x) { x[0] = " + std::to_string(::getpid()) + "; }";
  const opencl::Machine& machine = opencl::get_machine(0);
  const TestFolder folder;
  opencl::ProgramCache first(machine.context(), machine.device(), "test", folder.path());
  const auto program = first.get(source);
  EXPECT_EQ(first.get(source), program);
  EXPECT_EQ(first.counts().compiled, 1U);
  EXPECT_EQ(first.counts().shared, 1U);
  opencl::ProgramCache second(machine.context(), machine.device(), "test", folder.path());
  EXPECT_EQ(second.get(source)->key(), program->key());
  EXPECT_EQ(second.counts().from_file, 1U) << "what the first one left";
  opencl::ProgramCache other(machine.context(), machine.device(), "another driver", folder.path());
  other.get(source);
  EXPECT_EQ(other.counts().compiled, 1U);
}

// PoCL compiles all kernels once more for a binary.
TEST(OpenClPrograms, AskForABinaryOnlyToKeepIt) {
  const TestFolder folder;
  const Hash128 key = Hasher().add(std::string_view("program")).finish();
  int asked = 0;
  const auto binary = [&] { return std::to_string(++asked); };
  const gpu::ProgramFiles nowhere("", "test");
  nowhere.save(key, binary);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(nowhere.load(key), "");
  const gpu::ProgramFiles files(folder.path(), "test");
  files.save(key, binary);
  EXPECT_EQ(files.load(key), "1");
  files.save(key, [] { return std::string(); });
  EXPECT_EQ(files.load(key), "1") << "a driver that has none to give";
}

bool is_pocl() { return opencl::get_machine(0).identity().find("PoCL") != std::string::npos; }

TEST(OpenClPrograms, CallWhatIsDeclared) {
  AG_NEEDS_OPENCL();
  if (!is_pocl()) GTEST_SKIP() << "this driver reads its own header";
  const opencl::Machine& machine = opencl::get_machine(0);
  opencl::ProgramCache programs(machine.context(), machine.device(), "test", "", opencl::kDeclarations);
  programs.get("__kernel void kernel0(__global float* x) { x[get_global_id(0)] = exp(x[0]); }");
  EXPECT_TRUE(programs.is_without_header());
  message_of<InternalError>([&] { programs.get("__kernel void kernel0() { no_such_name(); }"); });
  EXPECT_TRUE(programs.is_without_header()) << "the program is wrong, not the declarations";
  programs.get("__kernel void kernel0(__global float* x) { x[0] = hypot(x[0], x[1]); }");
  EXPECT_FALSE(programs.is_without_header());
  EXPECT_EQ(programs.counts().compiled, 2U);
}

TEST(OpenClPrograms, TellWhatTheCompilerSays) {
  AG_NEEDS_OPENCL();
  const std::string message = message_of<InternalError>(
      [&] { opencl::get_machine(0).programs().get("__kernel void kernel0() { no_such_name(); }"); });
  EXPECT_NE(message.find("no_such_name"), std::string::npos) << message;
}

// ---- Runs ------------------------------------------------------------------------------------------------------

class OpOnOpenCl : public testing::TestWithParam<const OpDef*> {};

// Does an emitter take the sample of this seed?
bool is_generated(const OpDef& op, uint64_t seed) {
  Random random(seed);
  const KernelCase test(op, op.sample(random));
  return gpu::emit(test.call(), opencl::get_machine(0).target()).refusal.empty();
}

// Two samples; of ops with a generated kernel those for which it is taken.
std::vector<uint64_t> seeds_for(const OpDef& op) {
  const bool has_emitter = std::any_of(gpu::emitters().begin(), gpu::emitters().end(),
                                       [&](const gpu::Emitter& emitter) { return emitter.op == &op; });
  std::vector<uint64_t> seeds;
  for (uint64_t seed = 100; seed < 140 && seeds.size() < 2; ++seed) {
    if (!has_emitter || is_generated(op, seed)) seeds.push_back(seed);
  }
  return seeds;
}

TEST_P(OpOnOpenCl, MatchesTheReference) {
  AG_NEEDS_OPENCL();
  const OpDef& op = *GetParam();
  if (op.traits.random) return;
  const std::vector<uint64_t> seeds = seeds_for(op);
  EXPECT_EQ(seeds.size(), 2U) << op.name << " has an emitter that takes none of its samples";
  for (const uint64_t seed : seeds) {
    Random random(seed);
    const TestGraph test = make_sample_graph(op, op.sample(random));
    const Executable there = compile(test.graph, on_opencl());
    const std::vector<Datum> expected = compile(test.graph, on_reference()).run(test.inputs);
    for (int run = 0; run < 2; ++run) EXPECT_EQ(difference(there.run(test.inputs), expected), "") << "seed " << seed;
  }
  EXPECT_EQ(opencl::get_machine(0).programs().is_without_header(), is_pocl()) << "a function that is not declared";
}

INSTANTIATE_TEST_SUITE_P(All, OpOnOpenCl, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(OpenCl, RunsRandomGraphs) {
  AG_NEEDS_OPENCL();
  int num_compared = 0;
  std::vector<uint64_t> seeds{109};  // an lstm with lengths, whose kernel once wrote beyond its memory
  for (uint64_t seed = 0; seed < 14; ++seed) seeds.push_back(seed);
  for (const uint64_t seed : seeds) {
    Random random(seed);
    const TestGraph test = make_random_graph(random, 12);
    const Executable there = compile(test.graph, on_opencl());
    std::vector<Datum> expected;
    try {
      expected = compile(test.graph, on_reference()).run(test.inputs);
    } catch (const UserError&) {  // what feeds an op may be out of its range
      continue;
    }
    ++num_compared;
    EXPECT_EQ(difference(there.run(test.inputs), expected), "") << "seed " << seed;
  }
  EXPECT_GT(num_compared, 10);
}

TEST(OpenCl, BoundedSumsOfCellsKeepNan) {
  AG_NEEDS_OPENCL();
  Graph graph;
  const Var x = input(graph, DType::f32, Shape::of({2, 1, 2}), "x");
  const Var w = constant(graph, draw_f32(1, {1, 8, 2})), r = constant(graph, draw_f32(2, {1, 8, 2}));
  const Var y = lstm(x, w, r)[0];
  graph.set_attribute(graph.value(y.id()).producer(), "clip", 0.5F);
  graph.add_output(y.id(), "y");
  const Tensor values = Tensor::of<float>({2, 1, 2}, {3, -3, std::numeric_limits<float>::quiet_NaN(), 1});
  EXPECT_EQ(difference_on_opencl(graph, {values}), "");
}

TEST(OpenCl, SumsOfNothingAreZero) {
  AG_NEEDS_OPENCL();
  GraphBuilder graph;
  const Var a = graph.input("a", DType::f32, {2, 0}), b = graph.input("b", DType::f32, {0, 3});
  graph.output("product", matmul(a, b));
  graph.output("sum", reduce_sum(a, {1}, false));
  const std::vector<Datum> inputs{Tensor::zeros(DType::f32, {2, 0}), Tensor::zeros(DType::f32, {0, 3})};
  EXPECT_EQ(difference_on_opencl(graph.build(), inputs), "");
}

TEST(OpenCl, GivesTheSameOnSeveralStreams) {
  AG_NEEDS_OPENCL();
  size_t width = 0;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    const Graph graph = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    CompileOptions options = on_opencl();
    options.expert.schedule = std::make_shared<Schedule>(make_random_schedule(random, graph, 4, 1));
    width = std::max(width, static_cast<size_t>(options.expert.schedule->width()));
    const Executable there = compile(graph, options);
    const auto expected = compile(graph, on_reference()).run({x});
    for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(there.run({x}), expected), "") << "seed " << seed;
  }
  EXPECT_GT(width, 1U);
}

TEST(OpenCl, RunsManyAtOnce) {
  AG_NEEDS_OPENCL();
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4, 8});
  graph.output("y", sigmoid(x * x + 1));
  const Graph built = graph.build();
  const Executable there = compile(built, on_opencl());
  const Executable reference = compile(built, on_reference());
  std::array<std::string, 4> faults;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < faults.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t seed = 0; seed < 20 && faults[t].empty(); ++seed) {
        const Tensor in = draw_f32(100 * t + seed, {4, 8});
        faults[t] = difference(there.run({in}), reference.run({in}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

TEST(OpenCl, TellsTimesOfTheDevice) {
  AG_NEEDS_OPENCL();
  GraphBuilder graph;
  graph.output("y", softmax(graph.input("x", DType::f32, {256, 256})));
  CompileOptions options = on_opencl();
  options.profile = true;
  const Executable there = compile(graph.build(), options);
  there.run({draw_f32(1, {256, 256})});
  ASSERT_FALSE(there.profile().empty());
  for (const StepProfile& step : there.profile()) EXPECT_GT(step.duration_us, 0);
}

// Without a step on the host.
TEST(OpenCl, RunsModels) {
  AG_NEEDS_OPENCL();
  for (const char* name : {"mlp", "rnntc_sru", "nasnet_cell"}) {
    const Graph graph = build_zoo_model(name);
    std::vector<Datum> inputs;
    for (const ValueId v : graph.inputs()) {
      Random random(v.index);
      const Type& type = graph.type(v);
      inputs.emplace_back(draw_tensor(random, type.dtype(), type.shape().static_dims(), 0, 1));
    }
    const auto expected = compile(graph, on_reference()).run(inputs);
    const Executable there = compile(graph, on_opencl());
    for (const KernelChoice& choice : there.kernel_choices()) EXPECT_NE(choice.kernel, "reference") << choice.op;
    EXPECT_EQ(difference(there.run(inputs), expected, {1e-4, 1e-4}), "") << name;
  }
}

}  // namespace
}  // namespace autograph
