// Watches, breakpoints and steps on nodes of compiled graphs, on each device.
#include "autograph/watch.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/window.h"
#include "autograph/seeded_inputs.h"
#include "engine/built_in_devices.h"
#include "support/message_of.h"

namespace autograph {
namespace {

using Doubles = std::vector<double>;
using Names = std::vector<std::string>;

Var named(const Var& value, const std::string& name) {
  Graph& graph = value.graph();
  graph.set_provenance(graph.value(value.id()).producer(), Provenance::named(name));
  return value;
}

// neg, relu, exp and sqrt of x in a row; as steps of their own.
Graph chain() {
  Graph graph("chain");
  Var x = input(graph, DType::f32, {2}, "x");
  x = named(neg(x), "first/neg");
  x = named(relu(x), "first/relu");
  x = named(exp(x), "second/exp");
  graph.add_output(named(sqrt(x), "second/sqrt").id(), "y");
  return graph;
}

CompileOptions plain(const std::string& device = "cpu") {
  CompileOptions options;
  options.device = device;
  options.expert.use_passes = false;
  return options;
}

const std::vector<Datum>& some_input() {
  static const std::vector<Datum> kInput{Tensor::of<float>({2}, {-4, 1})};
  return kInput;
}

TEST(NodeWatch, ShowsWhatNodesReadAndMake) {
  for (const std::string& device : built_in_devices()) {
    const Executable program = compile(chain(), plain(device));
    std::vector<Doubles> read, made;
    Names names;
    const NodeWatch watch("*", [&](const NodeRun& run) {
      names.push_back(run.name);
      read.push_back(run.inputs[0].value.tensor().to_f64());
      made.push_back(run.outputs[0].value.tensor().to_f64());
      return WatchNext::go_on;
    });
    const Outputs outputs = program.run(some_input());
    EXPECT_EQ(names, (Names{"first/neg", "first/relu", "second/exp", "second/sqrt"})) << device;
    ASSERT_EQ(made.size(), 4U) << device;
    // What a step wrote over, too.
    EXPECT_EQ(read[0], (Doubles{-4, 1})) << device;
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(read[i], made[i - 1]) << device;
    EXPECT_EQ(made[1], (Doubles{4, 0})) << device;
    EXPECT_EQ(made[3], outputs[0].tensor().to_f64()) << device;
  }
}

TEST(NodeWatch, PatternsFitNamesOutputsAndOps) {
  const Executable program = compile(chain(), plain());
  const auto shown = [&](const std::string& patterns) {
    Names names;
    const NodeWatch watch(patterns, [&](const NodeRun& run) {
      names.push_back(run.op);
      return WatchNext::go_on;
    });
    program.run(some_input());
    EXPECT_EQ(watch.num_shown(), names.size());
    return names;
  };
  EXPECT_EQ(shown("first/*"), (Names{"neg", "relu"}));
  EXPECT_EQ(shown("ex?"), Names{"exp"});
  EXPECT_EQ(shown("relu,second/sqrt"), (Names{"relu", "sqrt"}));
  EXPECT_EQ(shown("third/*"), Names{});
}

TEST(NodeWatch, StepsGoOnAndStop) {
  const Executable program = compile(chain(), plain());
  Names names;
  const auto next = [&](const NodeRun& run) {
    names.push_back(run.op);
    return run.op == "relu" ? WatchNext::step : run.op == "exp" ? WatchNext::stop : WatchNext::go_on;
  };
  {
    const NodeWatch watch("relu", next);
    const std::string message = message_of<UserError>([&] { program.run(some_input()); });
    EXPECT_EQ(message.find("[watch] stopped"), 0U) << message;
    EXPECT_TRUE(watch.has_stopped());
    // The node behind the one that fits, and no further one.
    EXPECT_EQ(names, (Names{"relu", "exp"}));
  }
  // The program can run again, unwatched.
  EXPECT_EQ(program.run(some_input()).size(), 1U);
  EXPECT_EQ(names.size(), 2U);
}

TEST(NodeWatch, TheInnermostCounts) {
  const Executable program = compile(chain(), plain());
  int outer_calls = 0, inner_calls = 0;
  const NodeWatch outer("*", [&](const NodeRun&) { return ++outer_calls, WatchNext::go_on; });
  {
    const NodeWatch inner("neg", [&](const NodeRun&) { return ++inner_calls, WatchNext::go_on; });
    program.run(some_input());
  }
  program.run(some_input());
  EXPECT_EQ(inner_calls, 1);
  EXPECT_EQ(outer_calls, 4);
  EXPECT_THROW(NodeWatch("*", nullptr), ValueError);
}

// Kernels keep channels in blocks, or last: what is shown is what a run without passes and layouts gives.
TEST(NodeWatch, ShowsRowMajorElementsWhateverTheLayout) {
  Graph graph("convs");
  Var x = input(graph, DType::f32, {2, 20, 9, 7}, "x");
  for (int layer = 0; layer < 3; ++layer) {
    const Tensor weight =
        Tensor::of<float>({20, 20, 3, 3}, std::vector<float>(20 * 20 * 9, 0.01F * static_cast<float>(layer + 1)));
    x = named(tanh(conv(x, constant(graph, weight), {}, {.pads = {1, 1, 1, 1}})), "tanh" + std::to_string(layer));
  }
  graph.add_output(x.id(), "y");
  const std::vector<Datum> inputs = seeded_inputs(graph);
  const auto run_on = [&](const CompileOptions& options) {
    const Executable program = compile(graph, options);
    std::vector<Doubles> made;
    const NodeWatch watch("tanh", [&](const NodeRun& run) {
      made.push_back(run.outputs[0].value.tensor().to_f64());
      return WatchNext::go_on;
    });
    program.run(inputs);
    return made;
  };
  CompileOptions options;
  options.expert.disabled_passes = {"fuse_epilogues", "fuse_elementwise"};
  const std::vector<Doubles> expected = run_on(plain("reference"));
  const std::vector<Doubles> actual = run_on(options);
  ASSERT_EQ(expected.size(), 3U);
  ASSERT_EQ(actual.size(), 3U);
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size());
    for (size_t k = 0; k < expected[i].size(); ++k) EXPECT_NEAR(actual[i][k], expected[i][k], 1e-4) << i << " " << k;
  }
}

TEST(NodeWatch, SeesBodiesThatRunByThemselves) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var condition = input(graph, DType::boolean, {}, "condition");
  const auto branch = [](const std::string& name) {
    Graph body;
    body.add_output(named(neg(exp(input(body, DType::f32, {2}, "x"))), name).id());
    return body;
  };
  graph.add_output((x + if_else(condition, branch("then/neg"), branch("else/neg"), {x})[0]).id(), "y");
  const Executable program = compile(graph, plain());
  Names names;
  const NodeWatch watch("*/neg", [&](const NodeRun& run) {
    names.push_back(run.name);
    return WatchNext::go_on;
  });
  program.run({some_input()[0], Tensor::scalar(false)});
  program.run({some_input()[0], Tensor::scalar(true)});
  EXPECT_EQ(names, (Names{"else/neg", "then/neg"}));
}

}  // namespace
}  // namespace autograph
