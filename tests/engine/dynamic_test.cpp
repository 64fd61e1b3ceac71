// Steps whose shapes are known only at run time, nested graphs and sequences, through compile() on every device.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "engine/built_in_devices.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph {
namespace {

using Doubles = std::vector<double>;

CompileOptions on(const std::string& device) {
  CompileOptions options;
  options.device = device;
  options.threads = 1;
  return options;
}

// The elements of x that are not zero, through relu, and how many there are.
Graph nonzero_graph() {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var positions = squeeze(non_zero(x), {0});
  const Var picked = gather(x, positions);
  graph.add_output(relu(picked).id(), "picked");
  graph.add_output(shape(picked).id(), "count");
  return graph;
}

TEST(Dynamic, ShapesFollowTheElements) {
  for (const std::string& device : built_in_devices()) {
    const Executable executable = compile(nonzero_graph(), on(device));
    const auto some = executable.run({Tensor::of<float>({4}, {5, 0, -2, 3})});
    EXPECT_EQ(some[0].tensor().to_f64(), (Doubles{5, 0, 3})) << device;
    EXPECT_EQ(some[1].tensor().to_f64(), (Doubles{3})) << device;
    const auto none = executable.run({Tensor::zeros(DType::f32, {4})});
    EXPECT_EQ(none[0].tensor().dims(), (Dims{0})) << device;
    EXPECT_EQ(none[1].tensor().to_f64(), (Doubles{0})) << device;
  }
}

// Convolutions over as many columns as the mask says, whose kernels may want them channels-last: with reorders, whose
// memory all of them share.
TEST(Dynamic, ConvolutionsOfColumnsThatAreChosenWhileRunning) {
  constexpr int64_t kChannels = 64, kColumns = 512;
  Graph graph;
  Random random(5);
  const Var x = input(graph, DType::f32, {1, kChannels, kColumns}, "x");
  const Var mask = input(graph, DType::f32, {kColumns}, "mask");
  Var y = gather(x, squeeze(non_zero(mask), {0}), 2);
  for (const int64_t dilation : {1, 3}) {
    const Var w = constant(graph, draw_tensor(random, DType::f32, {kChannels, kChannels, 7}, -0.1, 0.1));
    const Var b = constant(graph, draw_tensor(random, DType::f32, {kChannels}));
    y = relu(conv(y, w, b, {.pads = {3 * dilation, 3 * dilation}, .dilations = {dilation}}));
  }
  graph.add_output(y.id(), "y");
  const Executable fast = compile(graph, on("cpu")), plain = compile(graph, on("reference"));
  for (const int64_t count : {300, 512, 40, 300}) {
    std::vector<float> chosen(kColumns, 0);
    std::fill(chosen.begin(), chosen.begin() + count, 1.0F);
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, {1, kChannels, kColumns}, -1, 1),
                                    Tensor::of<float>({kColumns}, chosen)};
    EXPECT_EQ(difference(fast.run(inputs), plain.run(inputs), {1e-4, 1e-4}), "") << count;
  }
}

TEST(Dynamic, RunIntoRefusesOutputsOfUnknownSize) {
  const Executable executable = compile(nonzero_graph(), on("cpu"));
  std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {4}), Tensor::zeros(DType::i64, {1})};
  EXPECT_EQ(message_of<ShapeError>([&] { executable.run_into({Tensor::zeros(DType::f32, {4})}, outputs); }),
            "[run] output 0: its size is known only after running; use run()");
}

// y = [x, x] when the condition holds, x otherwise.
GraphRef branch(int times) {
  auto graph = std::make_shared<Graph>();
  const Var x = input(*graph, DType::f32, Shape::of_rank(1), "x");
  graph->add_output(concat(std::vector<Var>(static_cast<size_t>(times), x), 0).id(), "y");
  return graph;
}

// y = x without its axis of extent 1, where there is one.
GraphRef squeezing_branch() {
  auto graph = std::make_shared<Graph>();
  const Var x = input(*graph, DType::f32, Shape::unknown(), "x");
  graph->add_output(squeeze(x, {0}).id(), "y");
  return graph;
}

GraphRef keeping_branch() {
  auto graph = std::make_shared<Graph>();
  const Var x = input(*graph, DType::f32, Shape::unknown(), "x");
  graph->add_output(relu(x).id(), "y");
  return graph;
}

