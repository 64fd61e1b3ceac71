// The matcher against one that tries everything, what it says about its matches, and applying many rules in a row.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "optimize/match.h"
#include "optimize/pass_testing.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/rule.h"
#include "optimize/rules/rule_cases.h"
#include "support/graphs/random_graph.h"

namespace autograph {
namespace {

using NodeSet = std::set<uint32_t>;

// Tries every assignment of nodes to statements and of operands to variables.
class BruteForce {
 public:
  BruteForce(const Graph& graph, const Rule& rule) : graph_(graph), pattern_(parse_pattern(rule.before)), rule_(rule) {}

  std::set<NodeSet> find() {
    values_.assign(pattern_.values.size(), ValueId{});
    assign(0);
    return found_;
  }

 private:
  void assign(size_t statement) {
    if (statement == pattern_.statements.size()) return finish();
    for (const NodeId node : graph_.nodes()) {
      if (std::find(nodes_.begin(), nodes_.end(), node) != nodes_.end()) continue;
      const std::vector<ValueId>& inputs = graph_.node(node).inputs();
      std::vector<ValueId> swapped = inputs;
      try_node(statement, node, inputs);
      if (!graph_.node(node).op().traits.commutative || swapped.size() < 2) continue;
      std::swap(swapped[0], swapped[1]);
      try_node(statement, node, swapped);
    }
  }

  void try_node(size_t index, NodeId id, const std::vector<ValueId>& inputs) {
    const PatternStatement& s = pattern_.statements[index];
    const Node& node = graph_.node(id);
    if (s.op ? &node.op() != s.op : !is_in_class(s.op_class, node)) return;
    if (inputs.size() != s.inputs.size() || node.outputs().size() != s.outputs.size()) return;
    const std::vector<ValueId> saved = values_;
    bool fits = true;
    for (size_t slot = 0; slot < inputs.size(); ++slot) {
      fits = fits && s.inputs[slot].kind == PatternOperand::Kind::value && bind(s.inputs[slot].value, inputs[slot]);
    }
    for (size_t slot = 0; slot < s.outputs.size(); ++slot) fits = fits && bind(s.outputs[slot], node.output(slot));
    if (fits) {
      nodes_.push_back(id);
      assign(index + 1);
      nodes_.pop_back();
    }
    values_ = saved;
  }

  bool bind(int variable, ValueId value) {
    ValueId& bound = values_[static_cast<size_t>(variable)];
    if (bound.is_valid()) return bound == value;
    bound = value;
    return true;
  }

  bool is_output(size_t variable) const {
    return std::find(rule_.outputs.begin(), rule_.outputs.end(), pattern_.values[variable].name) != rule_.outputs.end();
  }

  void finish() {
    for (size_t v = 0; v < values_.size(); ++v) {
      const PatternValue& variable = pattern_.values[v];
      if (variable.is_weight && !is_weight(graph_, values_[v])) return;
      if (variable.statement < 0 || is_output(v)) continue;
      if (graph_.num_output_uses(values_[v]) > 0) return;
      for (const Use& use : graph_.value(values_[v]).uses()) {
        if (std::find(nodes_.begin(), nodes_.end(), use.node) == nodes_.end()) return;
      }
    }
    NodeSet set;
    for (const NodeId node : nodes_) set.insert(node.index);
    found_.insert(set);
  }

