// Bisection with passes that are wrong on purpose.
#include "engine/bisect/bisector.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/seeded_inputs.h"
#include "engine/bisect/shrink.h"
#include "graph/nested/extract_subgraph.h"

namespace autograph {
namespace {

// Reads of a tanh whose input is an abs get the abs instead: wrong, and only where the two meet.
bool drop_tanh_of_abs(Graph& graph, PassContext&) {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op().name != "tanh") continue;
    const NodeId before = graph.value(node.input(0)).producer();
    if (!before.is_valid() || graph.node(before).op().name != "abs") continue;
    graph.replace_uses(node.output(0), node.input(0));
    graph.erase_dead();
    changed = true;
  }
  return changed;
}

bool keep(Graph&, PassContext&) { return false; }

constexpr PassDef kPasses[] = {{"keep_a", "Changes nothing.", keep},
                               {"keep_b", "Changes nothing.", keep},
                               {"drop_tanh_of_abs", "Wrong.", drop_tanh_of_abs},
                               {"keep_c", "Changes nothing.", keep},
                               {"keep_d", "Changes nothing.", keep}};

// relu, sigmoid, abs, tanh, relu, sigmoid in a row, and a second branch.
Graph chain() {
  Graph graph("chain");
  const Var x = input(graph, DType::f32, {2, 8}, "x");
  const Var middle = tanh(abs(sigmoid(relu(x))));
  graph.add_output(sigmoid(relu(middle)).id(), "y");
  graph.add_output(softmax(relu(x)).id(), "z");
  return graph;
}

CompileOptions one_thread() {
  CompileOptions options;
  options.threads = 1;
  return options;
}

std::vector<Datum> inputs() {
  std::vector<float> values;
  for (int i = 0; i < 16; ++i) values.push_back(static_cast<float>(i) / 4 - 2);
  return {Tensor::of<float>({2, 8}, values)};
}

TEST(Bisect, NamesTheWrongPassAndTheTwoNodesThatShowIt) {
  const BisectReport report = bisect_passes(chain(), one_thread(), inputs(), {}, kPasses);
  EXPECT_EQ(report.culprit, Culprit::pass);
  EXPECT_EQ(report.name, "drop_tanh_of_abs");
  EXPECT_EQ(report.position, 3U);
  EXPECT_FALSE(report.difference.ok);
  EXPECT_TRUE(report.is_complete);
  ASSERT_EQ(report.smallest.num_nodes(), 2U);
  std::vector<std::string_view> ops;
  for (const NodeId id : report.smallest.topological_order()) ops.push_back(report.smallest.node(id).op().name);
  EXPECT_EQ(ops, (std::vector<std::string_view>{"abs", "tanh"}));
  // It fails by itself, on the inputs that come with it.
  const BisectReport again = bisect_passes(report.smallest, one_thread(), report.inputs, {}, kPasses);
  EXPECT_EQ(again.culprit, Culprit::pass);
}

// What is wrong is seen in the new value of a state alone.
TEST(Bisect, LooksAtStatesAndTheirUpdates) {
  Graph graph("stateful");
  const Var x = input(graph, DType::f32, {2, 8}, "x");
  const Var w = state(graph, Tensor::zeros(DType::f32, {2, 8}), "w");
  update(w, tanh(abs(add(w, x))));
  graph.add_output(relu(add(x, w)).id(), "y");
  const BisectReport report = bisect_passes(graph, one_thread(), inputs(), {}, kPasses);
  EXPECT_EQ(report.name, "drop_tanh_of_abs");
  EXPECT_EQ(report.smallest.num_nodes(), 2U);
  EXPECT_EQ(bisect(graph, one_thread(), inputs()).culprit, Culprit::none);
}

TEST(Bisect, FindsNothingWhereNumbersAgree) {
  const BisectReport report = bisect(chain(), one_thread(), inputs());
  EXPECT_EQ(report.culprit, Culprit::none);
  EXPECT_EQ(report.trials, 1U);
  EXPECT_EQ(report.smallest.num_nodes(), 0U);
}

