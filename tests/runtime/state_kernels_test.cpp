// Kernels that know what states hold: their packed copies are made once for each version, whoever wrote it and however.
#include "runtime/state_kernels.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "autograph/builder.h"
#include "autograph/checkpoint.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "engine/executable.h"
#include "engine/state_store.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/random_schedule.h"

namespace autograph {
namespace {

Tensor filled_with(const Dims& dims, float value) {
  Tensor tensor = Tensor::empty(DType::f32, dims);
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), value);
  return tensor;
}

// y = conv(relu(conv(x, a) + bias), b), of weights that kernels pack.
Graph make_model() {
  Graph graph("model");
  Random random(3);
  const auto weight = [&](const char* name, Dims dims) {
    return state(graph, draw_tensor(random, DType::f32, std::move(dims), -1, 1), name);
  };
  const Var x = input(graph, DType::f32, {1, 32, 12, 12}, "x");
  const Var a = weight("a", {32, 32, 3, 3}), b = weight("b", {32, 32, 3, 3}), bias = weight("bias", {32, 1, 1});
  const Var hidden = relu(add(conv(x, a), bias));
  graph.add_output(conv(hidden, b).id(), "y");
  return graph;
}

// Writes half of what a held over a.
Graph make_step() {
  Graph graph("step");
  const Var a = state(graph, Tensor::zeros(DType::f32, {32, 32, 3, 3}), "a");
  update(a, mul(a, constant(graph, Tensor::scalar(0.5F))));
  return graph;
}

Tensor drawn_x() {
  Random random(4);
  return draw_tensor(random, DType::f32, {1, 32, 12, 12}, -1, 1);
}

CompileOptions with_store(const StateStore& store) {
  CompileOptions options;
  options.states = store;
  options.threads = 2;
  return options;
}

// What the reference gives for what the store holds now.
Tensor expected_of(const StateStore& store, const Graph& model, const Tensor& x) {
  Graph frozen = model;
  store.copy_to(frozen);
  CompileOptions options;
  options.device = "reference";
  return compile(std::move(frozen), options).run({x})[0].tensor();
}

void expect_right(const Executable& program, const Graph& model, const char* when) {
  const Tensor x = drawn_x();
  EXPECT_EQ(difference(program.run({x})[0], expected_of(program.states(), model, x), {1e-3, 1e-4}), "") << when;
}

size_t num_made(const StateStore& store) { return store.impl().packed()->num_made(); }
size_t num_held(const StateStore& store) { return store.impl().packed()->num_held(); }

TEST(StateKernels, SeeWhatWasWrittenHowever) {
  const Graph model = make_model();
  StateStore store;
  const Executable program = compile(model, with_store(store));
  expect_right(program, model, "before anything was written");
  const Executable step = compile(make_step(), with_store(store));
  const void* const address = store.impl().state("a").tensor.raw();
  step.run({});
  EXPECT_EQ(store.impl().state("a").tensor.raw(), address) << "written where it was";
  expect_right(program, model, "after a step");
  store.set("a", filled_with({32, 32, 3, 3}, 0.125F));
  expect_right(program, model, "after set()");
  Checkpoint checkpoint;
  checkpoint.capture(store);
  store.set("bias", filled_with({32, 1, 1}, 0.5F));
  store.set("b", filled_with({32, 32, 3, 3}, -0.25F));
  expect_right(program, model, "after two were set");
  checkpoint.restore(store);
  expect_right(program, model, "after a checkpoint");
  std::vector<Tensor> none;
  for (int i = 0; i < 3; ++i) step.run_into({}, none);
  expect_right(program, model, "after three steps");
}

TEST(StateKernels, ArePackedOnceForEachVersion) {
  const Graph model = make_model();
  StateStore store;
  const Executable program = compile(model, with_store(store));
  const Executable step = compile(make_step(), with_store(store));
  const Tensor x = drawn_x();
  program.run({x});
  const size_t before = num_made(store), forms = num_held(store);
  ASSERT_GE(forms, 2U) << "no kernel has packed weights";
  for (int i = 0; i < 5; ++i) program.run({x});
  EXPECT_EQ(num_made(store), before) << "nothing was written";
  step.run({});
  EXPECT_EQ(num_made(store), before) << "a graph that writes its weights keeps no form of them";
  for (int i = 0; i < 5; ++i) program.run({x});
  EXPECT_EQ(num_made(store), before + 1) << "a was written, b was not";
  EXPECT_EQ(num_held(store), forms) << "older forms are freed";
}