  const Graph& graph_;
  const Pattern pattern_;
  const Rule& rule_;
  std::vector<NodeId> nodes_;
  std::vector<ValueId> values_;
  std::set<NodeSet> found_;
};

// A random graph of elementwise ops and products on 3x3 matrices: everything fits everything. With fewer kinds of nodes
// patterns occur more often.
Graph dense_graph(Random& random, int num_nodes, int kinds = 10) {
  Graph graph("dense");
  std::vector<Var> values;
  for (int i = 0; i < 3; ++i) values.push_back(input(graph, DType::f32, {3, 3}, "x" + std::to_string(i)));
  for (int i = 0; i < 2; ++i) values.push_back(constant(graph, draw_tensor(random, DType::f32, {3, 3}, -0.6, 0.6)));
  const auto draw_value = [&] {
    // Values that nobody reads yet are likely, so that chains come about; the others are shared.
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Var value = values[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(values.size()) - 1))];
      if (graph.value(value.id()).uses().empty()) return value;
    }
    return values[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(values.size()) - 1))];
  };
  for (int i = 0; i < num_nodes; ++i) {
    const Var a = draw_value();
    const Var b = draw_value();
    switch (draw(random, 0, kinds - 1)) {
      case 0:
      case 4: values.push_back(add(a, b)); break;
      case 1:
      case 5: values.push_back(mul(a, b)); break;
      case 2:
      case 6: values.push_back(matmul(a, b)); break;
      case 3: values.push_back(tanh(a)); break;
      case 7: values.push_back(sub(a, b)); break;
      case 8: values.push_back(transpose(a, {1, 0})); break;
      default: values.push_back(relu(a)); break;
    }
  }
  for (const Var& value : values) {
    if (graph.value(value.id()).uses().empty() && !graph.value(value.id()).is_constant()) {
      graph.add_output(tanh(value).id());
    }
  }
  return graph;
}

// Plain patterns of all kinds; replacements do not matter here.
const std::vector<Rule>& plain_rules() {
  static const std::vector<Rule> rules{
      {.name = "t.chain", .before = "s = add(x, y); t = mul(s, z)", .after = "t = add(x, z)", .outputs = {"t"}},
      {.name = "t.tree",
       .before = "s = mul(c, x); t = mul(c, y); v = add(s, t)",
       .after = "v = sub(c, x)",
       .outputs = {"v"}},
      {.name = "t.siblings",
       .before = "s = matmul(x, v); t = matmul(x, w)",
       .after = "s = add(x, v); t = add(x, w)",
       .outputs = {"s", "t"}},
      {.name = "t.weight",
       .before = "s = matmul(x, $w); t = matmul(y, $w)",
       .after = "s = add(x, w); t = add(y, w)",
       .outputs = {"s", "t"}},
      {.name = "t.twice", .before = "s = mul(x, x); t = add(s, x)", .after = "t = sub(x, x)", .outputs = {"t"}},
      {.name = "t.classes",
       .before = "s = unary<f>(x); t = binary<g>(s, y)",
       .after = "t = add(x, y)",
       .outputs = {"t"}},
      {.name = "t.pair",
       .before = "s = unary<f>(x); t = unary<g>(x); v = add(s, t)",
       .after = "v = add(x, x)",
       .outputs = {"v"}},
      {.name = "t.kept", .before = "s = add(x, y); t = sub(s, y)", .after = "s = x; t = x", .outputs = {"s", "t"}},
  };
  return rules;
}

std::vector<const Rule*> pointers(std::span<const Rule> rules) {
  std::vector<const Rule*> list;
  for (const Rule& rule : rules) list.push_back(&rule);
  return list;
}

NodeSet nodes_of(const RuleMatch& match) {
  NodeSet set;
  for (const NodeId node : match.nodes()) set.insert(node.index);
  return set;
}

bool is_all_weight(const Graph& graph, const NodeSet& set) {
  return std::all_of(set.begin(), set.end(),
                     [&](uint32_t node) { return is_weight(graph, graph.node(NodeId{node}).output(0)); });
}

// ---- Finding ------------------------------------------------------------------------------------------------------

TEST(RuleMatcher, FindsWhatTryingEverythingFinds) {
  Random random(17);
  size_t total = 0;
  for (int round = 0; round < 200; ++round) {
    const Graph graph = dense_graph(random, 16, round % 2 == 0 ? 4 : 10);
    for (const Rule& rule : plain_rules()) {
      std::set<NodeSet> expected = BruteForce(graph, rule).find();
      std::erase_if(expected, [&](const NodeSet& set) { return is_all_weight(graph, set); });
      const Rule* const one[] = {&rule};
      std::set<NodeSet> found;
      for (const RuleMatch& match : RuleMatcher(one).find_all(graph)) found.insert(nodes_of(match));
      EXPECT_EQ(found, expected) << rule.name << " on\n" << print_text(graph);
      total += found.size();
    }
  }
  EXPECT_GT(total, 300u);
}