TEST(Bisect, BlamesKernelsWhenTheGraphIsRight) {
  // Nothing is exact enough for this: the first node whose kernel rounds in another way is the smallest model.
  BisectOptions how;
  how.tolerance = {.rtol = 0, .atol = 0};
  const BisectReport report = bisect(chain(), one_thread(), inputs(), how);
  if (report.culprit == Culprit::none) GTEST_SKIP() << "every kernel gives the bits of the reference here";
  EXPECT_EQ(report.culprit, Culprit::kernel);
  EXPECT_FALSE(report.name.empty());
  EXPECT_LT(report.smallest.num_nodes(), chain().num_nodes());
}

// Rounding is all that c x + c y and c (x + y) differ by: without any tolerance that is a wrong rewrite.
TEST(Bisect, NamesTheRewriteThatChangesTheNumbers) {
  Graph graph("factors");
  const Var x = input(graph, DType::f32, {64, 64}, "x");
  const Var y = input(graph, DType::f32, {64, 64}, "y");
  const Var c = input(graph, DType::f32, {64, 64}, "c");
  graph.add_output(relu(add(mul(c, x), mul(c, y))).id(), "z");
  BisectOptions how;
  how.tolerance = {.rtol = 0, .share = 0};
  how.search.strategy = Strategy::taso;
  how.search.budget_seconds = 2;
  CompileOptions options;
  options.device = "reference";
  const BisectReport report = bisect(graph, options, seeded_inputs(graph), how);
  ASSERT_EQ(report.culprit, Culprit::rule);
  EXPECT_EQ(report.name, "arithmetic.factor_sum");
  EXPECT_EQ(report.position, 1u);
  EXPECT_FALSE(report.where.empty());
  EXPECT_EQ(report.smallest.num_nodes(), 3u);
}

TEST(Bisect, StopsWhenCancelled) {
  BisectOptions how;
  how.is_cancelled = [] { return true; };
  const BisectReport report = bisect_passes(chain(), one_thread(), inputs(), how, kPasses);
  EXPECT_EQ(report.name, "drop_tanh_of_abs");
  EXPECT_FALSE(report.is_complete);
  EXPECT_EQ(report.smallest.num_nodes(), chain().num_nodes());
}

TEST(Shrink, FindsScatteredNodes) {
  std::vector<NodeId> nodes;
  for (uint32_t i = 0; i < 100; ++i) nodes.push_back({i});
  const std::vector<NodeId> needed = {{3}, {50}, {51}, {99}};
  size_t trials = 0;
  const auto fails = [&](const std::vector<NodeId>& part) {
    ++trials;
    return std::includes(part.begin(), part.end(), needed.begin(), needed.end());
  };
  EXPECT_EQ(smallest_failing(nodes, fails, [] { return false; }), needed);
  EXPECT_LT(trials, 100U);
}

TEST(ExtractSubgraph, CutsAtValuesAndTakesConstantsAlong) {
  Graph graph("whole");
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var a = relu(x);
  const Var b = add(a, constant(graph, Tensor::of<float>({4}, {1, 2, 3, 4}), "w"));
  graph.add_output(tanh(b).id(), "y");
  const Subgraph part = extract_subgraph(graph, {graph.value(b.id()).producer()});
  EXPECT_EQ(part.inputs, std::vector<ValueId>{a.id()});
  EXPECT_EQ(part.outputs, std::vector<ValueId>{b.id()});
  EXPECT_EQ(part.graph.num_nodes(), 1U);
  EXPECT_EQ(part.graph.constants().size(), 1U);
  const auto outputs = compile(part.graph, one_thread()).run({Tensor::of<float>({4}, {0, 0, 0, 1})});
  EXPECT_EQ(outputs[0].tensor().to_f64(), (std::vector<double>{1, 2, 3, 5}));
}

}  // namespace
}  // namespace autograph
