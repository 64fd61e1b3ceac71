// Plans on a device with memory of its own and streams that work while the host goes on.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/attested_kernels.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/reference_kernel.h"
#include "autograph/search.h"
#include "install/backend/toy_device.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/random_graph.h"
#include "support/graphs/random_network.h"
#include "support/graphs/random_schedule.h"
#include "support/graphs/sample_graph.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

using toy::toy_memory;

const Device& toy_device() {
  static const Device& kDevice = add_device(std::make_unique<toy::ToyDevice>());
  return kDevice;
}

CompileOptions on_toy() {
  CompileOptions options;
  options.device = toy_device().name();
  return options;
}

CompileOptions on_reference() {
  CompileOptions options;
  options.device = "reference";
  return options;
}

// y = relu(x) @ w; z = relu(x) + relu(x).
Graph make_model() {
  GraphBuilder graph("toy");
  Random random(1);
  const Var x = graph.input("x", DType::f32, {4, 8});
  const Var hidden = relu(x);
  graph.output("y", matmul(hidden, graph.constant(draw_tensor(random, DType::f32, {8, 3}, -1, 1))));
  graph.output("z", add(hidden, hidden));
  return graph.build();
}

Tensor make_input(uint64_t seed = 2) {
  Random random(seed);
  return draw_tensor(random, DType::f32, {4, 8}, -1, 1);
}

// ---- Memory ----------------------------------------------------------------------------------------------------

TEST(DeviceMemory, RefusesTheHostAndNamesTheCopyToMake) {
  const Tensor host = make_input();
  Tensor there = host.to(&toy_memory());
  EXPECT_FALSE(there.is_on_host());
  EXPECT_EQ(there.dims(), host.dims());
  const std::string expected =
      "[tensor] memory: the elements of f32[4,8] are in the memory of 'toy', which the host cannot read; copy them "
      "with "
      "to_host()";
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.data<float>()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.mutable_data<float>()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.elements<float>()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.raw()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.mutable_raw()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.view()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.to_f64()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.content_hash()); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(there.bitwise_equal(host)); }), expected);
  EXPECT_EQ(message_of<DeviceError>([&] { static_cast<void>(to_string(there)); }), expected);
}

TEST(DeviceMemory, CopiesThereBackAndWithin) {
  const Tensor host = make_input();
  const Tensor there = host.to(&toy_memory());
  EXPECT_TRUE(there.to_host().bitwise_equal(host));
  const Tensor clone = there.clone();
  EXPECT_NE(clone.buffer().data(), there.buffer().data());
  EXPECT_TRUE(clone.to_host().bitwise_equal(host));
  EXPECT_EQ(there.to(&toy_memory()).buffer().data(), there.buffer().data()) << "it is there already";
  EXPECT_EQ(host.to_host().raw(), host.raw());
  EXPECT_TRUE(there.reshaped({8, 4}).to_host().bitwise_equal(host.reshaped({8, 4})));
  EXPECT_TRUE(Tensor::zeros(DType::i64, {0, 3}).to(&toy_memory()).to_host().dims() == (Dims{0, 3}));
}

TEST(DeviceMemory, HoldsNoStrings) {
  const Tensor words = Tensor::of<std::string>({2}, {"a", "b"});
  EXPECT_NE(message_of<TypeError>([&] { words.to(&toy_memory()); }).find("strings"), std::string::npos);
}

// ---- Runs ------------------------------------------------------------------------------------------------------

TEST(ToyDevice, GivesWhatTheReferenceGives) {
  const Executable toy = compile(make_model(), on_toy());
  const Executable reference = compile(make_model(), on_reference());
  for (uint64_t seed = 0; seed < 5; ++seed) {
    const Tensor x = make_input(seed);
    EXPECT_EQ(difference(toy.run({x}), reference.run({x})), "");
  }
}