TEST(RuleMatcher, FindsNearWhatItFindsEverywhere) {
  Random random(23);
  const RuleMatcher matcher(pointers(plain_rules()));
  for (int round = 0; round < 40; ++round) {
    const Graph graph = dense_graph(random, 14, 4);
    const std::vector<RuleMatch> all = matcher.find_all(graph);
    for (const NodeId node : graph.nodes()) {
      const auto key = [](const RuleMatch& match) { return std::pair(match.rule().name, nodes_of(match)); };
      std::set<std::pair<std::string_view, NodeSet>> expected;
      for (const RuleMatch& match : all) {
        if (nodes_of(match).count(node.index)) expected.insert(key(match));
      }
      std::set<std::pair<std::string_view, NodeSet>> found;
      const NodeId one[] = {node};
      for (const RuleMatch& match : matcher.find_near(graph, one)) found.insert(key(match));
      EXPECT_EQ(found, expected);
    }
  }
}

TEST(RuleMatcher, ReportsSymmetricMatchesOnce) {
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 3}, "x");
  for (int i = 0; i < 3; ++i) graph.add_output(matmul(x, input(graph, DType::f32, {3, 3}, "w")).id());
  const Rule* const siblings[] = {&plain_rules()[2]};
  EXPECT_EQ(RuleMatcher(siblings).find_all(graph).size(), 3u);
}

TEST(RuleMatcher, ReportsResultsThatDifferApart) {
  const RuleCase chain{"arithmetic.regroup_add", "x:2,3; y:2,3; z:2,3", "s = add(x, y); t = add(s, z)"};
  const Graph graph = make_case_graph(chain);
  const Rule* const rules[] = {&get_rule(chain.rule)};
  // x + (y + z) and y + (x + z).
  EXPECT_EQ(RuleMatcher(rules).find_all(graph).size(), 2u);
}

TEST(RuleMatcher, LeavesAloneWhatWillBeComputedAhead) {
  const RuleCase weights{"arithmetic.regroup_add", "$x:2,3; $y:2,3; $z:2,3", "s = add(x, y); t = add(s, z)"};
  const Rule* const rules[] = {&get_rule(weights.rule)};
  EXPECT_TRUE(RuleMatcher(rules).find_all(make_case_graph(weights)).empty());
}

TEST(RuleMatcher, NeedsStaticTypesAndTheDtypesOfTheRule) {
  const Rule& rule = get_rule("arithmetic.factor_sum");
  const Rule* const rules[] = {&rule};
  const auto count = [&](DType dtype, const Shape& shape) {
    Graph graph;
    const Var c = input(graph, dtype, shape, "c");
    const Var x = input(graph, dtype, shape, "x");
    graph.add_output(add(mul(c, x), mul(c, input(graph, dtype, shape, "y"))).id());
    return RuleMatcher(rules).find_all(graph).size();
  };
  EXPECT_EQ(count(DType::f64, {2, 3}), 1u);
  EXPECT_EQ(count(DType::i32, {2, 3}), 0u);
  EXPECT_EQ(count(DType::f32, {Dim::symbol("batch"), 3}), 0u);
}

TEST(RuleMatcher, ReadsAttributesByWhatTheyMean) {
  static const Rule rule{.name = "t.attributes",
                         .before = "y = conv[strides=1, pads=p, group=1](x, $w)",
                         .after = "y = conv[pads=p](x, w)",
                         .outputs = {"y"}};
  const Rule* const rules[] = {&rule};
  const auto pads = [&](const RuleCase& text) -> std::optional<std::vector<int64_t>> {
    const Graph graph = make_case_graph(text);
    const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
    if (matches.empty()) return std::nullopt;
    return matches.front().integers("p");
  };
  const std::string_view values = "x:1,2,5; $w:2,2,3";
  EXPECT_EQ(pads({"t", values, "y = conv(x, w)"}), (Dims{0, 0}));
  EXPECT_EQ(pads({"t", values, "y = conv[strides=[1], dilations=[1]](x, w)"}), (Dims{0, 0}));
  EXPECT_EQ(pads({"t", values, "y = conv[auto_pad=\"SAME_UPPER\"](x, w)"}), (Dims{1, 1}));
  EXPECT_EQ(pads({"t", values, "y = conv[pads=[1,0], kernel_shape=[3]](x, w)"}), (Dims{1, 0}));
  EXPECT_EQ(pads({"t", values, "y = conv[strides=[2]](x, w)"}), std::nullopt);
  EXPECT_EQ(pads({"t", values, "y = conv[dilations=[2]](x, w)"}), std::nullopt);
}