TEST(StateKernels, PackAnewWithoutBeingMadeAnew) {
  StateStore store;
  const Executable::Impl program(make_model(), with_store(store), Nesting::none);
  const std::vector<Datum> x{drawn_x()};
  program.run(RunInputs(x), nullptr);
  StateKernels& kernels = *program.current_plan()->state_kernels;
  std::vector<StateKernels::Taken> before(kernels.size());
  for (size_t k = 0; k < kernels.size(); ++k) kernels.take(k, before[k]);
  store.set("a", filled_with({32, 32, 3, 3}, 0.125F));
  store.set("b", filled_with({32, 32, 3, 3}, -0.25F));
  const Tensor expected = expected_of(store, make_model(), x[0].tensor());
  EXPECT_EQ(difference(program.run(RunInputs(x), nullptr)[0], expected, {1e-3, 1e-4}), "");
  for (size_t k = 0; k < kernels.size(); ++k) {
    StateKernels::Taken after;
    kernels.take(k, after);
    EXPECT_EQ(after.made, before[k].made + 1);
    const bool is_packing = dynamic_cast<const PackingKernel*>(after.kernel) != nullptr;
    EXPECT_TRUE(!is_packing || after.kernel == before[k].kernel);
  }
}

TEST(StateKernels, OfSeveralProgramsShareForms) {
  StateStore store;
  const Executable small = compile(make_model(), with_store(store));
  small.run({drawn_x()});
  const size_t made = num_made(store), forms = num_held(store);
  const Executable same = compile(make_model(), with_store(store));
  same.run({drawn_x()});
  const size_t made_by_both = num_made(store);
  EXPECT_LE(made_by_both, made + forms) << "more than the second graph has before its first run";
  EXPECT_EQ(num_held(store), forms);
  // The second still holds what the first must not find any more.
  store.set("a", filled_with({32, 32, 3, 3}, 0.125F));
  expect_right(small, make_model(), "the first after a write");
  expect_right(same, make_model(), "the second after a write");
  EXPECT_EQ(num_made(store), made_by_both + 1);
}

// As a decoder does, whose runs write its caches and read its weights.
TEST(StateKernels, KnowWeightsBesideStatesThatEachRunWrites) {
  Graph graph = make_model();
  const Var cache = state(graph, Tensor::zeros(DType::f32, {1, 32, 12, 12}), "cache");
  const Var x(graph, graph.inputs()[0]);
  update(cache, add(cache, x));
  graph.add_output(conv(cache, Var(graph, graph.states()[0])).id(), "of cache");
  StateStore store;
  const Executable program = compile(graph, with_store(store));
  const Tensor ones = filled_with({1, 32, 12, 12}, 1);
  program.run({ones});
  const size_t made = num_made(store);
  for (int run = 1; run < 4; ++run) {
    const Tensor expected = expected_of(store, graph, ones);
    EXPECT_EQ(store.get("cache").to_f64()[0], run);
    EXPECT_EQ(difference(program.run({ones})[0], expected, {1e-3, 1e-4}), "");
  }
  EXPECT_EQ(num_made(store), made);
}

TEST(StateKernels, FreeTheirFormsInTheEnd) {
  StateStore store;
  {
    const Executable program = compile(make_model(), with_store(store));
    program.run({drawn_x()});
    EXPECT_GT(num_held(store), 0U);
  }
  EXPECT_EQ(num_held(store), 0U);
}

TEST(StateKernels, OfOneGraphInTwoStoresAreApart) {
  const Graph model = make_model();
  StateStore first, second;
  const Executable a = compile(model, with_store(first)), b = compile(model, with_store(second));
  second.set("a", filled_with({32, 32, 3, 3}, 0.25F));
  expect_right(a, model, "first store");
  expect_right(b, model, "second store");
  first.set("a", filled_with({32, 32, 3, 3}, -0.5F));  // the same version number in both
  expect_right(a, model, "first store, written");
  expect_right(b, model, "second store, not written");
}

