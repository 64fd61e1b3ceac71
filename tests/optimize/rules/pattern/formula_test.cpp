// Formulas of patterns: what they match, and what stands for their variables.
#include "optimize/rules/pattern/formula.h"

#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "optimize/pass_testing.h"
#include "optimize/rules/rule.h"
#include "optimize/rules/rule_cases.h"

namespace autograph {
namespace {

// Near misses of formulas with other constants stand in fuse_activations_test.cpp.
const bool kAdded = add_rule_cases({
    {"activation.gelu", "x:2,3", "a = mul(x, 0.70710678); e = erf(a); f = add(e, 1); g = mul(x, f); y = mul(g, 0.5)"},
    {"activation.gelu_by_tanh", "x:2,3",
     "c = pow(x, 3); d = mul(c, 0.044715); s = add(x, d); u = mul(s, 0.79788456); t = tanh(u); f = add(t, 1);"
     " g = mul(x, 0.5); y = mul(f, g)"},
    {"activation.gelu_by_sigmoid", "x:5",
     "c = pow(x, 3); d = mul(c, 0.044715); s = add(x, d); u = mul(s, 1.5957691); t = sigmoid(u); y = mul(x, t)"},
    {"activation.swish", "x:2,1,3", "a = div(x, 2); s = sigmoid(a); y = mul(s, x)"},
    {"activation.swish", "x:2,3; z:2,3", "s = sigmoid(z); y = mul(s, x)", false},
    {"activation.swish", "x:2,3", "s = sigmoid(x); y = mul(s, x)", false, "s"},
    {"activation.swish_as_quotient", "x:2,3", "n = neg(x); e = exp(n); d = add(1, e); y = div(x, d)"},
    {"activation.hard_swish", "x:2,3", "s = add(x, 3); c = clip(s, 0, 6); p = mul(x, c); y = div(p, 6)"},
    {"activation.hard_swish", "x:2,3", "s = mul(x, 0.1666667); c = clip(s, 0, 1); y = mul(x, c)", false},
    {"activation.hard_swish_by_gate", "x:2,3", "g = hard_sigmoid[alpha=0.16666667, beta=0.5](x); y = mul(x, g)"},
    {"activation.mish", "x:2,3", "e = exp(x); d = add(1, e); l = log(d); t = tanh(l); y = mul(x, t)"},
    {"activation.mish_by_softplus", "x:2,3", "l = softplus(x); t = tanh(l); y = mul(x, t)"},
    {"activation.softplus", "x:2,3", "e = exp(x); d = add(1, e); y = log(d)"},
    {"activation.hard_sigmoid", "x:2,3", "s = mul(x, 0.2); c = clip(s, 0, 1)"},
    {"activation.hard_sigmoid", "x:2,3", "s = add(x, 3); c = clip(s, 0, 6); y = mul(c, 0.16666667)"},
    {"activation.hard_sigmoid", "x:2,3", "c = clip(x, 0, 1)", false},
    {"softmax.less_maximum", "x:2,3; $a:={-1}; $b:={1}",
     "m = reduce_max(x, b); d = sub(x, m); e = exp(d); s = reduce_sum(e, a); y = div(e, s)"},
    {"softmax.less_maximum", "x:2,3; $a:={-1}; $b:={0}",
     "m = reduce_max(x, b); d = sub(x, m); e = exp(d); s = reduce_sum(e, a); y = div(e, s)", false},
    {"softmax.of_exponentials", "x:2,3; $a:={0}", "e = exp(x); s = reduce_sum(e, a); r = reciprocal(s); y = mul(e, r)"},
    {"softmax.of_exponentials", "x:2,3; $a:={0,1}", "e = exp(x); s = reduce_sum(e, a); y = div(e, s)", false},
    {"simplification.add_zero", "x:2,3", "y = add(0, x)"},
    {"simplification.subtract_zero", "x:2,3", "y = sub(x, 0)"},
    {"simplification.subtract_zero", "x:2,3", "y = sub(0, x)", false},
    {"simplification.multiply_by_one", "x:2,3", "y = mul(1, x)"},
    {"simplification.divide_by_one", "x:2,3", "y = div(x, 1)"},
    {"simplification.first_power", "x:2,3", "y = pow(x, 1)"},
    {"simplification.relu_of_positive", "x:2,3", "e = sigmoid(x); y = relu(e)"},
    {"simplification.relu_of_positive", "x:2,3", "e = tanh(x); y = relu(e)", false},
    {"simplification.abs_of_positive", "x:2,3", "e = relu(x); y = abs(e)"},
    {"simplification.abs_of_positive", "x:2,3", "e = neg(x); y = abs(e)", false},
    {"simplification.neg_of_neg", "x:2,3", "e = neg(x); y = neg(e)", true, "e"},
    {"simplification.neg_of_neg", "x:2,3", "e = abs(x); y = neg(e)", false},
    {"simplification.cast_of_cast", "x:2,3", "e = cast[to=\"f64\"](x); y = cast[to=\"f16\"](e)"},
    {"simplification.cast_of_cast", "x:2,3", "e = cast[to=\"f16\"](x); y = cast[to=\"f32\"](e)", false},
    {"simplification.mean_as_global_pool", "x:2,3,4,5; $a:={-1,2}", "y = reduce_mean(x, a)"},
    {"simplification.mean_as_global_pool", "x:2,3,4; $a:={2}", "y = reduce_mean(x, a)", false},
    {"normalization.layer", "x:2,3; $a:={-1}",
     "m = reduce_mean(x, a); d = sub(x, m); v = mul(d, d); q = reduce_mean(v, a); w = add(q, 0.125); r = sqrt(w);"
     " y = div(d, r)"},
    {"normalization.layer", "x:2,3; $a:={0}",
     "m = reduce_mean(x, a); d = sub(x, m); v = mul(d, d); q = reduce_mean(v, a); w = add(q, 0.125); r = sqrt(w);"
     " y = div(d, r)",
     false},
    {"normalization.layer_multiplied_out", "x:2,3; $a:={-1}; $g:3; $c:3",
     "m = reduce_mean(x, a); d = sub(m, x); v = pow(d, 2); q = reduce_mean(v, a); w = add(q, 0.125); r = sqrt(w);"
     " i = reciprocal(r); s = mul(i, g); p = mul(x, s); o = mul(m, s); n = sub(c, o); y = add(p, n)"},
    {"normalization.layer_multiplied_out", "x:2,3; $a:={-1}; $g:2,1; $c:3",
     "m = reduce_mean(x, a); d = sub(m, x); v = pow(d, 2); q = reduce_mean(v, a); w = add(q, 0.125); r = sqrt(w);"
     " i = reciprocal(r); s = mul(i, g); p = mul(x, s); o = mul(m, s); n = sub(c, o); y = add(p, n)",
     false},
    {"normalization.layer_scale", "x:2,3; $o:=ones; s:1,3", "n = layer_normalization(x, o); y = mul(s, n)"},
    {"normalization.layer_scale", "x:2,3; $o:3; s:1,3", "n = layer_normalization(x, o); y = mul(s, n)", false},
    {"normalization.layer_bias", "x:2,3; $o:3; b:3", "n = layer_normalization[axis=1](x, o); y = add(b, n)"},
    {"normalization.layer_bias", "x:2,3; $o:3; b:2,3", "n = layer_normalization(x, o); y = add(b, n)", false},
    {"normalization.layer_in_f32", "x:2,3; $o:=ones",
     "h = cast[to=\"f16\"](x); w = cast[to=\"f32\"](h); n = layer_normalization(w, o); y = cast[to=\"f16\"](n)"},
    {"normalization.layer_in_f32", "x:2,3; $o:=ones", "n = layer_normalization(x, o); y = cast[to=\"f16\"](n)", false},
    {"normalization.rms", "x:2,3; $a:={-1}",
     "v = pow(x, 2); q = reduce_mean(v, a); w = add(q, 0.125); r = pow(w, -0.5); y = mul(x, r)"},
    {"normalization.rms", "x:2,3; $a:={-1}",
     "v = pow(x, 2); q = reduce_mean(v, a); w = sub(q, 0.125); r = pow(w, -0.5); y = mul(x, r)", false},
    {"normalization.rms_scale", "x:2,3; $o:=ones; s:1,3", "n = rms_normalization(x, o); y = mul(s, n)"},
    {"normalization.rms_scale", "x:2,3; $o:=ones; s:2,3", "n = rms_normalization(x, o); y = mul(s, n)", false},
    {"normalization.rms_in_f32", "x:2,3; $o:=ones",
     "h = cast[to=\"bf16\"](x); w = cast[to=\"f32\"](h); n = rms_normalization(w, o); y = cast[to=\"bf16\"](n)"},
    {"normalization.rms_in_f32", "x:2,3; $o:=ones",
     "h = cast[to=\"bf16\"](x); w = cast[to=\"f32\"](h); n = rms_normalization(w, o); y = cast[to=\"f16\"](n)", false},
});

Rule formula_rule(std::string_view before, std::string_view after) {
  return {.name = "test.formula",
          .before = before,
          .after = after,
          .outputs = {"y"},
          .kind = RuleClass::always_pays,
          .is_rounded = true};
}

std::vector<RuleMatch> matches_of(const Rule& rule, const Graph& graph) {
  const Rule* const rules[] = {&rule};
  return RuleMatcher(rules).find_all(graph);
}

TEST(Formulas, BindValuesAndNumbers) {
  const Rule rule = formula_rule("y = {#a * x * z + #b}", "y = add(x, z)");
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var z = input(graph, DType::f32, {2, 3}, "z");
  graph.add_output(sub(mul(mul(x, scalar(graph, 3)), div(z, scalar(graph, 2))), scalar(graph, 7)).id());
  const auto matches = matches_of(rule, graph);
  ASSERT_FALSE(matches.empty());
  EXPECT_EQ(matches.back().number("a"), 1.5);
  EXPECT_EQ(matches.back().number("b"), -7);
  EXPECT_EQ(matches.back().inner().size(), 3u);
}

TEST(Formulas, AMissingAddendIsZero) {
  const Rule rule = formula_rule("y = {x / sqrt(z + #e)}", "y = div(x, z)");
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var z = input(graph, DType::f32, {2, 3}, "z");
  graph.add_output(mul(x, reciprocal(sqrt(z))).id());
  graph.add_output(mul(x, pow(add(z, scalar(graph, 0.5F)), scalar(graph, -0.5F))).id());
  const auto matches = matches_of(rule, graph);
  ASSERT_EQ(matches.size(), 2u);
  EXPECT_EQ(matches[0].number("e"), 0);
  EXPECT_EQ(matches[1].number("e"), 0.5);
}

TEST(Formulas, ASquareRootOfASquareIsNotTheValue) {
  const Rule rule = formula_rule("y = {x * z}", "y = add(x, z)");
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var z = input(graph, DType::f32, {2, 3}, "z");
  graph.add_output(mul(sqrt(pow(x, scalar(graph, 2))), z).id());
  for (const RuleMatch& match : matches_of(rule, graph)) EXPECT_NE(match.value("x"), x.id());
}

TEST(Formulas, MatchSymbolicExtents) {
  const Rule& rule = get_rule("activation.swish");
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::symbol("n"), Dim::unknown(), 3}, "x");
  graph.add_output(mul(x, sigmoid(x)).id());
  Rule fixed = rule;
  fixed.kind = RuleClass::shrinks;
  EXPECT_EQ(matches_of(rule, graph).size(), 1u);
  EXPECT_TRUE(matches_of(fixed, graph).empty());
}

TEST(Formulas, ReadNothingThatOthersRead) {
  const Rule rule = formula_rule("y = {x + 2 * z}", "y = add(x, z)");
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var twice = mul(input(graph, DType::f32, {2, 3}, "z"), scalar(graph, 2));
  graph.add_output(add(x, twice).id());
  EXPECT_EQ(matches_of(rule, graph).size(), 1u);
  graph.add_output(twice.id());
  EXPECT_TRUE(matches_of(rule, graph).empty());
}

TEST(Formulas, MalformedOnesStop) {
  for (const std::string_view before :
       {"y = {x *}", "y = {x * (z}", "y = {nothing(x)}", "y = {0 * x}", "y = {x", "y = {x # a}"}) {
    const Rule rule = formula_rule(before, "y = relu(x)");
    EXPECT_THROW(matches_of(rule, Graph()), InternalError) << before;
  }
}

}  // namespace
}  // namespace autograph