TEST(RuleMatch, AnswersAboutVariables) {
  const RuleCase text{"arithmetic.factor_sum", "c:3; x:2,3; y:2,1", "s = mul(c, x); t = mul(y, c); v = add(s, t)"};
  const Graph graph = make_case_graph(text);
  const Rule* const rules[] = {&get_rule(text.rule)};
  const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
  ASSERT_EQ(matches.size(), 1u);
  EXPECT_EQ(matches[0].value("c"), graph.inputs()[0]);
  EXPECT_EQ(matches[0].dims("v"), (Dims{2, 3}));
  EXPECT_EQ(matches[0].nodes().size(), 3u);
  EXPECT_THROW(matches[0].value("q"), InternalError);
  EXPECT_THROW(matches[0].attribute("q"), InternalError);
}

TEST(Rules, UnknownNamesAreUserErrorsWithTheNearest) {
  try {
    get_rule("arithmetic.factor_sun");
    FAIL() << "found";
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'arithmetic.factor_sum'"), std::string::npos);
  }
}

TEST(Rules, HaveNamesOfTheirOwnAndParse) {
  std::set<std::string_view> names;
  for (const Rule& rule : all_rules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_NO_THROW(CompiledRule{rule}) << rule.name;
  }
  EXPECT_GT(names.size(), 80u);
}

// ---- Applying -----------------------------------------------------------------------------------------------------

TEST(ApplyRule, RefusesACycleAndLeavesTheGraphAsItWas) {
  // Both products share x; the second one's weight is made of the first product.
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 3}, "x");
  const Var s = matmul(x, input(graph, DType::f32, {3, 3}, "v"));
  graph.add_output(matmul(x, relu(s)).id(), "t");
  const Rule* const rules[] = {&get_rule("matmul.merge_columns_of_values")};
  const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
  ASSERT_EQ(matches.size(), 1u);
  const std::string text = print_text(graph);
  EXPECT_FALSE(apply_rule(graph, matches[0]));
  EXPECT_EQ(print_text(graph), text);
  EXPECT_EQ(graph.constants().size(), 0u);
  verify(graph);
}

TEST(ApplyRule, RefusesAMatchThatIsNoLongerThere) {
  const RuleCase text{"arithmetic.factor_sum", "c:3; x:2,3; y:2,1", "s = mul(c, x); t = mul(y, c); v = add(s, t)"};
  Graph graph = make_case_graph(text);
  const Rule* const rules[] = {&get_rule(text.rule)};
  const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
  Graph changed = graph;
  changed.set_input(matches[0].nodes()[0], 0, changed.inputs()[1]);
  EXPECT_FALSE(apply_rule(changed, matches[0]));
  ASSERT_TRUE(apply_rule(graph, matches[0]));
  EXPECT_FALSE(apply_rule(graph, matches[0]));
  verify(graph);
}

TEST(ApplyRule, TellsWhatItChangedAndRemovesWeightsThatNobodyReads) {
  const RuleCase text{"matmul.merge_columns", "x:2,3; $u:3,4; $v:3,2; $w:3,1",
                      "a = matmul(x, u); b = matmul(x, v); c = matmul(x, w)"};
  Graph graph = make_case_graph(text);
  const Rule* const rules[] = {&get_rule(text.rule)};
  const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
  ASSERT_EQ(matches.size(), 1u);
  const auto effect = apply_rule(graph, matches[0]);
  ASSERT_TRUE(effect);
  EXPECT_EQ(effect->removed.size(), 3u);
  EXPECT_EQ(effect->added.size(), 3u);  // concat of weights, product, split
  EXPECT_EQ(effect->replacements.size(), 3u);
  EXPECT_EQ(ops_of(graph), "concat matmul split");
  EXPECT_EQ(graph.output_name(2), "c");
  EXPECT_EQ(graph.value(graph.outputs()[0]).name(), graph.value(effect->replacements[0]).name());
  for (const NodeId node : effect->touched) EXPECT_TRUE(graph.is_live(node));
}