TEST(StateKernels, WorkOnStreams) {
  const Graph model = make_model();
  Random random(9);
  for (int round = 0; round < 4; ++round) {
    StateStore store;
    CompileOptions options = with_store(store);
    options.expert.schedule = std::make_shared<const Schedule>(make_random_schedule(random, model, 2, 1));
    const Executable program = compile(model, options);
    const Executable step = compile(make_step(), with_store(store));
    for (int i = 0; i < 2; ++i) {
      expect_right(program, model, "on streams");
      step.run({});
    }
  }
}

// While one thread writes ever new weights, all elements of which are equal, each run sees those of one version.
TEST(StateKernels, OfOneRunHaveOneVersion) {
  Graph graph("uniform");
  const Var x = input(graph, DType::f32, {1, 32, 6, 6}, "x");
  const Var a = state(graph, filled_with({32, 32, 3, 3}, 1), "a");
  graph.add_output(conv(x, a).id(), "first");
  graph.add_output(conv(neg(x), a).id(), "second");
  StateStore store;
  const Executable program = compile(std::move(graph), with_store(store));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int version = 1; !stop; ++version) {
      store.set("a", filled_with({32, 32, 3, 3}, static_cast<float>(version % 64)));
      std::this_thread::yield();
    }
  });
  const Tensor ones = filled_with({1, 32, 6, 6}, 1);
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      for (int run = 0; run < 40; ++run) {
        const Outputs outputs = program.run({ones});
        const auto first = outputs["first"].to_f64(), second = outputs["second"].to_f64();
        for (size_t e = 0; e < first.size(); ++e) {
          ASSERT_NEAR(first[e], first[0], 1e-2);
          ASSERT_NEAR(second[e], -first[0], 1e-2);
        }
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  stop = true;
  writer.join();
}

// Kernels of bytes make one factor for each channel of what they are told of scales.
TEST(StateKernels, ThatTookElementsApartAreMadeAnew) {
  constexpr int64_t kChannels = 32;
  Graph graph("quantized");
  Random random(8);
  const auto number = [&](float value) { return constant(graph, Tensor::scalar(value)); };
  const Var zero = constant(graph, Tensor::scalar<uint8_t>(0));
  const Var x = input(graph, DType::f32, {1, kChannels, 8, 8}, "x");
  const Var scales = state(graph, filled_with({kChannels}, 0.01F), "scales");
  const Quantized bytes{quantize_linear(x, number(0.02F), zero), number(0.02F), zero};
  const Quantized weights{constant(graph, draw_tensor(random, DType::i8, {kChannels, kChannels, 3, 3}, -60, 60)),
                          scales, constant(graph, Tensor::zeros(DType::i8, {kChannels}))};
  const Var y = qlinear_conv(bytes, weights, number(0.05F), zero);
  graph.add_output(dequantize_linear(y, number(0.05F), zero).id(), "y");
  StateStore store;
  const Executable program = compile(graph, with_store(store));
  const Tensor input = draw_tensor(random, DType::f32, {1, kChannels, 8, 8}, 0, 4);
  for (const float scale : {0.02F, 0.005F}) {
    store.set("scales", filled_with({kChannels}, scale));
    EXPECT_EQ(difference(program.run({input})[0], expected_of(store, graph, input), {0, 0.051}), "") << scale;
  }
}

// Weights in the bodies of a loop and of the branches of an if, whose kernels have plans of their own.
constexpr int64_t kTurns = 3;
const Dims kImage{1, 32, 6, 6};

Graph turn() {
  Graph body("turn");
  const Var h = input(body, DType::f32, Shape::of(kImage), "h"), x = input(body, DType::f32, Shape::of(kImage), "x");
  const Var w = input(body, DType::f32, {32, 32, 3, 3}, "w");
  body.add_output(tanh(add(conv(h, w, {}, {.pads = {1, 1, 1, 1}}), x)).id());
  return body;
}