TEST(Dynamic, IfMayHoldABranchForOtherShapes) {
  for (const Shape& shape : {Shape{2, 3}, Shape{Dim::symbol("n"), 3}}) {
    Graph graph;
    const Var condition = input(graph, DType::boolean, {}, "condition");
    const Var x = input(graph, DType::f32, shape, "x");
    const Attributes branches{{"then_branch", squeezing_branch()}, {"else_branch", keeping_branch()}};
    graph.add_output(relu(apply_all(get_op("if"), {condition, x}, branches, 1)[0]).id());
    const Tensor two = Tensor::of<float>({2, 3}, {1, -2, 3, 4, 5, 6});
    for (const std::string& device : built_in_devices()) {
      const Executable executable = compile(graph, on(device));
      EXPECT_EQ(executable.run({Tensor::scalar(false), two})[0].tensor().to_f64(), (Doubles{1, 0, 3, 4, 5, 6}));
      const std::string message = message_of<ShapeError>([&] { executable.run({Tensor::scalar(true), two}); });
      EXPECT_NE(message.find("[squeeze] axes: expected extent 1 at axis 0, got [2,3]"), std::string::npos) << message;
      if (shape.is_static()) continue;
      const Tensor one = Tensor::of<float>({1, 3}, {1, -2, 3});
      EXPECT_EQ(executable.run({Tensor::scalar(true), one})[0].tensor().dims(), (Dims{3})) << device;
      EXPECT_EQ(executable.run({Tensor::scalar(false), one})[0].tensor().dims(), (Dims{1, 3})) << device;
    }
  }
}

TEST(Dynamic, IfWithAKnownConditionHasTheTypesOfItsBranch) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Attributes branches{{"then_branch", squeezing_branch()}, {"else_branch", keeping_branch()}};
  const Var no = constant(graph, Tensor::scalar(false));
  graph.add_output(apply_all(get_op("if"), {no, x}, branches, 1)[0].id());
  EXPECT_EQ(to_string(graph.type(graph.outputs()[0])), "f32[2,3]");
  const Var yes = constant(graph, Tensor::scalar(true));
  EXPECT_NE(message_of<ShapeError>([&] { apply_all(get_op("if"), {yes, x}, branches, 1); }), "");
}

// Out of range where everything is known before the run: the run says so, with the node.
TEST(Dynamic, IndexOutOfRangeNamesTheNodeOfShapeArithmetic) {
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::symbol("n"), 3}, "x");
  const Var extent = gather(shape(x), constant(graph, Tensor::vector({int64_t{5}})));
  graph.set_provenance(graph.value(extent.id()).producer(), Provenance::named("head/Gather"));
  graph.add_output(extent.id());
  for (const std::string& device : built_in_devices()) {
    const std::string message = message_of<ValueError>([&] {
      compile(graph, on(device)).run({Tensor::zeros(DType::f32, {2, 3})});
    });
    for (const char* part : {"[gather] indices: expected -2..1", "got 5", "gather \"head/Gather\""}) {
      EXPECT_NE(message.find(part), std::string::npos) << device << ": " << message;
    }
  }
}

TEST(Dynamic, IfRunsTheChosenBranch) {
  Graph graph;
  const Var condition = input(graph, DType::boolean, {}, "condition");
  const Var x = input(graph, DType::f32, {2}, "x");
  const Attributes branches{{"then_branch", branch(2)}, {"else_branch", branch(1)}};
  graph.add_output(relu(apply_all(get_op("if"), {condition, x}, branches, 1)[0]).id());
  for (const std::string& device : built_in_devices()) {
    const Executable executable = compile(graph, on(device));
    const Tensor value = Tensor::of<float>({2}, {-1, 4});
    EXPECT_EQ(executable.run({Tensor::scalar(true), value})[0].tensor().to_f64(), (Doubles{0, 4, 0, 4})) << device;
    EXPECT_EQ(executable.run({Tensor::scalar(false), value})[0].tensor().to_f64(), (Doubles{0, 4})) << device;
  }
}

// Each turn doubles the state by concatenation and records the iteration number.
Graph doubling_loop() {
  auto body = std::make_shared<Graph>();
  const Var turn = input(*body, DType::i64, {}, "turn");
  const Var condition = input(*body, DType::boolean, {}, "condition");
  const Var state = input(*body, DType::f32, Shape::of_rank(1), "state");
  body->add_output(condition.id());
  body->add_output(concat({state, state}, 0).id());
  body->add_output(turn.id());
  Graph graph;
  const Var limit = input(graph, DType::i64, {}, "limit");
  const Var start = input(graph, DType::f32, {1}, "start");
  for (const Var& v : apply_all(get_op("loop"), {limit, Var(), start}, {{"body", GraphRef(body)}}, 2)) {
    graph.add_output(v.id());
  }
  return graph;
}

TEST(Dynamic, LoopCarriesAStateThatGrows) {
  for (const std::string& device : built_in_devices()) {
    const Executable executable = compile(doubling_loop(), on(device));
    const Tensor start = Tensor::of<float>({1}, {7});
    const auto twice = executable.run({Tensor::scalar(int64_t{2}), start});
    EXPECT_EQ(twice[0].tensor().to_f64(), (Doubles{7, 7, 7, 7})) << device;
    EXPECT_EQ(twice[1].tensor().to_f64(), (Doubles{0, 1})) << device;
    const auto never = executable.run({Tensor::scalar(int64_t{0}), start});
    EXPECT_EQ(never[0].tensor().to_f64(), (Doubles{7})) << device;
    EXPECT_EQ(never[1].tensor().dims(), (Dims{0})) << device;
  }
}