// c x + y c, `blocks` times with one constant c, of which the first is factored: how many nodes may match otherwise
// now.
size_t num_touched_by_factoring_one_of(int blocks) {
  Graph graph;
  const Var c = constant(graph, Tensor::of<float>({3}, {2, 3, 4}));
  for (int k = 0; k < blocks; ++k) {
    const Var x = input(graph, DType::f32, {2, 3}, "");
    const Var y = input(graph, DType::f32, {2, 3}, "");
    graph.add_output(add(mul(c, x), mul(y, c)).id());
  }
  const Rule* const rules[] = {&get_rule("arithmetic.factor_sum")};
  const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
  EXPECT_EQ(matches.size(), static_cast<size_t>(blocks));
  const auto effect = apply_rule(graph, matches.front());
  EXPECT_TRUE(effect);
  return effect ? effect->touched.size() : 0;
}

TEST(ApplyRule, ReadersOfAConstantThatManyShareAreLeftAlone) {
  EXPECT_EQ(num_touched_by_factoring_one_of(4), 2u + 6u);  // what came, and all readers of c
  EXPECT_EQ(num_touched_by_factoring_one_of(200), 2u);
}

TEST(ApplyRule, KeepsTheOriginsOfAllThatItReplaces) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  for (const char* name : {"q", "k", "v"}) {
    const ProvenanceScope scope(name);
    graph.add_output(matmul(x, constant(graph, Tensor::zeros(DType::f32, {3, 3}))).id());
  }
  const Rule* const rules[] = {&get_rule("matmul.merge_columns")};
  const auto effect = apply_rule(graph, RuleMatcher(rules).find_all(graph).front());
  ASSERT_TRUE(effect);
  EXPECT_EQ(graph.node(effect->added.back()).provenance().origins().size(), 3u);
}

TEST(ApplyRule, MakesThreeProductsOfARecurrentNet) {
  // SRU: x_t W1, x_t W2, x_t W3 for each of 6 steps, then c = f c + f u.
  Graph graph;
  Random random(4);
  std::vector<Var> weights;
  for (int i = 0; i < 3; ++i) weights.push_back(constant(graph, draw_tensor(random, DType::f32, {4, 4}, -0.5, 0.5)));
  Var cell = input(graph, DType::f32, {1, 1, 4}, "c");
  for (int step = 0; step < 6; ++step) {
    const Var x = input(graph, DType::f32, {1, 1, 4}, "x" + std::to_string(step));
    const Var f = sigmoid(matmul(x, weights[1]));
    cell = add(mul(f, cell), mul(f, matmul(x, weights[0])));
    graph.add_output(mul(sigmoid(matmul(x, weights[2])), cell).id());
  }
  const Graph before = graph;
  const auto apply_first = [&](std::string_view name) {
    const Rule* const rules[] = {&get_rule(name)};
    const std::vector<RuleMatch> matches = RuleMatcher(rules).find_all(graph);
    return !matches.empty() && apply_rule(graph, matches.front()).has_value();
  };
  int rows = 0;
  while (apply_first("matmul.merge_rows")) ++rows;
  EXPECT_EQ(rows, 3);
  EXPECT_TRUE(apply_first("matmul.merge_columns"));  // all three read one concat
  while (apply_first("arithmetic.factor_sum")) {
  }
  const std::string ops = ops_of(graph);
  EXPECT_EQ(ops.find("matmul"), ops.rfind("matmul")) << ops;
  verify(graph);
  EXPECT_EQ(numeric_difference(before, graph, random), "");
}

Graph make_square_product(int64_t extent) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape::of({extent, extent}), "x");
  const Var w = constant(graph, Tensor::zeros(DType::f32, {extent, extent}));
  graph.add_output(matmul(x, w).id(), "y");
  return graph;
}

