// What an equality graph knows: equal calls are one term, equal values one class, and the graphs that it stands for.
#include "optimize/search/equality/equality_graph.h"

#include <gtest/gtest.h>

#include "autograph/compare_values.h"
#include "autograph/ops/shape.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "optimize/search/search_testing.h"
#include "support/moved_runs.h"

namespace autograph {
namespace {

// Applies the first match of a rule in a copy of the graph, and teaches what it did.
void teach(EqualityGraph& equalities, const Graph& graph, std::string_view rule) {
  const Rule* rules[] = {&get_rule(rule)};
  const RuleMatcher matcher(rules);
  Graph copy = graph;
  const std::vector<RuleMatch> matches = matcher.find_all(copy);
  ASSERT_FALSE(matches.empty()) << rule;
  const std::optional<RuleEffect> effect = apply_rule(copy, matches.front());
  ASSERT_TRUE(effect) << rule;
  TermNames names = equalities.start();
  equalities.learn(copy, *effect, names);
}

TEST(EqualityGraph, SameCallsAreOneTermEitherWayRound) {
  Graph graph;
  const Var a = input(graph, DType::f32, {4}, "a");
  const Var b = input(graph, DType::f32, {4}, "b");
  graph.add_output(sub(add(a, b), mul(add(b, a), a)).id());
  const EqualityGraph equalities(graph);
  EXPECT_EQ(equalities.num_terms(), 3U) << "a + b and b + a are one";
}

TEST(EqualityGraph, StartIsTheGraphAtTheStart) {
  const Graph graph = gated_blocks(2);
  const EqualityGraph equalities(graph);
  const std::vector<TermId>& terms = equalities.start().terms;
  const std::span<const TermId> wishes[] = {terms};
  const std::optional<GraphForm> form = equalities.make(wishes);
  ASSERT_TRUE(form);
  verify(form->graph);
  EXPECT_EQ(form->graph.num_nodes(), graph.num_nodes());
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(run_reference(form->graph, inputs), run_reference(graph, inputs), {}).ok);
}

TEST(EqualityGraph, EqualInputsMakeEqualResults) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var back = transpose(transpose(x, {1, 0}), {1, 0});
  graph.add_output(sigmoid(back).id());
  graph.add_output(sigmoid(x).id());
  EqualityGraph equalities(graph);
  ASSERT_NE(equalities.find_class(equalities.outputs()[0]), equalities.find_class(equalities.outputs()[1]));
  teach(equalities, graph, "transpose.compose");
  EXPECT_EQ(equalities.find_class(equalities.outputs()[0]), equalities.find_class(equalities.outputs()[1]));
}

TEST(EqualityGraph, WhatIsAnInputNeedsNoNode) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  graph.add_output(sigmoid(transpose(transpose(x, {1, 0}), {1, 0})).id());
  EqualityGraph equalities(graph);
  teach(equalities, graph, "transpose.compose");
  const std::span<const TermId> wishes[] = {equalities.start().terms};
  const std::optional<GraphForm> form = equalities.make(wishes);
  ASSERT_TRUE(form);
  verify(form->graph);
  EXPECT_EQ(form->graph.num_nodes(), 1U);
}

TEST(EqualityGraph, FirstWishWinsAndWhatIsMissingIsToldOf) {
  Graph graph;
  const auto value = [&](const char* name) { return input(graph, DType::f32, {8, 8}, name); };
  const Var product = matmul(matmul(value("a"), value("b")), value("c"));
  graph.add_output(product.id());
  EqualityGraph equalities(graph);
  const size_t at_start = equalities.num_terms();
  teach(equalities, graph, "matmul.regroup_right");
  ASSERT_EQ(equalities.num_terms(), at_start + 2);
  const std::vector<TermId> fresh = {static_cast<TermId>(at_start), static_cast<TermId>(at_start + 1)};
  const std::span<const TermId> both[] = {fresh, equalities.start().terms};
  const std::optional<GraphForm> form = equalities.make(both);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->names.terms, fresh);
  const std::span<const TermId> half[] = {std::span<const TermId>(fresh).subspan(1)};
  EXPECT_FALSE(equalities.make(half)) << "nothing makes b c";
}

}  // namespace
}  // namespace autograph
