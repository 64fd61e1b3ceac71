// The verifier must pass right rules and catch wrong ones, each in exact arithmetic and in floats; axioms of the prover
// are rules too.
#include <gtest/gtest.h>

#include "ops/defs.h"
#include "prove/verify/proof_axioms.h"
#include "prove/verify/prove_rule.h"
#include "prove/verify/verify_rule.h"

namespace autograph {
namespace {

VerifyRulesOptions few_cases(size_t cases = 60) {
  VerifyRulesOptions options;
  options.cases = cases;
  options.exhaustive_limit = 300;
  options.smt = false;
  options.seconds = 300;  // cases are enough to end: instrumented builds are slow
  return options;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Found by exact arithmetic and by floats alike.
void expect_caught(const Rule& rule) {
  const RuleReport report = verify_rule(rule, few_cases());
  EXPECT_FALSE(report.is_verified()) << rule.name;
  EXPECT_GT(report.exact_failures, 0u) << rule.name << ": " << report.problem;
  EXPECT_GT(report.float_failures, 0u) << rule.name << ": " << report.problem;
  EXPECT_TRUE(contains(report.example, "graph")) << rule.name;
}

// Two convolutions of one input made one by stacking the filters: right for one group only.
std::vector<ValueId> merge_convs(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  const ValueId filters = builder.add(concat_def(), {builder.value("v"), builder.value("w")}, {{"axis", int64_t{0}}});
  const Attributes attributes{
      {"strides", match.attribute("s")}, {"pads", match.attribute("p")}, {"group", match.attribute("g")}};
  const ValueId both = builder.add(conv_def(), {builder.value("x"), filters}, attributes);
  const ValueId sizes = builder.integers({match.dims("v")[0], match.dims("w")[0]});
  return builder.add_all(split_def(), {both, sizes}, {{"axis", int64_t{1}}}, 2);
}

bool has_one_group(const RuleMatch& match) { return match.integer("g") == 1; }

Rule merge_rule() {
  return {.name = "test.merge_convs",
          .before = "a = conv[strides=s, pads=p, group=g](x, $v); b = conv[strides=s, pads=p, group=g](x, $w)",
          .after = "",
          .outputs = {"a", "b"},
          .build = merge_convs};
}

TEST(VerifyRules, PassesARightRuleAndCountsItsCases) {
  Rule rule = merge_rule();
  rule.guard_doc = "one group";
  rule.guard = has_one_group;
  const RuleReport report = verify_rule(rule, few_cases());
  EXPECT_EQ(report.problem, "") << report.example;
  EXPECT_GE(report.exact_cases, 60u);
  EXPECT_GE(report.float_cases, 60u);
  EXPECT_GT(report.refused_cases, 0u);  // more groups
  EXPECT_FALSE(report.exhaustive);
  EXPECT_EQ(report.smt, Proof::not_asked);
}

TEST(VerifyRules, CatchesMergedGroups) { expect_caught(merge_rule()); }

TEST(VerifyRules, CatchesADroppedFactor) {
  expect_caught({.name = "test.dropped_factor",
                 .before = "y = conv[pads=p](x, $w); z = mul(y, m)",
                 .after = "z = conv[pads=p](x, w)",
                 .outputs = {"z"}});
}

TEST(VerifyRules, CatchesPadsTheWrongWayRound) {
  const auto build = [](RuleBuilder& builder) {
    const std::vector<int64_t>& pads = builder.match().integers("p");
    const auto half = static_cast<ptrdiff_t>(pads.size() / 2);
    std::vector<int64_t> swapped(pads.begin() + half, pads.end());
    swapped.insert(swapped.end(), pads.begin(), pads.begin() + half);
    return std::vector{builder.add(conv_def(), {builder.value("x"), builder.value("w")}, {{"pads", swapped}})};
  };
  expect_caught({.name = "test.swapped_pads",
                 .before = "y = conv[pads=p](x, $w)",
                 .after = "",
                 .outputs = {"y"},
                 .build = build});
}

TEST(VerifyRules, CatchesReluTakenForLinear) {
  expect_caught({.name = "test.linear_relu",
                 .before = "s = add(x, y); z = relu(s)",
                 .after = "a = relu(x); b = relu(y); z = add(a, b)",
                 .outputs = {"z"}});
}

TEST(VerifyRules, CatchesMaxPoolTakenForLinear) {
  expect_caught({.name = "test.linear_max_pool",
                 .before = "s = add(x, y); z = max_pool[kernel_shape=k](s)",
                 .after = "a = max_pool[kernel_shape=k](x); b = max_pool[kernel_shape=k](y); z = add(a, b)",
                 .outputs = {"z"}});
}

TEST(VerifyRules, CatchesWhatHoldsForUnequalValuesOnly) {
  expect_caught({.name = "test.no_broadcast",
                 .before = "s = add(x, y); z = reduce_sum[keepdims=1](s, $a)",
                 .after = "b = reduce_sum[keepdims=1](x, a); c = reduce_sum[keepdims=1](y, a); z = add(b, c)",
                 .outputs = {"z"}});
}

TEST(VerifyRules, TriesFormulasInManySpellings) {
  Rule rule{.name = "test.swish",
            .before = "y = {x * sigmoid(#a * x)}",
            .after = "y = swish[alpha={#a}](x)",
            .outputs = {"y"},
            .kind = RuleClass::always_pays,
            .is_rounded = true};
  const RuleReport right = verify_rule(rule, few_cases());
  EXPECT_EQ(right.problem, "") << right.example;
  EXPECT_GE(right.float_cases, 60u);
  EXPECT_EQ(right.exact_cases, 0u);
  rule.after = "y = swish[alpha={#a / 2}](x)";
  EXPECT_TRUE(contains(verify_rule(rule, few_cases()).problem, "floats"));
}

TEST(VerifyRules, CatchesWhatForgetsNan) {
  // e^x / e^x is 1, but not of NaN; thresholded_relu gives 0 for that.
  Rule rule{.name = "test.quotient_of_equals", .before = "", .after = "", .outputs = {"y"}, .is_rounded = true};
  rule.before = "e = exp(x); y = div(e, e)";
  rule.after = "z = thresholded_relu[alpha=1000](x); e = exp(z); y = div(e, e)";
  EXPECT_TRUE(contains(verify_rule(rule, few_cases()).problem, "nan"));
}

TEST(VerifyRules, CatchesWhatIsWrongInAnotherDtype) {
  Rule rule{.name = "test.neg_of_half",
            .before = "y = neg(x)",
            .after = "",
            .outputs = {"y"},
            .build = [](RuleBuilder& builder) {
              const ValueId x = builder.value("x");
              const bool is_half = builder.type(x).dtype() == DType::f16;
              return std::vector{builder.add(is_half ? abs_def() : neg_def(), {x})};
            }};
  EXPECT_TRUE(contains(verify_rule(rule, few_cases()).problem, "in f16"));
}

TEST(VerifyRules, PassesWhatHoldsBecauseOfAnOrder) {
  const RuleReport report = verify_rule(
      {.name = "test.relu_twice", .before = "a = relu(x); b = relu(a)", .after = "b = relu(x)", .outputs = {"b"}},
      few_cases());
  EXPECT_EQ(report.problem, "");
  EXPECT_TRUE(report.on_integers);
  EXPECT_TRUE(report.exhaustive);
}

TEST(VerifyRules, ARuleThatNeverAppliesIsNotVerified) {
  Rule rule{.name = "test.never",
            .before = "a = relu(x)",
            .after = "a = tanh(x)",
            .outputs = {"a"},
            .guard_doc = "never",
            .guard = [](const RuleMatch&) { return false; }};
  const RuleReport report = verify_rule(rule, few_cases(20));
  EXPECT_TRUE(contains(report.problem, "applies to 0 of")) << report.problem;
  EXPECT_GT(report.refused_cases, 0u);
}

TEST(VerifyRules, AGuardThatStopsIsAProblem) {
  Rule rule{.name = "test.stops",
            .before = "a = relu(x)",
            .after = "a = relu(x)",
            .outputs = {"a"},
            .guard_doc = "a number that is not there",
            .guard = [](const RuleMatch& match) { return match.dims("x").at(7) == 1; }};
  EXPECT_TRUE(contains(verify_rule(rule, few_cases(20)).problem, "stops instead of refusing"));
}

TEST(VerifyRules, ReportsAreTheSameForASeed) {
  const RuleReport first = verify_rule(merge_rule(), few_cases());
  const RuleReport second = verify_rule(merge_rule(), few_cases());
  EXPECT_EQ(first.problem, second.problem);
  EXPECT_EQ(first.example, second.example);
  EXPECT_EQ(first.exact_cases, second.exact_cases);
}

// ---- The prover ------------------------------------------------------------------------------------------------

TEST(ProofAxioms, HoldExactly) {
  for (const ProofAxiom& axiom : proof_axioms()) {
    const RuleReport report = verify_rule(axiom.rule, few_cases(40));
    EXPECT_EQ(report.problem, "") << axiom.rule.name << "\n" << report.example;
  }
}

TEST(ProofAxioms, AWrongOneIsCaught) {
  expect_caught({.name = "axiom.matmul_commutes",
                 .before = "z = matmul(x, y); t = add(z, u)",
                 .after = "z = matmul(y, x); t = add(z, u)",
                 .outputs = {"t"}});
  // True for one group only.
  expect_caught({.name = "axiom.conv_of_channels_in_groups",
                 .before = "a = conv[group=g](x, v); b = conv[group=g](y, w); z = add(a, b)",
                 .after = "c = concat[axis=1](x, y); e = concat[axis=1](v, w); z = conv[group=g](c, e)",
                 .outputs = {"z"}});
}

Proof proof_of(const Rule& rule) {
  VerifyRulesOptions options = few_cases(20);
  options.smt = true;
  return verify_rule(rule, options).smt;
}

TEST(ProveRule, ProvesWhatFollowsFromTheAxioms) {
  const Proof proof = proof_of({.name = "test.factor",
                                .before = "a = matmul(x, $v); b = matmul(x, $w); c = add(a, b)",
                                .after = "s = add($v, $w); c = matmul(x, s)",
                                .outputs = {"c"}});
  if (proof == Proof::not_built) GTEST_SKIP() << "Z3 is not there";
  EXPECT_EQ(proof, Proof::proved);
  Rule merge = merge_rule();
  merge.guard_doc = "one group";
  merge.guard = has_one_group;
  EXPECT_EQ(proof_of(merge), Proof::proved);
}

TEST(ProveRule, DoesNotProveWhatIsWrong) {
  const Proof proof = proof_of({.name = "test.wrong",
                                .before = "a = matmul(x, y); b = add(a, z)",
                                .after = "s = add(y, z); b = matmul(x, s)",
                                .outputs = {"b"}});
  EXPECT_NE(proof, Proof::proved);
  EXPECT_NE(proof_of({.name = "test.uncovered", .before = "y = erf(x)", .after = "y = tanh(x)", .outputs = {"y"}}),
            Proof::proved);
}

// ---- All rules -------------------------------------------------------------------------------------------------

TEST(AllRules, AreVerified) {
  VerifyRulesOptions options = few_cases(20);
  options.threads = 2;
  const std::vector<RuleReport> reports = verify_rules(options);
  EXPECT_EQ(reports.size(), list_rules().size());
  for (const RuleReport& report : reports) {
    EXPECT_EQ(report.problem, "") << report.rule.name << "\n" << report.example;
    EXPECT_GE(report.exact_cases + report.float_cases, kMinCases) << report.rule.name;
  }
}

// The mark takes a test away: it is for rules alone of which infinities or NaN make something else.
TEST(AllRules, ThoseForFiniteNumbersAreWrongOfOthers) {
  for (const Rule& rule : all_rules()) {
    // The law of matmul.distribute_left in windows: 60,000 cases catch it, in half a minute.
    if (!rule.finite_only || rule.name == "conv.distribute_input") continue;
    Rule unmarked = rule;
    unmarked.finite_only = false;
    const RuleReport report = verify_rule(unmarked, few_cases(12000));
    EXPECT_NE(report.problem, "") << rule.name;
    EXPECT_EQ(report.exact_failures, 0u) << rule.name << ": " << report.problem;
  }
}

}  // namespace
}  // namespace autograph
