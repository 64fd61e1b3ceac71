// Differences between graphs that are the same but for one thing.
#include "autograph/graph_diff.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include <random>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/text.h"
#include "graph/diff/match_nodes.h"

namespace autograph {
namespace {

std::vector<std::string> changes(const Graph& a, const Graph& b) {
  std::vector<std::string> texts;
  for (const GraphChange& change : diff_graphs(a, b).changes) texts.push_back(to_string(change));
  return texts;
}

using Texts = std::vector<std::string>;

struct Settings {
  std::string prefix = {};  // of node names
  float weight = 0.5F;      // one element of the second layer's
  int64_t axis = -1;        // of the softmax
  bool has_tanh = false;    // between the layers
  bool has_gelu = false;    // in place of the relu
  bool names_nodes = true;  // else only weights have names
  bool names_weights = true;
  int64_t width = 3;
  std::string input_name = "x";
};

Tensor weight(int64_t rows, int64_t columns, float first) {
  std::vector<float> elements(static_cast<size_t>(rows * columns), 0.25F);
  elements[0] = first;
  return Tensor::of<float>({rows, columns}, elements);
}

// Two layers, relu between them, softmax behind.
Graph model(const Settings& settings) {
  Graph graph("model");
  const auto named = [&](const Var& value, const std::string& name) {
    if (settings.names_nodes) {
      graph.set_provenance(graph.value(value.id()).producer(), Provenance::named(settings.prefix + name));
    }
    return value;
  };
  const auto weight_named = [&](const std::string& name, Tensor tensor) {
    return Var(graph, graph.add_constant(std::move(tensor), settings.names_weights ? name : ""));
  };
  const Var x = input(graph, DType::f32, {2, 4}, settings.input_name);
  Var y = named(matmul(x, weight_named("first.weight", weight(4, settings.width, 1))), "first");
  y = named(settings.has_gelu ? gelu(y) : relu(y), "act");
  if (settings.has_tanh) y = named(tanh(y), "tanh");
  y = named(matmul(y, weight_named("second.weight", weight(settings.width, 5, settings.weight))), "second");
  graph.add_output(named(softmax(y, settings.axis), "softmax").id(), "y");
  return graph;
}

TEST(GraphDiff, NothingBetweenEqualGraphsWhateverTheirNodesAreCalled) {
  EXPECT_TRUE(diff_graphs(model({}), model({})).is_same());
  const GraphDiff renamed = diff_graphs(model({}), model({.prefix = "other/"}));
  EXPECT_TRUE(renamed.is_same());
  EXPECT_EQ(renamed.num_matched, 4U);
  EXPECT_TRUE(diff_graphs(model({}), model({.names_nodes = false, .names_weights = false})).is_same());
}

TEST(GraphDiff, WeightsAreCountedAndMeasured) {
  EXPECT_EQ(changes(model({}), model({.weight = 0.75F})),
            Texts{"weight second.weight changed: elements: 1 of 15 differ, by 0.25 at most, 0.5 of the largest"});
}

TEST(GraphDiff, WeightsMayDifferByATolerance) {
  const Graph a = model({}), b = model({.weight = 0.75F});
  EXPECT_EQ(diff_graphs(a, b, 0.49).changes.size(), 1U);
  EXPECT_TRUE(diff_graphs(a, b, 0.5).is_same());
}

// As two exporters write it: other names everywhere, weights that are rounded otherwise, the short cut first or last,
// and a head spelled in other ops.
Graph residual_blocks(const std::string& prefix, float rounding, bool is_shortcut_first) {
  Graph graph;
  int number = 0;
  const auto product = [&](const Var& x, int64_t rows, int64_t columns) {
    const auto w = constant(graph, weight(rows, columns, 1 + rounding), fmt::format("{}weight{}", prefix, number));
    const Var y = matmul(x, w);
    graph.set_provenance(graph.value(y.id()).producer(), Provenance::named(fmt::format("{}node{}", prefix, number++)));
    return y;
  };
  Var x = input(graph, DType::f32, {2, 4}, prefix + "x");
  for (int block = 0; block < 3; ++block) {
    Var shortcut = is_shortcut_first ? product(x, 4, 4) : Var();
    // Three that read the same through weights of one shape, told apart by what reads them.
    const Var scores = matmul(softmax(product(x, 4, 3), -1), transpose(relu(product(x, 4, 3)), {1, 0}));
    const Var y = product(matmul(scores, sigmoid(product(x, 4, 3))), 3, 4);
    if (!is_shortcut_first) shortcut = product(x, 4, 4);
    x = relu(y + shortcut);
  }
  graph.add_output((is_shortcut_first ? tanh(exp(x)) : sqrt(abs(x))).id(), "y");
  return graph;
}

TEST(GraphDiff, TwoExportsOfOneNetworkAreMatchedByStructure) {
  const Graph legacy = residual_blocks("", 0, true), newer = residual_blocks("other_", 1e-6F, false);
  const GraphDiff found = diff_graphs(legacy, newer, 1e-5);
  EXPECT_EQ(found.num_matched, legacy.num_nodes() - 2);
  EXPECT_EQ(found.changes.size(), 6U);  // the head, the name of the input and what the output is
}

TEST(GraphDiff, Attributes) {
  EXPECT_EQ(changes(model({}), model({.axis = 0})), Texts{"node softmax (softmax) changed: attribute axis: -1 -> 0"});
}

TEST(GraphDiff, TypesAlongTheWay) {
  EXPECT_EQ(changes(model({}), model({.width = 6})),
            (Texts{"node first (matmul) changed: output 0: f32[2,3] -> f32[2,6]",
                   "node act (relu) changed: output 0: f32[2,3] -> f32[2,6]",
                   "weight first.weight changed: type: f32[4,3] -> f32[4,6]",
                   "weight second.weight changed: type: f32[3,5] -> f32[6,5]"}));
}

TEST(GraphDiff, ANodeBetweenTwoOthersIsAddedAndReadBehind) {
  const Texts expected{"node second (matmul) changed: input 0: act -> tanh", "node tanh (tanh) added"};
  EXPECT_EQ(changes(model({}), model({.has_tanh = true})), expected);
  // By weights, though the nodes have other names; by neighbours, though nothing has a name.
  const Texts without_names{"node matmul (matmul) changed: input 0: relu -> tanh", "node tanh (tanh) added"};
  EXPECT_EQ(changes(model({.names_nodes = false}), model({.has_tanh = true, .names_nodes = false})), without_names);
  EXPECT_EQ(changes(model({.names_nodes = false, .names_weights = false}),
                    model({.has_tanh = true, .names_nodes = false, .names_weights = false})),
            without_names);
  EXPECT_EQ(changes(model({.has_tanh = true}), model({})),
            (Texts{"node tanh (tanh) removed", "node second (matmul) changed: input 0: tanh -> act"}));
}

TEST(GraphDiff, AnotherOpInTheSamePlace) {
  EXPECT_EQ(changes(model({}), model({.has_gelu = true})).front().substr(0, 43),
            "node act (relu) changed: op: relu -> gelu; ");
}

TEST(GraphDiff, InputsAndOutputs) {
  EXPECT_EQ(changes(model({}), model({.input_name = "data"})), Texts{"input x changed: name: x -> data"});
  Graph more = model({});
  const ValueId z = more.add_input(Type(DType::f32, {1}), "z");
  more.add_output(z, "z");
  EXPECT_EQ(changes(model({}), more), (Texts{"input z added: f32[1]", "output z added: f32[1]"}));
  EXPECT_EQ(changes(more, model({})), (Texts{"input z removed: f32[1]", "output z removed: f32[1]"}));
}

TEST(GraphDiff, BodiesAreComparedAsGraphs) {
  const auto build = [](float step) {
    Graph graph;
    const Var x = input(graph, DType::f32, {2}, "x");
    const Var condition = input(graph, DType::boolean, {}, "condition");
    const auto branch = [](float added) {
      Graph body;
      body.add_output((constant(body, Tensor::of<float>({2}, {added, 2})) + 1).id());
      return body;
    };
    graph.add_output((x + if_else(condition, branch(step), branch(0))[0]).id(), "y");
    return graph;
  };
  const Texts found = changes(build(1), build(2));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_NE(found[0].find("(if) changed: then_branch: weight"), std::string::npos) << found[0];
  EXPECT_NE(found[0].find("elements: 1 of 2 differ, by 1 at most"), std::string::npos) << found[0];
}

// A graph of random nodes.
Graph random_graph(std::mt19937& random, int num_nodes) {
  Graph graph("random");
  std::vector<Var> values{input(graph, DType::f32, {3}, "x")};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int i = 0; i < num_nodes; ++i) {
    switch (random() % 4) {
      case 0: values.push_back(relu(any())); break;
      case 1: values.push_back(any() + any()); break;
      case 2: values.push_back(tanh(any())); break;
      default: values.push_back(any() * Var(graph, graph.add_constant(Tensor::scalar(static_cast<float>(i))))); break;
    }
  }
  for (size_t i = values.size() - 3; i < values.size(); ++i) graph.add_output(values[i].id());
  graph.erase_dead();
  return graph;
}

// Copies, as exporters put them before outputs and behind shared weights, and what moves nothing.
TEST(GraphDiff, PassesOverWhatHandsOn) {
  const auto make = [](bool has_copies, const Shape& shape, const std::vector<int64_t>& to) {
    Graph graph("model");
    const Var x = input(graph, DType::f32, shape, "x");
    const Var w(graph, graph.add_constant(weight(4, 3, 1), "w"));
    Var y = relu(matmul(x, has_copies ? identity(w) : w));
    if (has_copies) y = identity(reshape(identity(y), to));
    graph.add_output(y.id(), "y");
    return graph;
  };
  for (const Shape& shape : {Shape{2, 4}, Shape{Dim::symbol("n"), 4}}) {
    const Graph plain = make(false, shape, {}), copies = make(true, shape, {0, 3});
    EXPECT_EQ(changes(plain, copies), Texts{});
    EXPECT_EQ(changes(copies, plain), Texts{});
    EXPECT_EQ(diff_graphs(copies, copies).num_matched, 2U);
    // A view that changes the shape is a node as any other.
    EXPECT_FALSE(diff_graphs(plain, make(true, shape, {-1})).is_same());
  }
}

// No node is in two pairs, pairs have one op, and a graph is all of itself; one node taken out is found.
TEST(GraphDiff, RandomGraphs) {
  std::mt19937 random(11);
  for (int trial = 0; trial < 60; ++trial) {
    const Graph a = random_graph(random, 5 + static_cast<int>(random() % 40));
    EXPECT_TRUE(diff_graphs(a, a).is_same());
    EXPECT_TRUE(diff_graphs(a, parse_text(print_text(a))).is_same()) << print_text(a);
    const Graph other = random_graph(random, 5 + static_cast<int>(random() % 40));
    const NodePairs pairs = match_nodes(a, other);
    size_t count = 0;
    for (const NodeId id : a.nodes()) {
      if (!pairs.of_a(id).is_valid()) continue;
      EXPECT_EQ(pairs.of_b(pairs.of_a(id)), id);
      ++count;
    }
    EXPECT_EQ(count, pairs.size());
    Graph shorter = a;
    const std::vector<NodeId> nodes = shorter.nodes();
    const Node& out = shorter.node(nodes[random() % nodes.size()]);
    shorter.replace_uses(out.output(0), out.input(0));
    shorter.erase_dead();
    EXPECT_FALSE(diff_graphs(a, shorter).is_same()) << print_text(a) << print_text(shorter);
  }
}

}  // namespace
}  // namespace autograph
