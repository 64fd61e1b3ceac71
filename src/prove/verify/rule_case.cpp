#include "prove/verify/rule_case.h"

#include <algorithm>
#include <limits>

#include "autograph/random.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"
#include "prove/verify/float_case.h"

namespace autograph {
namespace {

constexpr int kExactRuns = 2;    // with inputs from the whole field
constexpr int kIntegerRuns = 4;  // with small integers
constexpr size_t kMaxMatches = 4;

Dims input_dims(const Graph& graph, size_t i) { return graph.type(graph.inputs()[i]).shape().static_dims(); }

// Anything of the field; for functions on integers those from -9 to 9, so that products stay small.
std::vector<Tensor> exact_inputs(const Graph& graph, Functions functions, Random& random) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (const DType dtype = graph.type(graph.inputs()[i]).dtype(); dtype == DType::i64) {
      inputs.push_back(draw_indices(input_dims(graph, i), random));
      continue;
    }
    inputs.push_back(make_exact(input_dims(graph, i), [&] {
      if (functions == Functions::opaque) return random() % kPrime;
      return field_of(static_cast<int64_t>(random() % 19) - 9);
    }));
  }
  return inputs;
}

// Position of the first output and element that differ; "" when there is none.
std::string exact_difference(const std::vector<Tensor>& before, const std::vector<Tensor>& after) {
  for (size_t o = 0; o < before.size(); ++o) {
    if (before[o].dims() != after[o].dims()) {
      return fmt::format("output {}: shape {} became {}", o, to_string(before[o].dims()), to_string(after[o].dims()));
    }
    if (before[o].bitwise_equal(after[o])) continue;
    return fmt::format("output {} {} differs modulo the prime", o, to_string(before[o].dims()));
  }
  return "";
}

bool has_integer_functions(const Graph& graph) {
  const auto nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](NodeId id) { return is_exact_on_integers_only(graph.node(id).op()); });
}

std::string compare_exactly(const Graph& before, const Graph& after, Functions functions, Random& random) {
  const int runs = functions == Functions::opaque ? kExactRuns : kIntegerRuns;
  for (int run = 0; run < runs; ++run) {
    const std::vector<Tensor> inputs = exact_inputs(before, functions, random);
    const ExactOptions options{functions};
    const std::string difference =
        exact_difference(run_exact(before, inputs, options), run_exact(after, inputs, options));
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string exact_problem(CaseResult& result, const Graph& before, const Graph& after, Random& random) {
  std::string difference = compare_exactly(before, after, Functions::opaque, random);
  if (!difference.empty() && has_integer_functions(before)) {
    result.on_integers = true;
    difference = compare_exactly(before, after, Functions::on_integers, random);
  }
  ++result.exact;
  result.exact_failures += !difference.empty();
  return difference.empty() ? "" : "exact: " + difference;
}

std::string float_problem(CaseResult& result, const Graph& before, const Graph& after, const FloatComparison& how,
                          Random& random) {
  const std::string difference = compare_floats(before, after, how, random);
  ++result.floats;
  result.float_failures += !difference.empty();
  return difference.empty() ? "" : "floats: " + difference;
}

void add_problem(CaseResult& result, const std::string& problem) {
  if (!problem.empty()) result.problem += (result.problem.empty() ? "" : "; ") + problem;
}

// What two graphs are compared by.
struct Comparison {
  bool exactly = true;
  std::vector<Elements> elements{Elements::ordinary};
  double least_epsilon = 0;
};

// Rounded constants and attributes have the digits of f32.
Comparison comparison_of(const Rule& rule) {
  return {.exactly = !rule.is_rounded, .least_epsilon = rule.is_rounded ? std::numeric_limits<float>::epsilon() : 0};
}

void compare_into(CaseResult& result, const Graph& before, const Graph& after, const std::vector<bool>& positive,
                  uint64_t seed, const Comparison& how) {
  Random random(seed);
  try {
    if (how.exactly) add_problem(result, exact_problem(result, before, after, random));
  } catch (const UnsupportedError&) {
  }
  try {
    for (const Elements elements : how.elements) {
      add_problem(result, float_problem(result, before, after, {positive, elements, how.least_epsilon}, random));
    }
  } catch (const UnsupportedError&) {
  }
}

bool types_are_kept(CaseResult& result, const Graph& before, const Graph& after) {
  for (size_t o = 0; o < after.outputs().size(); ++o) {
    const Type& was = before.type(before.outputs()[o]);
    const Type& is = after.type(after.outputs()[o]);
    if (was == is) continue;
    result.problem = fmt::format("type of output {}: expected {}, got {}", o, to_string(was), to_string(is));
    return false;
  }
  return true;
}

void check_match(CaseResult& result, const RuleMatch& match, const Graph& before, const std::vector<bool>& positive,
                 uint64_t seed, const Comparison& how) {
  Graph after = before;
  if (!apply_rule(after, match.in(after))) return;
  ++result.applied;
  verify(after);
  if (types_are_kept(result, before, after)) compare_into(result, before, after, positive, seed, how);
}

// The first match again with another dtype, where the rule is about that, too.
void check_other_dtype(CaseResult& result, const RuleMatcher& matcher, const RuleInstance& instance, uint64_t seed) {
  constexpr DType kOthers[] = {DType::f64, DType::f16, DType::bf16};
  const DType dtype = kOthers[seed % std::size(kOthers)];
  const auto graph = in_dtype(instance.graph, dtype);
  const auto matches = graph ? matcher.find_all(*graph) : std::vector<RuleMatch>();
  if (matches.empty()) return;
  CaseResult other;
  Comparison how = comparison_of(matches.front().rule());
  how.exactly = false;
  check_match(other, matches.front(), *graph, instance.positive_inputs, seed, how);
  result.floats += other.floats;
  result.float_failures += other.float_failures;
  if (!other.problem.empty()) add_problem(result, fmt::format("in {}: {}", to_string(dtype), other.problem));
}

}  // namespace

CaseResult check_case(const RuleMatcher& matcher, const RuleInstance& instance, uint64_t seed) {
  CaseResult result;
  try {
    const std::vector<RuleMatch> matches = matcher.find_all(instance.graph);
    for (size_t i = 0; i < std::min(matches.size(), kMaxMatches) && result.problem.empty(); ++i) {
      const Rule& rule = matches[i].rule();
      Comparison how = comparison_of(rule);
      if (!rule.finite_only) how.elements.push_back(seed % 2 == 0 ? Elements::infinite : Elements::nan);
      check_match(result, matches[i], instance.graph, instance.positive_inputs, seed, how);
    }
    if (result.applied > 0 && result.problem.empty()) check_other_dtype(result, matcher, instance, seed);
  } catch (const std::exception& error) {
    // A rule that does not fit must say no.
    result.problem = fmt::format("stops instead of refusing: {}", error.what());
  }
  return result;
}

}  // namespace autograph