TEST(ToyDevice, CopiesWhatLiesOnTheHostAndNothingElse) {
  CompileOptions options = on_toy();
  const Executable to_host = compile(make_model(), options);
  options.keep_on_device = true;
  const Executable stays = compile(make_model(), options);
  const Tensor host = make_input();
  const Tensor there = host.to(&toy_memory());
  to_host.run({host});
  stays.run({there});
  const size_t written = toy_memory().num_written();
  const size_t read = toy_memory().num_read();
  const auto outputs = to_host.run({host});
  EXPECT_EQ(toy_memory().num_written() - written, host.size_bytes());
  EXPECT_EQ(toy_memory().num_read() - read, outputs[0].tensor().size_bytes() + outputs[1].tensor().size_bytes());
  const size_t written_before = toy_memory().num_written();
  const size_t read_before = toy_memory().num_read();
  const auto kept = stays.run({there});
  EXPECT_EQ(toy_memory().num_written(), written_before);
  EXPECT_EQ(toy_memory().num_read(), read_before);
  EXPECT_FALSE(kept[0].tensor().is_on_host());
  EXPECT_TRUE(kept[0].tensor().to_host().bitwise_equal(outputs[0].tensor()));
  EXPECT_TRUE(kept[1].tensor().to_host().bitwise_equal(outputs[1].tensor()));
}

TEST(ToyDevice, RunsIntoTensorsOnEitherSide) {
  const Executable toy = compile(make_model(), on_toy());
  const Tensor x = make_input();
  const auto expected = compile(make_model(), on_reference()).run({x});
  std::vector<Tensor> outputs{Tensor::empty(DType::f32, {4, 3}, &toy_memory()), Tensor::empty(DType::f32, {4, 8})};
  for (int run = 0; run < 2; ++run) {
    toy.run_into({run == 0 ? x : x.to(&toy_memory())}, outputs);
    EXPECT_EQ(difference(outputs[0].to_host(), expected[0]), "");
    EXPECT_EQ(difference(outputs[1], expected[1]), "");
  }
}

TEST(ToyDevice, ReplaysWhatItHasCapturedUntilSomethingMoves) {
  const Executable toy = compile(make_model(), on_toy());
  const Executable reference = compile(make_model(), on_reference());
  std::vector<Tensor> outputs{Tensor::empty(DType::f32, {4, 3}, &toy_memory()), Tensor::empty(DType::f32, {4, 8})};
  const auto step = [&](uint64_t seed) {
    const Tensor x = make_input(seed);
    toy.run_into({x}, outputs);
    EXPECT_EQ(difference(std::vector<Datum>{outputs[0].to_host(), outputs[1]}, reference.run({x})), "") << seed;
  };
  const size_t before = toy::ToyStream::num_replayed();
  for (uint64_t seed = 0; seed < 5; ++seed) step(seed);
  EXPECT_EQ(toy::ToyStream::num_replayed() - before, 4U);
  outputs[0] = Tensor::empty(DType::f32, {4, 3}, &toy_memory());
  const Tensor elsewhere = outputs[0];
  step(5);
  EXPECT_EQ(toy::ToyStream::num_replayed() - before, 4U) << "the output has moved";
  step(6);
  EXPECT_EQ(toy::ToyStream::num_replayed() - before, 5U);
}

TEST(ToyDevice, EnqueuesAnewWhatCannotBeCaptured) {
  Graph graph("softmax");
  graph.add_output(relu(softmax(input(graph, DType::f32, {4, 8}, "x"))).id(), "y");
  const Executable toy = compile(graph, on_toy());
  const Executable reference = compile(graph, on_reference());
  const size_t before = toy::ToyStream::num_replayed();
  for (uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(difference(toy.run({make_input(seed)}), reference.run({make_input(seed)})), "");
  }
  EXPECT_EQ(toy::ToyStream::num_replayed(), before) << "the reference waits";
}

