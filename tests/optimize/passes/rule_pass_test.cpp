#include "optimize/passes/rule_pass.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// The second one is for an op that only the first one makes, and takes it away.
const Rule kRules[] = {{.name = "test.first", .before = "y = exp(x)", .after = "y = abs(x)"},
                       {.name = "test.second", .before = "s = abs(x); y = tanh(s)", .after = "y = sigmoid(x)"}};

std::vector<const OpDef*> sequence_of_ops(const Graph& graph) {
  std::vector<const OpDef*> ops;
  for (const NodeId id : graph.topological_order()) ops.push_back(&graph.node(id).op());
  return ops;
}

// Rules are asked for the ops that a graph has: for those that come and go meanwhile, too.
TEST(RulePass, FollowsOpsThatRulesMake) {
  Graph graph;
  Var x = input(graph, DType::f32, {2}, "x");
  for (int i = 0; i < 3; ++i) x = tanh(exp(x));
  graph.add_output(x.id());
  const RulePass pass(kRules, {});
  EXPECT_TRUE(pass.run(graph, PassContext()));
  EXPECT_EQ(sequence_of_ops(graph), std::vector<const OpDef*>(3, &sigmoid_def()));
  EXPECT_FALSE(pass.run(graph, PassContext()));
}

}  // namespace
}  // namespace autograph