TEST(Dynamic, BudgetStopsALoopThatGrows) {
  CompileOptions options = on("cpu");
  options.memory_budget_bytes = 4096;
  const Executable executable = compile(doubling_loop(), options);
  const std::string text = message_of<BudgetError>([&] {
    executable.run({Tensor::scalar(int64_t{40}), Tensor::of<float>({1}, {7})});
  });
  EXPECT_NE(text.find("exceed the budget of 4096 bytes"), std::string::npos) << text;
  // The failed run left nothing behind.
  const auto fits = executable.run({Tensor::scalar(int64_t{3}), Tensor::of<float>({1}, {7})});
  EXPECT_EQ(fits[0].tensor().num_elements(), 8);
}

TEST(Dynamic, ScanAddsUpRows) {
  auto body = std::make_shared<Graph>();
  const Var sum = input(*body, DType::f32, {2}, "sum");
  const Var row = input(*body, DType::f32, {2}, "row");
  const Var next = apply(get_op("add"), {sum, row});
  body->add_output(next.id());
  body->add_output(next.id());
  Graph graph;
  const Var start = input(graph, DType::f32, {2}, "start");
  const Var rows = input(graph, DType::f32, {3, 2}, "rows");
  const Attributes attributes{{"body", GraphRef(body)}, {"num_scan_inputs", int64_t{1}}};
  for (const Var& v : apply_all(get_op("scan"), {start, rows}, attributes, 2)) graph.add_output(v.id());
  for (const std::string& device : built_in_devices()) {
    const auto outputs =
        compile(graph, on(device)).run({Tensor::zeros(DType::f32, {2}), Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})});
    EXPECT_EQ(outputs[0].tensor().to_f64(), (Doubles{9, 12})) << device;
    EXPECT_EQ(outputs[1].tensor().to_f64(), (Doubles{1, 2, 4, 6, 9, 12})) << device;
    EXPECT_EQ(outputs[1].tensor().dims(), (Dims{3, 2})) << device;
  }
}

TEST(Dynamic, SequencesHoldTensorsOfSeveralShapes) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var y = input(graph, DType::f32, {3}, "y");
  const Var sequence = apply(get_op("sequence_construct"), {relu(x), y});
  const Var last = constant(graph, Tensor::scalar(int64_t{-1}));
  graph.add_output(sequence.id());
  graph.add_output(relu(apply(get_op("sequence_at"), {sequence, last})).id());
  for (const std::string& device : built_in_devices()) {
    const auto outputs =
        compile(graph, on(device)).run({Tensor::of<float>({2}, {-1, 2}), Tensor::of<float>({3}, {3, -4, 5})});
    ASSERT_EQ(outputs[0].sequence().size(), 2u) << device;
    EXPECT_EQ(outputs[0].sequence()[0].tensor().to_f64(), (Doubles{0, 2})) << device;
    EXPECT_EQ(outputs[0].sequence()[1].tensor().to_f64(), (Doubles{3, -4, 5})) << device;
    EXPECT_EQ(outputs[1].tensor().to_f64(), (Doubles{3, 0, 5})) << device;
  }
}

TEST(CheckNan, NamesTheFirstStepThatMakesOne) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var quotient = apply(get_op("div"), {relu(x), x});
  graph.add_output(relu(quotient).id());
  for (const std::string& device : built_in_devices()) {
    CompileOptions options = on(device);
    options.check_nan = NanCheck::nodes;
    const Executable executable = compile(graph, options);
    const std::string text = message_of<UserError>([&] { executable.run({Tensor::of<float>({2}, {1, 0})}); });
    // Behind the step, which may not have written over what it read.
    EXPECT_EQ(text.find("[check_nan] output 0: element 1 is NaN, all inputs are finite: input 0 f32[2] has "
                        "min 0, max 1, mean 0.5, rms 0.707107; input 1 'x' (an input of the graph) f32[2] has min 0, "
                        "max 1, mean 0.5, "
                        "rms 0.707107 (in node #1 div"),
              0u)
        << text;
    EXPECT_EQ(executable.run({Tensor::of<float>({2}, {1, 2})})[0].tensor().to_f64(), (Doubles{1, 1})) << device;
  }
}

TEST(CheckNan, LetsThroughWhatComesFromTheInputs) {
  // All but the first step may write over an input that was infinite already.
  Graph graph;
  const Var x = input(graph, DType::f32, {1}, "x");
  graph.add_output(relu(apply(get_op("neg"), {apply(get_op("neg"), {x})})).id());
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::string& device : built_in_devices()) {
    CompileOptions options = on(device);
    options.check_nan = NanCheck::nodes;
    const auto outputs = compile(graph, options).run({Tensor::of<float>({1}, {infinity})});
    EXPECT_EQ(outputs[0].tensor().to_f64(), (Doubles{infinity})) << device;
  }
}

}  // namespace
}  // namespace autograph
