// Effects keep their order wherever a graph goes: through texts, files, copies, parts and other graphs.
#include <gtest/gtest.h>

#include <vector>

#include "autodiff/double_graph.h"
#include "autograph/compile.h"
#include "autograph/model_io.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/text.h"
#include "graph/nested/extract_subgraph.h"
#include "graph/nested/inline_graph.h"
#include "support/record_op.h"

namespace autograph {
namespace {

using Tags = std::vector<int64_t>;

// The first effect waits for more work than the second: in an order by data alone it comes last.
Graph make_effects(bool swapped = false) {
  Graph graph("effects");
  const Var x = input(graph, DType::f32, {2}, "x");
  const auto late = [&] { add_record(exp(exp(x)), 1); };
  const auto early = [&] { add_record(x, 2); };
  swapped ? early() : late();
  swapped ? late() : early();
  graph.add_output(relu(x).id(), "y");
  return graph;
}

Tags order_of_run(const Graph& graph) {
  const Executable executable = compile(graph);
  take_record();
  executable.run({Tensor::zeros(graph.type(graph.inputs()[0]).dtype(), {2})});
  return take_record();
}

TEST(OrderOfEffects, IsThatOfTheText) { EXPECT_EQ(order_of_run(parse_text(print_text(make_effects()))), Tags({1, 2})); }

TEST(OrderOfEffects, IsThatOfTheOnnxFile) {
  EXPECT_EQ(order_of_run(parse_onnx(serialize_onnx(make_effects())).graph), Tags({1, 2}));
}

TEST(OrderOfEffects, CountsInTheHash) {
  EXPECT_NE(structural_hash(make_effects(false)), structural_hash(make_effects(true)));
  EXPECT_EQ(structural_hash(make_effects()), structural_hash(parse_text(print_text(make_effects()))));
}

TEST(OrderOfEffects, SurvivesACopyInDouble) { EXPECT_EQ(order_of_run(in_double(make_effects())), Tags({1, 2})); }

TEST(OrderOfEffects, SurvivesWhereAGraphIsPutIn) {
  Graph graph("outer");
  const Var x = input(graph, DType::f32, {2}, "x");
  add_record(x, 0);
  graph.add_output(inline_graph(graph, make_effects(), {x.id()})[0]);
  EXPECT_EQ(order_of_run(graph), Tags({0, 1, 2}));
}

TEST(OrderOfEffects, SurvivesInAPart) {
  const Graph graph = make_effects();
  const Graph part = extract_subgraph(graph, graph.nodes()).graph;
  EXPECT_EQ(part.kept().size(), 2U);
  EXPECT_EQ(order_of_run(part), Tags({1, 2}));
}

// Rewrites may leave what is kept behind something that was kept later.
TEST(OrderOfEffects, GivesWayToData) {
  Graph graph("twisted");
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var first = add_record(x, 1);
  const Var second = add_record(x, 2);
  graph.set_input(graph.value(first.id()).producer(), 0, second.id());
  graph.add_output(first.id(), "y");
  EXPECT_EQ(order_of_run(graph), Tags({2, 1}));
}

TEST(OrderOfEffects, CountsWhatIsKeptOnce) {
  Graph graph = make_effects();
  const std::vector<ValueId> kept = graph.kept();
  graph.replace_uses(kept[1], kept[0]);
  EXPECT_EQ(graph.kept(), std::vector<ValueId>{kept[0]});
}

}  // namespace
}  // namespace autograph