TEST(ToyDevice, TakesNoMemoryOfOthers) {
  const Tensor there = make_input().to(&toy_memory());
  const Executable on_cpu = compile(make_model());
  EXPECT_NE(message_of<DeviceError>([&] { on_cpu.run({there}); }).find("to_host()"), std::string::npos);
  class Elsewhere : public toy::ToyMemory {
   public:
    const std::string& name() const override {
      static const std::string kName = "elsewhere";
      return kName;
    }
  };
  const Elsewhere elsewhere;
  const Executable on_device = compile(make_model(), on_toy());
  EXPECT_EQ(message_of<DeviceError>([&] { on_device.run({make_input().to(&elsewhere)}); }),
            "[run] input 0: expected memory of the host or of 'toy', got that of 'elsewhere'; copy it with to_host()");
  EXPECT_TRUE(there.to(&elsewhere).to_host().bitwise_equal(there.to_host())) << "by way of the host";
}

TEST(ToyDevice, KeepsStatesFromRunToRun) {
  Graph graph("count");
  const Var x = input(graph, DType::f32, {3}, "x");
  const Var sum = state(graph, Tensor::zeros(DType::f32, {3}), "sum");
  const Var last = state(graph, Tensor::zeros(DType::f32, {3}), "last");
  const Var next = add(sum, x);
  update(sum, next);
  update(last, sum);
  graph.add_output(add(next, last).id(), "y");
  const Executable toy = compile(graph, on_toy());
  const Executable reference = compile(graph, on_reference());
  const auto step = [&](float value) {
    const Tensor in = Tensor::of<float>({3}, {value, -value, 0});
    EXPECT_EQ(difference(toy.run({in}), reference.run({in})), "");
  };
  step(1);
  const size_t written = toy_memory().num_written();
  const size_t read = toy_memory().num_read();
  for (const float value : {2.0F, 4.0F, 8.0F}) step(value);
  EXPECT_EQ(toy_memory().num_written() - written, 3 * 3 * sizeof(float)) << "x alone";
  EXPECT_EQ(toy_memory().num_read() - read, 3 * 3 * sizeof(float)) << "y alone";
  EXPECT_TRUE(toy.states().get("sum").bitwise_equal(reference.states().get("sum")));
  EXPECT_TRUE(toy.states().get("last").bitwise_equal(reference.states().get("last")));
}

TEST(ToyDevice, SharesStatesWithTheHost) {
  Graph training("train");
  const Var x = input(training, DType::f32, {3}, "x");
  const Var sum = state(training, Tensor::zeros(DType::f32, {3}), "sum");
  update(sum, add(sum, x));
  training.add_output(add(x, x).id(), "y");
  Graph reading("read");
  reading.add_output(relu(state(reading, Tensor::zeros(DType::f32, {3}), "sum")).id(), "y");
  StateStore store;
  const auto with_store = [&](CompileOptions options) {
    options.states = store;
    return options;
  };
  const Executable trains = compile(training, with_store(on_toy()));
  const Executable trains_here = compile(training, with_store({}));
  const Executable reads = compile(reading, with_store({}));
  const Executable reads_there = compile(reading, with_store(on_toy()));
  const Tensor one = Tensor::of<float>({3}, {1, 1, 1});
  for (int run = 1; run <= 6; ++run) {
    (run % 3 == 0 ? trains_here : trains).run({one});
    const std::vector<double> expected(3, run);
    EXPECT_EQ(reads.run(std::vector<Datum>())[0].tensor().to_f64(), expected);
    EXPECT_EQ(reads_there.run(std::vector<Datum>())[0].tensor().to_f64(), expected);
    EXPECT_EQ(store.get("sum").to_f64(), expected);
  }
  store.set("sum", Tensor::of<float>({3}, {10, 20, 30}));
  trains.run({one});
  EXPECT_EQ(store.get("sum").to_f64(), (std::vector<double>{11, 21, 31}));
}