TEST(Matcher, IsSilentWhereARuleCannotPay) {
  const Rule& rule = get_rule("matmul.seven_products");
  const Rule anywhere = wherever_true(rule);
  const auto count = [](const Rule& of, const Graph& graph) {
    const Rule* const rules[] = {&of};
    return RuleMatcher(rules).find_all(graph).size();
  };
  EXPECT_EQ(count(rule, make_square_product(2048)), 1U);
  EXPECT_EQ(count(rule, make_square_product(1024)), 0U);
  EXPECT_EQ(count(anywhere, make_square_product(1024)), 1U);
}

TEST(Rules, SearchesOfExactPlansLeaveOutWhatLosesDigits) {
  const auto has = [](const std::vector<const Rule*>& rules) {
    return std::find(rules.begin(), rules.end(), &get_rule("matmul.seven_products")) != rules.end();
  };
  EXPECT_TRUE(has(rules_for_search()));
  EXPECT_FALSE(has(rules_for_search(/*exact=*/true)));
}

// Applies up to `steps` random matches, looking for new ones near what changed alone.
size_t rewrite_at_random(Graph& graph, Random& random, int steps) {
  static const RuleMatcher matcher(pointers(all_rules()));
  size_t applied = 0;
  for (int step = 0; step < steps && graph.num_nodes() < 60; ++step) {
    const std::vector<RuleMatch> matches = matcher.find_all(graph);
    if (matches.empty()) break;
    const auto index = static_cast<size_t>(draw(random, 0, static_cast<int64_t>(matches.size()) - 1));
    const std::string text = print_text(graph);
    const auto effect = apply_rule(graph, matches[index]);
    if (!effect) {
      EXPECT_EQ(print_text(graph), text) << matches[index].rule().name;
      continue;
    }
    EXPECT_NO_THROW(verify(graph)) << matches[index].rule().name << " on\n" << text;
    ++applied;
  }
  return applied;
}

TEST(ApplyRule, ManyInARowKeepTheNumbers) {
  Random random(31);
  size_t applied = 0;
  for (int round = 0; round < 30; ++round) {
    const Graph before = dense_graph(random, 16);
    Graph after = before;
    applied += rewrite_at_random(after, random, 25);
    EXPECT_EQ(numeric_difference(before, after, random, {5e-3, 5e-3}), "") << print_text(before);
  }
  EXPECT_GT(applied, 400u);
}

TEST(ApplyRule, ManyInARowOnTheCasesOfAllRulesKeepTheNumbers) {
  Random random(37);
  size_t applied = 0;
  for (const RuleCase& rule_case : all_rule_cases()) {
    const Graph before = make_case_graph(rule_case);
    Graph after = before;
    applied += rewrite_at_random(after, random, 6);
    EXPECT_EQ(numeric_difference(before, after, random, {5e-3, 5e-3}), "") << rule_case.rule << " " << rule_case.text;
  }
  EXPECT_GT(applied, 300u);
}

TEST(ApplyRule, FindNearTouchedNodesMissesNothing) {
  // What is known from before, as far as it still holds, and what is near a change are all there is.
  Random random(41);
  const RuleMatcher matcher(pointers(all_rules()));
  for (int round = 0; round < 20; ++round) {
    Graph graph = dense_graph(random, 12);
    std::vector<RuleMatch> known = matcher.find_all(graph);
    for (int step = 0; step < 8 && !known.empty(); ++step) {
      const auto index = static_cast<size_t>(draw(random, 0, static_cast<int64_t>(known.size()) - 1));
      const auto effect = apply_rule(graph, known[index]);
      if (!effect) continue;
      std::erase_if(known, [](const RuleMatch& match) { return !match.still_holds(); });
      for (RuleMatch& match : matcher.find_near(graph, effect->touched)) known.push_back(std::move(match));
      std::set<std::pair<std::string_view, NodeSet>> have;
      for (const RuleMatch& match : known) have.insert({match.rule().name, nodes_of(match)});
      for (const RuleMatch& match : matcher.find_all(graph)) {
        if (match.rule().looks_around) continue;
        EXPECT_TRUE(have.count({match.rule().name, nodes_of(match)})) << match.rule().name;
      }
    }
  }
}

}  // namespace
}  // namespace autograph
