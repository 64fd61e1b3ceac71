#include "autograph/graph.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/text.h"
#include "autograph/verify.h"

namespace autograph {
namespace {

TEST(Graph, AddNodeInfersTypesAndFillsDefaults) {
  Graph graph("g");
  const Var x = input(graph, DType::f32, {Dim::symbol("batch"), 3}, "x");
  const Var y = softmax(relu(x));
  graph.add_output(y.id(), "y");
  EXPECT_EQ(to_string(y.type()), "f32[batch,3]");
  EXPECT_EQ(graph.node(graph.value(y.id()).producer()).attributes().integer("axis"), -1);
}

TEST(Graph, RejectsAxisOutOfRangeWithOpNodeAndValues) {
  Graph graph;
  const ProvenanceScope scope("head");
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  try {
    softmax(x, 5);
    FAIL() << "softmax accepted axis 5";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "[softmax] axis: expected -2..1 for rank 2, got 5 (node \"head/softmax\")");
  }
}

TEST(Graph, CycleIsReportedWithTheNodesOnIt) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var a = relu(x);
  const Var b = relu(a);
  graph.set_input(graph.value(a.id()).producer(), 0, b.id());
  EXPECT_THROW(graph.topological_order(), FormatError);
}

TEST(Graph, EraseDeadRemovesNodesThatNoOutputNeeds) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var kept = relu(x);
  relu(relu(x));
  graph.add_output(kept.id());
  EXPECT_EQ(graph.erase_dead(), 2u);
  EXPECT_EQ(graph.num_nodes(), 1u);
}

// A rewrite in all its parts, so that a rollback has something of every kind to take back.
void rewrite(Graph& graph, ValueId x, ValueId old) {
  const Var fresh = softmax(relu(Var(graph, x)), 0);
  graph.add_constant(Tensor::of<float>({1}, {1}), "c");
  graph.replace_uses(old, fresh.id());
  graph.set_type(fresh.id(), Type(DType::f32, {2}));
  graph.erase_node(graph.value(old).producer());
}

TEST(Graph, TransactionTakesBackEverything) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var old = relu(x);
  graph.add_output(relu(old).id(), "y");
  graph.add_output(old.id(), "z");
  const std::string before = print_text(graph);
  const auto uses = graph.value(x.id()).uses();
  {
    const GraphTransaction transaction(graph);
    rewrite(graph, x.id(), old.id());
    EXPECT_NE(print_text(graph), before);
  }
  EXPECT_EQ(print_text(graph), before);
  EXPECT_EQ(graph.value(x.id()).uses(), uses);
  verify(graph);
}

TEST(Graph, OuterTransactionTakesBackWhatAnInnerOneCommitted) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var old = relu(x);
  graph.add_output(relu(old).id(), "y");
  const std::string before = print_text(graph);
  {
    const GraphTransaction outer(graph);
    graph.set_value_name(x.id(), "renamed");
    GraphTransaction inner(graph);
    rewrite(graph, x.id(), old.id());
    inner.commit();
    const std::string after = print_text(graph);
    {
      const GraphTransaction undone(graph);
      graph.set_value_name(x.id(), "again");
    }
    EXPECT_EQ(print_text(graph), after);
  }
  EXPECT_EQ(print_text(graph), before);
  verify(graph);
}

TEST(Graph, CommittedTransactionStays) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var old = relu(x);
  graph.add_output(old.id(), "y");
  Graph expected = graph;
  rewrite(expected, x.id(), old.id());
  {
    GraphTransaction transaction(graph);
    rewrite(graph, x.id(), old.id());
    transaction.commit();
  }
  EXPECT_EQ(print_text(graph), print_text(expected));
}

}  // namespace
}  // namespace autograph