// As weights of a model that is evaluated there and trained elsewhere.
TEST(ToyDevice, CopiesStatesOfTheHostOnceForEachVersion) {
  Graph graph("read");
  const Var x = input(graph, DType::f32, {3}, "x");
  graph.add_output(add(x, state(graph, Tensor::of<float>({3}, {1, 2, 3}), "weight")).id(), "y");
  StateStore store;
  CompileOptions options = on_toy();
  options.states = store;
  const Executable toy = compile(graph, options);
  const auto written_by_a_run = [&](const std::vector<double>& expected) {
    const size_t before = toy_memory().num_written();
    EXPECT_EQ(toy.run({Tensor::zeros(DType::f32, {3})})[0].tensor().to_f64(), expected);
    return toy_memory().num_written() - before;
  };
  constexpr size_t kBytes = 3 * sizeof(float);
  for (const double factor : {1.0, 10.0}) {
    const std::vector<double> expected{factor, 2 * factor, 3 * factor};
    if (factor != 1) store.set("weight", Tensor::of<float>({3}, {10, 20, 30}));
    EXPECT_EQ(written_by_a_run(expected), 2 * kBytes) << "x and the weight";
    EXPECT_EQ(written_by_a_run(expected), kBytes) << "x alone";
  }
}

TEST(ToyDevice, WritesOverDonatedMemoryOfItsOwn) {
  Graph graph("donate");
  const Var x = input(graph, DType::f32, {4, 8}, "x");
  graph.add_output(relu(add(x, x)).id(), "y");
  CompileOptions options = on_toy();
  options.donations = {{0, 0}};
  const Executable toy = compile(graph, options);
  const Tensor x0 = make_input();
  std::vector<Tensor> memory{x0.to(&toy_memory())};
  toy.run_into({memory[0]}, memory);
  EXPECT_EQ(difference(memory[0].to_host(), compile(graph, on_reference()).run({x0})[0]), "");
  const Executable refuses = compile(graph, on_toy());
  EXPECT_NE(message_of<ValueError>([&] { refuses.run_into({memory[0]}, memory); }), "");
}

TEST(ToyDevice, RunsManyAtOnce) {
  const Executable toy = compile(make_model(), on_toy());
  const Executable reference = compile(make_model(), on_reference());
  std::vector<std::thread> threads;
  std::vector<std::string> faults(4);
  for (size_t t = 0; t < faults.size(); ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t seed = 0; seed < 20 && faults[t].empty(); ++seed) {
        const Tensor x = make_input(100 * t + seed);
        faults[t] = difference(toy.run({x}), reference.run({x}));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

// ---- All ops, all schedules ------------------------------------------------------------------------------------

class OpOnToy : public testing::TestWithParam<const OpDef*> {};

TEST_P(OpOnToy, MatchesTheReference) {
  const OpDef& op = *GetParam();
  if (op.traits.random) return;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    Random random(seed);
    const OpSample sample = op.sample(random);
    const TestGraph test = make_sample_graph(op, sample);
    const Executable toy = compile(test.graph, on_toy());
    const std::vector<Datum> expected = compile(test.graph, on_reference()).run(test.inputs);
    for (int run = 0; run < 3; ++run) EXPECT_EQ(difference(toy.run(test.inputs), expected), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpOnToy, testing::ValuesIn(all_ops().begin(), all_ops().end()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST(ToyDevice, RunsRandomGraphs) {
  int num_compared = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const TestGraph test = make_random_graph(random, 12);
    const Executable toy = compile(test.graph, on_toy());
    std::vector<Datum> expected;
    try {
      expected = compile(test.graph, on_reference()).run(test.inputs);
    } catch (const UserError&) {  // what feeds an op may be out of its range
      EXPECT_THROW(toy.run(test.inputs), UserError) << "seed " << seed;
      continue;
    }
    ++num_compared;
    EXPECT_EQ(difference(toy.run(test.inputs), expected), "") << "seed " << seed;
  }
  EXPECT_GT(num_compared, 20);
}

TEST(ToyDevice, GivesTheSameOnSeveralStreams) {
  size_t width = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Graph graph = make_random_network(seed);
    Random random(seed);
    const Tensor x = draw_tensor(random, DType::f32, graph.type(graph.inputs()[0]).shape().static_dims());
    CompileOptions options = on_toy();
    options.expert.schedule = std::make_shared<Schedule>(make_random_schedule(random, graph, 4, 1));
    width = std::max(width, static_cast<size_t>(options.expert.schedule->width()));
    const Executable toy = compile(graph, options);
    CompileOptions in_turn = on_toy();
    in_turn.expert.schedule = std::make_shared<Schedule>();
    const auto expected = compile(graph, in_turn).run({x});
    for (int run = 0; run < 3; ++run) {
      const auto actual = toy.run({x});
      for (size_t k = 0; k < actual.size(); ++k) EXPECT_TRUE(actual[k].tensor().bitwise_equal(expected[k].tensor()));
    }
  }
  EXPECT_GT(width, 1U);
}

// ---- Errors and figures ----------------------------------------------------------------------------------------

// Fails when the stream comes to it.
class LateFailure : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    static_cast<toy::ToyStream&>(*args.stream).enqueue([] { throw DeviceError("[toy] relu: too hot"); });
  }
};

class WrongRelu : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const int64_t count = args.outputs[0].num_elements();
    float* y = toy_memory().at(args.outputs[0].mutable_data<float>());
    static_cast<toy::ToyStream&>(*args.stream).enqueue([y, count] { std::fill_n(y, count, 1.0F); });
  }
};