// y = the last h of a scan over x, or of one in the branch of an if.
// The body reads `of` the state.
Graph make_scan(
    bool in_branch, const std::function<Var(const Var&)>& of = [](const Var& w) { return w; }) {
  Graph graph("scan");
  const Var x = input(graph, DType::f32, {kTurns, 1, 32, 6, 6}, "x"),
            h = input(graph, DType::f32, Shape::of(kImage), "h");
  Random random(5);
  const Var w = of(state(graph, draw_tensor(random, DType::f32, {32, 32, 3, 3}, -0.1, 0.1), "a"));
  if (!in_branch) {
    graph.add_output(scan({h}, {x}, turn(), {w})[0].id(), "y");
    return graph;
  }
  Graph scans("scans"), hands_on("hands on");
  for (Graph* branch : {&scans, &hands_on}) {
    for (const Var& v : {h, x, w}) branch->add_input(graph.type(v.id()));
  }
  const auto in = [](Graph& branch, size_t i) { return Var(branch, branch.inputs()[i]); };
  scans.add_output(scan({in(scans, 0)}, {in(scans, 1)}, turn(), {in(scans, 2)})[0].id());
  hands_on.add_output(in(hands_on, 0).id());
  const Var some = less(constant(graph, Tensor::scalar(-1e9F)), reduce_sum(h, {0, 1, 2, 3}, false));
  graph.add_output(if_else(some, scans, hands_on, {h, x, w})[0].id(), "y");
  return graph;
}

void expect_known_in_body(const Graph& graph) {
  Random random(6);
  const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {kTurns, 1, 32, 6, 6}, -1, 1),
                                  draw_tensor(random, DType::f32, kImage, -1, 1)};
  StateStore store;
  const Executable program = compile(graph, with_store(store));
  const auto expect_right = [&](const char* when) {
    Graph frozen = graph;
    store.copy_to(frozen);
    CompileOptions reference;
    reference.device = "reference";
    const Outputs expected = compile(std::move(frozen), reference).run(inputs);
    EXPECT_EQ(difference(program.run(inputs)[0], expected[0], {1e-3, 1e-4}), "") << when;
  };
  expect_right("before anything was written");
  const size_t before = num_made(store), forms = num_held(store);
  ASSERT_GE(forms, 1U) << "no kernel of the body has packed weights";
  expect_right("once more");
  EXPECT_EQ(num_made(store), before) << "nothing was written";
  for (int write = 1; write <= 2; ++write) {
    store.set("a", filled_with({32, 32, 3, 3}, 0.01F * static_cast<float>(write)));
    expect_right("after a write");
    expect_right("in the run behind it");
    EXPECT_EQ(num_made(store), before + static_cast<size_t>(write)) << "packed once for each version";
    EXPECT_EQ(num_held(store), forms);
  }
}

TEST(StateKernels, KnowWeightsInBodies) {
  expect_known_in_body(make_scan(false));
  expect_known_in_body(make_scan(true));
}

// Weights that are computed of a state in front of the loop: turned, and scaled by another state.
TEST(StateKernels, KnowWeightsInBodiesThatAreComputedOfStates) {
  Graph graph = make_scan(false, [](const Var& w) {
    const Var scale = state(w.graph(), filled_with({1, 32, 1, 1}, 0.5F), "scale");
    return mul(transpose(w, {1, 0, 2, 3}), scale);
  });
  expect_known_in_body(graph);
}

TEST(StateKernels, KnowWeightsThatLastLongerThanARun) {
  Graph graph = make_model();
  const ValueId a = graph.states()[0];
  EXPECT_EQ(known_states(graph).size(), 4U);
  EXPECT_TRUE(known_states(graph)[1].tensor.is_present());
  update(Var(graph, a), mul(Var(graph, a), constant(graph, Tensor::scalar(2.0F))));
  EXPECT_FALSE(known_states(graph)[1].tensor.is_present()) << "each run writes it";
  EXPECT_TRUE(known_states(graph)[2].tensor.is_present());
  EXPECT_FALSE(known_states(graph)[0].tensor.is_present()) << "an input";
}

}  // namespace
}  // namespace autograph
