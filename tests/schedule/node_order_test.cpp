// The order of nodes without a schedule: inputs first, what reads a state before what overwrites it, and gradients used
// up where they come about.
#include "schedule/node_order.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

constexpr int64_t kRows = 256, kWidth = 64;
constexpr int kLayers = 6;

// Layers that learn by steps along their gradients. Their first node reads the last one that was added, as after
// passes.
Graph make_step() {
  Graph graph("step");
  const Var x = input(graph, DType::f32, {kRows, kWidth}, "x");
  const Var first = relu(x);
  Var h = first;
  std::vector<Var> weights;
  for (int i = 0; i < kLayers; ++i) {
    weights.push_back(state(graph, Tensor::zeros(DType::f32, {kWidth, kWidth}), "w" + std::to_string(i)));
    h = tanh(matmul(h, weights.back()));
  }
  const Var loss = reduce_sum(h);
  const std::vector<Var> gradients = grad(loss, weights);
  for (int i = 0; i < kLayers; ++i) update(weights[i], sub(weights[i], gradients[i]));
  graph.add_output(loss.id(), "loss");
  graph.set_input(graph.value(first.id()).producer(), 0, neg(x).id());
  graph.erase_dead();
  return graph;
}

// By number of a node: its place in the order.
std::vector<size_t> places(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<size_t> place(graph.node_capacity(), order.size());
  for (size_t i = 0; i < order.size(); ++i) place[order[i].index] = i;
  return place;
}

TEST(NodeOrder, InputsFirstAndStatesAreReadBeforeTheyAreOverwritten) {
  Graph graph = make_step();
  const KnownValues known = infer_types(graph);
  const std::vector<NodeId> order = sequential_order(graph, known);
  const std::vector<size_t> place = places(graph, order);
  for (const NodeId id : order) {
    for (const ValueId input : graph.node(id).inputs()) {
      const NodeId producer = graph.value(input).producer();
      if (producer.is_valid() && !known.contains(input.index)) {
        EXPECT_LT(place[producer.index], place[id.index]);
      }
    }
  }
  for (const StateUpdate& update : graph.updates()) {
    const NodeId writer = graph.value(update.value).producer();
    EXPECT_LT(place[writer.index], order.size());
    for (const Use& use : graph.value(update.state).uses()) EXPECT_LE(place[use.node.index], place[writer.index]);
  }
}

// The gradient of the last layer is used up first. The other way round the whole chain of gradients would lie in memory
// beside the values that it was made of.
TEST(NodeOrder, GradientsAreUsedUpWhereTheyComeAbout) {
  Graph graph = make_step();
  Plan plan = plan_sequential(graph, infer_types(graph));
  place_memory(plan);
  constexpr size_t kLayerBytes = kRows * kWidth * sizeof(float);
  EXPECT_LT(plan.arena_bytes, (kLayers + 4) * kLayerBytes);
}

TEST(NodeOrder, KeepsTheOrderOfInsertion) {
  Graph graph("branches");
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var a = neg(x), b = relu(x);
  graph.add_output(b.id(), "b");
  graph.add_output(a.id(), "a");
  EXPECT_EQ(sequential_order(graph, infer_types(graph)), graph.nodes());
}

}  // namespace
}  // namespace autograph