template <class Relu>
class ToyWith : public toy::ToyDevice {
 public:
  explicit ToyWith(const std::string& name)
      : ToyDevice(name),
        catalog_({{.name = "toy.other_relu",
                   .op = "relu",
                   .why_not = [](const KernelCall&) { return std::string(); },
                   .prepare =
                       [](const KernelCall&) {
                         return Prepared{std::make_unique<Relu>(), ""};
                       }},
                  reference_kernel()}) {}
  std::string identity() const override { return name(); }
  const KernelCatalog& catalog() const override { return catalog_; }

 private:
  KernelCatalog catalog_;
};

TEST(ToyDevice, TellsWhatFailedLate) {
  static const Device& kDevice = add_device(std::make_unique<ToyWith<LateFailure>>("failing toy"));
  CompileOptions options;
  options.device = kDevice.name();
  Graph graph("late");
  graph.add_output(relu(input(graph, DType::f32, {4, 8}, "x")).id(), "y");
  const Executable toy = compile(graph, options);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(message_of<DeviceError>([&] { toy.run({make_input()}); }), "[toy] relu: too hot");
  }
}

TEST(ToyDevice, HasItsKernelsAttested) {
  static const Device& kDevice = add_device(std::make_unique<ToyWith<WrongRelu>>("wrong toy"));
  CompileOptions options;
  options.device = kDevice.name();
  const Tensor x = make_input();
  const auto expected = compile(make_model(), on_reference()).run({x});
  EXPECT_NE(difference(compile(make_model(), options).run({x}), expected), "");
  options.attest = true;
  const TestFolder folder;
  options.cache_folder = folder.path();
  EXPECT_EQ(difference(compile(make_model(), options).run({x}), expected), "");
  const auto refused = attested_kernels(options).refused;
  ASSERT_FALSE(refused.empty());
  EXPECT_EQ(refused[0].kernel, "toy.other_relu");
}

TEST(ToyDevice, IsTunedAndProfiledOnItsStreams) {
  CompileOptions options = on_toy();
  options.tune = true;
  options.profile = true;
  const TestFolder folder;
  options.cache_folder = folder.path();
  const Executable toy = compile(make_model(), options);
  EXPECT_FALSE(toy.kernel_times().empty());
  const Tensor x = make_input();
  EXPECT_EQ(difference(toy.run({x}), compile(make_model(), on_reference()).run({x})), "");
  ASSERT_FALSE(toy.profile().empty());
  for (const StepProfile& step : toy.profile()) EXPECT_GT(step.duration_us, 0);
}

