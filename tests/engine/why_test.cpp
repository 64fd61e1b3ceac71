// The ledger of a node: what made it, what was tried there and lost, and why.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/plan_file.h"
#include "autograph/search.h"
#include "support/graphs/deep_graphs.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

CompileOptions simulated() {
  CompileOptions options;
  options.device = "sim:v100";
  static const TestFolder kFolder;
  options.cache_folder = kFolder.path();
  return options;
}

SearchOptions asking(const std::string& node) {
  SearchOptions search;
  search.budget_seconds = 20;
  search.max_candidates = 100;
  search.rounds = 1;
  search.why = node;
  return search;
}

// x -> sigmoid((x v) w): the product of weights is one.
Graph two_products() {
  Graph graph("products");
  const Var x = input(graph, DType::f32, {64, 128}, "x");
  const auto times = [&](const char* scope_name, Var value, float element) {
    const ProvenanceScope scope(scope_name);
    return matmul(value, constant(graph, Tensor::of<float>({128, 128}, std::vector<float>(128 * 128, element))));
  };
  const Var y = times("second", times("first", x, 0.01F), 0.02F);
  const ProvenanceScope scope("last");
  graph.add_output(sigmoid(y).id(), "y");
  return graph;
}

TEST(Why, TellsTheRewritesThatMadeANode) {
  const Optimized found = optimize(two_products(), simulated(), asking("second/matmul"));
  ASSERT_TRUE(found.report.ledger.has_value());
  const NodeLedger& ledger = *found.report.ledger;
  EXPECT_EQ(ledger.node, "second/matmul");
  ASSERT_FALSE(ledger.became.empty());
  EXPECT_NE(ledger.became.front().find("second/matmul"), std::string::npos);
  ASSERT_FALSE(ledger.entries.empty());
  const LedgerEntry& made = ledger.entries.front();
  EXPECT_EQ(made.rule, "matmul.regroup_right");
  EXPECT_EQ(made.nodes, (std::vector<std::string>{"first/matmul", "second/matmul"}));
  EXPECT_EQ(made.fate, RewriteFate::kept);
  EXPECT_GT(made.predicted_us, 0);
  ASSERT_TRUE(made.measured_us.has_value());
  EXPECT_GT(*made.measured_us, 0);
  EXPECT_GE(made.shared_by, 1u);
  for (const LedgerEntry& entry : ledger.entries) {
    EXPECT_TRUE(std::count(entry.nodes.begin(), entry.nodes.end(), "second/matmul")) << entry.rule;
  }
}

TEST(Why, TellsWhatWasTriedAndLost) {
  // Of the ways to merge products of one input not all can be in the result.
  const Optimized found = optimize(deep_transformer(2), simulated(), asking("layer1/feed_forward/matmul"));
  const std::vector<LedgerEntry>& entries = found.report.ledger->entries;
  const auto num_lost = std::count_if(entries.begin(), entries.end(),
                                      [](const LedgerEntry& entry) { return entry.fate != RewriteFate::kept; });
  EXPECT_GT(num_lost, 0);
  bool is_behind = false;  // kept ones come first
  for (const LedgerEntry& entry : entries) {
    EXPECT_FALSE(is_behind && entry.fate == RewriteFate::kept);
    is_behind = is_behind || entry.fate != RewriteFate::kept;
    EXPECT_EQ(entry.measured_us.has_value(), entry.fate == RewriteFate::kept || entry.fate == RewriteFate::lost_trial)
        << entry.rule << ": " << to_string(entry.fate);
    EXPECT_GE(entry.times, 1u);
  }
}

// Blocks that are equal are searched once: the one that was asked about is the one that is searched.
TEST(Why, KnowsEveryOneOfEqualBlocks) {
  for (const char* node : {"layer0/feed_forward/matmul", "layer1/feed_forward/matmul", "layer2/feed_forward/matmul"}) {
    const Optimized found = optimize(deep_transformer(3), simulated(), asking(node));
    EXPECT_FALSE(found.report.ledger->entries.empty()) << node;
  }
}

// What is computed ahead, gives back what it reads, or is computed elsewhere, runs no more.
Graph with_removable_nodes() {
  Graph graph("removable");
  const Var x = input(graph, DType::f32, {64, 128}, "x");
  const auto in_scope = [&](const char* scope_name, const auto& make) {
    const ProvenanceScope scope(scope_name);
    return make();
  };
  const Var copied = in_scope("copy", [&] { return identity(x); });
  const Var table =
      in_scope("table", [&] { return exp(constant(graph, Tensor::of<float>({128}, std::vector<float>(128, 0.5F)))); });
  const Var product = in_scope("product", [&] { return mul(sigmoid(copied), table); });
  graph.add_output(product.id(), "y");
  return graph;
}

TEST(Why, TellsWhatRemovedANode) {
  const auto ledger_of = [](const std::string& node) {
    return *optimize(with_removable_nodes(), simulated(), asking(node)).report.ledger;
  };
  const NodeLedger copy = ledger_of("copy/identity");
  EXPECT_TRUE(copy.became.empty());
  EXPECT_EQ(copy.removed_by, "pass eliminate_identity (Remove nodes that give back their input.)");
  EXPECT_EQ(ledger_of("table/exp").removed_by, "pass fold_constants (Compute what depends on constants alone.)");
  const NodeLedger product = ledger_of("product/mul");
  EXPECT_FALSE(product.became.empty());
  EXPECT_EQ(product.removed_by, "");
}

TEST(Why, TakesNamesOfOutputsAndJoinedNames) {
  const Graph graph = two_products();
  EXPECT_NO_THROW(require_node(graph, "last/sigmoid"));
  EXPECT_NO_THROW(require_node(graph, "first/matmul + second/matmul"));
  EXPECT_EQ(message_of<ValueError>([&] { require_node(graph, "secnd/matmul"); }),
            "[search] node: the model has no node 'secnd/matmul' (did you mean 'second/matmul'?)");
}

TEST(Why, NobodyAskedMeansNoLedger) {
  EXPECT_FALSE(optimize(two_products(), simulated(), asking("")).report.ledger.has_value());
}

TEST(Why, PlansKeepWhatTrialsTook) {
  const Optimized found = optimize(two_products(), simulated(), asking(""));
  ASSERT_FALSE(found.report.trials.empty());
  const TestFolder folder;
  const std::string path = folder / "why.agplan";
  save_plan(make_plan(found, simulated(), "factors", 0), path);
  const std::vector<TrialResult> trials = load_plan(path).optimized.report.trials;
  ASSERT_EQ(trials.size(), found.report.trials.size());
  for (size_t i = 0; i < trials.size(); ++i) {
    EXPECT_EQ(trials[i].predicted_us, found.report.trials[i].predicted_us);
    EXPECT_EQ(trials[i].latency_ms, found.report.trials[i].latency_ms);
    EXPECT_EQ(trials[i].accepted, found.report.trials[i].accepted);
    EXPECT_TRUE(trials[i].is_right);
  }
}

}  // namespace
}  // namespace autograph