TEST(ToyDevice, IsSearchedFor) {
  CompileOptions options = on_toy();
  const TestFolder folder;
  options.cache_folder = folder.path();
  SearchOptions search;
  search.strategy = Strategy::autograph;
  search.budget_seconds = 2;
  const Optimized found = optimize(make_model(), options, search);
  EXPECT_TRUE(found.report.agrees);
  EXPECT_EQ(found.report.device, "toy");
  const Tensor x = make_input();
  EXPECT_EQ(difference(compile(found, options).run({x}), compile(make_model(), on_reference()).run({x})), "");
}

TEST(ToyDevice, NamesTheNodeThatMakesANan) {
  Graph graph("nan");
  const Var x = input(graph, DType::f32, {2}, "x");
  graph.add_output(relu(log(x)).id(), "y");
  CompileOptions options = on_toy();
  options.check_nan = NanCheck::nodes;
  const Executable toy = compile(graph, options);
  toy.run({Tensor::of<float>({2}, {1, 2})});
  EXPECT_NE(message_of<UserError>([&] { toy.run({Tensor::of<float>({2}, {1, -2})}); }).find("log"), std::string::npos);
}

// The elements of x that are not zero, twice, and how many there are.
Graph nonzero_graph() {
  Graph graph("dynamic");
  const Var x = input(graph, DType::f32, {6}, "x");
  const Var picked = gather(x, squeeze(non_zero(x), {0}));
  graph.add_output(relu(add(picked, picked)).id(), "picked");
  graph.add_output(shape(picked).id(), "count");
  return graph;
}

TEST(ToyDevice, TakesShapesThatDependOnElements) {
  const Executable reference = compile(nonzero_graph(), on_reference());
  CompileOptions options = on_toy();
  for (const bool keep : {false, true}) {
    options.keep_on_device = keep;
    const Executable toy = compile(nonzero_graph(), options);
    for (const std::vector<float>& elements :
         {std::vector<float>{1, 0, -2, 3, 0, 4}, {0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6}}) {
      Tensor x = Tensor::zeros(DType::f32, {6});
      std::copy(elements.begin(), elements.end(), x.mutable_data<float>());
      const auto actual = toy.run({x});
      EXPECT_EQ(actual[0].tensor().is_on_host(), !keep);
      const std::vector<Datum> copies{actual[0].tensor().to_host(), actual[1].tensor().to_host()};
      EXPECT_EQ(difference(copies, reference.run({x})), "");
      EXPECT_EQ(difference(toy.run({x.to(&toy_memory())})[0].tensor().to_host(), copies[0].tensor()), "");
    }
  }
}

TEST(ToyDevice, FindsTheNanInValuesMadeWhileRunning) {
  Graph graph("nan");
  const Var x = input(graph, DType::f32, {3}, "x");
  graph.add_output(log(gather(x, squeeze(non_zero(x), {0}))).id(), "y");
  CompileOptions options = on_toy();
  options.check_nan = NanCheck::nodes;
  options.profile = true;
  const Executable toy = compile(graph, options);
  toy.run({Tensor::of<float>({3}, {1, 0, 2})});
  EXPECT_FALSE(toy.profile().empty());
  const std::string message = message_of<UserError>([&] { toy.run({Tensor::of<float>({3}, {1, 0, -2})}); });
  EXPECT_NE(message.find("log"), std::string::npos) << message;
}

// x doubled `turns` times, from a graph that is run again and again.
Graph loop_graph() {
  auto body = std::make_shared<Graph>("body");
  input(*body, DType::i64, {}, "turn");
  const Var go_on = input(*body, DType::boolean, {}, "go_on");
  const Var state = input(*body, DType::f32, {2, 3}, "state");
  const Var doubled = add(state, state);
  body->add_output(go_on.id(), "go_on");
  body->add_output(doubled.id(), "doubled");
  body->add_output(doubled.id(), "all");
  Graph graph("loop");
  const Var turns = input(graph, DType::i64, {}, "turns");
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const auto outputs = apply_all(get_op("loop"), {turns, Var(), relu(x)}, {{"body", GraphRef(body)}}, 2);
  graph.add_output(neg(outputs[0]).id(), "last");
  graph.add_output(outputs[1].id(), "all");
  return graph;
}

TEST(ToyDevice, RunsNestedGraphs) {
  const Executable reference = compile(loop_graph(), on_reference());
  const Executable toy = compile(loop_graph(), on_toy());
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {2, 3}, -1, 1);
  for (const int64_t turns : {3, 0, 5}) {
    const std::vector<Datum> inputs{Tensor::scalar<int64_t>(turns), x};
    EXPECT_EQ(difference(toy.run(inputs), reference.run(inputs)), "");
  }
}

// A state whose first extent grows with every turn: after a few shapes the body runs with shapes that it is told.
TEST(ToyDevice, RunsNestedGraphsOnInputsThatGrow) {
  auto body = std::make_shared<Graph>("body");
  input(*body, DType::i64, {}, "turn");
  const Var go_on = input(*body, DType::boolean, {}, "go_on");
  const Var rows = input(*body, DType::f32, Shape{Dim::unknown(), 3}, "rows");
  const Var row = input(*body, DType::f32, {1, 3}, "row");
  body->add_output(go_on.id());
  body->add_output(concat({relu(add(rows, rows)), row}, 0).id());
  Graph graph("grow");
  const Var turns = input(graph, DType::i64, {}, "turns");
  const Var start = input(graph, DType::f32, {1, 3}, "start");
  const Attributes attributes{{"body", GraphRef(body)}, {"num_captures", int64_t{1}}};
  graph.add_output(apply_all(get_op("loop"), {turns, Var(), start, start}, attributes, 1)[0].id());
  const std::vector<Datum> inputs{Tensor::scalar<int64_t>(40), Tensor::of<float>({1, 3}, {0.5, 1, 2})};
  EXPECT_EQ(difference(compile(graph, on_toy()).run(inputs), compile(graph, on_reference()).run(inputs)), "");
}

TEST(ToyDevice, UpdatesStatesBesideShapesThatDependOnElements) {
  Graph graph("dynamic state");
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var sum = state(graph, Tensor::zeros(DType::f32, {4}), "sum");
  update(sum, add(sum, x));
  graph.add_output(gather(x, squeeze(non_zero(x), {0})).id(), "picked");
  const Executable toy = compile(graph, on_toy());
  const Executable reference = compile(graph, on_reference());
  for (const float value : {1.0F, 0.0F, 4.0F}) {
    const Tensor in = Tensor::of<float>({4}, {value, 1, 0, value});
    EXPECT_EQ(difference(toy.run({in}), reference.run({in})), "");
    EXPECT_TRUE(toy.states().get("sum").bitwise_equal(reference.states().get("sum")));
  }
}

TEST(ToyDevice, TakesSymbolicShapes) {
  Graph graph("symbolic");
  const Var x = input(graph, DType::f32, {Dim::symbol("n"), 2}, "x");
  graph.add_output(relu(x).id(), "y");
  const Executable toy = compile(graph, on_toy());
  for (const int64_t n : {3, 5, 0, 3}) {
    Random random(1);
    const Tensor in = draw_tensor(random, DType::f32, {n, 2}, -1, 1);
    EXPECT_EQ(difference(toy.run({in}), compile(graph, on_reference()).run({in})), "");
  }
}

// ---- Other devices ---------------------------------------------------------------------------------------------

TEST(Devices, OfDifferentKindsHaveIdentitiesOfTheirOwn) {
  const std::string& toy = toy_device().name();
  std::set<std::string> identities;
  const std::vector<std::string> names = available_devices();
  for (const std::string& name : names) identities.insert(get_device(name).identity());
  EXPECT_EQ(identities.size(), names.size());
  EXPECT_EQ(std::count(names.begin(), names.end(), toy), 1) << "added ones are listed";
}

TEST(Devices, HaveOneName) {
  EXPECT_EQ(message_of<ValueError>([] { add_device(std::make_unique<toy::ToyDevice>("cpu")); }),
            "[compile] device 'cpu': there already");
}

}  // namespace
}  // namespace autograph
