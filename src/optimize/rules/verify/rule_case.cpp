#include "optimize/rules/verify/rule_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "autograph/random.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "graph/run_reference.h"
#include "optimize/rules/verify/exact_op.h"
#include "optimize/rules/verify/prime_field.h"

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

struct FloatRun {
  std::vector<Tensor> outputs;
  double largest = 1;       // magnitude of any value on the way
  int64_t longest_sum = 1;  // elements of the largest tensor: no sum has more terms
};

FloatRun run_floats(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::unordered_map<uint32_t, Tensor> values;
  FloatRun run;
  const auto keep = [&](ValueId id, const Tensor& tensor) {
    values[id.index] = tensor;
    run.longest_sum = std::max(run.longest_sum, tensor.num_elements());
    if (tensor.dtype() != DType::f32) return;
    for (const float element : tensor.elements<float>()) {
      if (std::isfinite(element)) run.largest = std::max(run.largest, std::fabs(static_cast<double>(element)));
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) keep(graph.inputs()[i], inputs[i]);
  for (const ValueId id : graph.constants()) keep(id, graph.value(id).constant());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    AG_CHECK_USER(node.op().scalar || node.op().reference, UnsupportedError, "[rules] {} has no reference",
                  node.op().name);
    std::vector<Tensor> arguments;
    std::vector<Type> types;
    for (const ValueId input : node.inputs()) arguments.push_back(input.is_valid() ? values.at(input.index) : Tensor());
    for (const ValueId output : node.outputs()) types.push_back(graph.type(output));
    const std::vector<Tensor> outputs = run_reference(node.op(), node.attributes(), arguments, types);
    for (size_t slot = 0; slot < outputs.size(); ++slot) keep(node.outputs()[slot], outputs[slot]);
  }
  for (const ValueId output : graph.outputs()) run.outputs.push_back(values.at(output.index));
  return run;
}

// Every value is rounded once, which moves it by half an ulp of itself at most; later nodes add up at most
// `longest_sum` such errors, times factors that are part of `largest`.
double tolerance_of(const FloatRun& a, const FloatRun& b, size_t num_nodes) {
  const double sum = static_cast<double>(std::max(a.longest_sum, b.longest_sum));
  return std::numeric_limits<float>::epsilon() * static_cast<double>(num_nodes) * sum * std::max(a.largest, b.largest);
}

std::string compare_floats(const Graph& before, const Graph& after, const std::vector<bool>& positive, Random& random) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < before.inputs().size(); ++i) {
    Tensor input = Tensor::zeros(DType::f32, input_dims(before, i));
    for (int64_t k = 0; k < input.num_elements(); ++k) {
      const auto magnitude = std::uniform_real_distribution<float>(0.5F, 1.5F)(random);
      input.mutable_data<float>()[k] = positive[i] || random() % 2 == 0 ? magnitude : -magnitude;
    }
    inputs.push_back(std::move(input));
  }
  const FloatRun expected = run_floats(before, inputs);
  const FloatRun actual = run_floats(after, inputs);
  const double tolerance = tolerance_of(expected, actual, before.num_nodes() + after.num_nodes());
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    if (expected.outputs[o].dims() != actual.outputs[o].dims()) return fmt::format("output {}: another shape", o);
    const std::vector<double> e = expected.outputs[o].to_f64();
    const std::vector<double> a = actual.outputs[o].to_f64();
    for (size_t i = 0; i < e.size(); ++i) {
      // A quotient by zero, an overflow: rules keep what is finite.
      if (!std::isfinite(e[i]) || std::fabs(e[i] - a[i]) <= tolerance) continue;
      return fmt::format("output {} {} element {}: expected {}, got {} (tolerance {:.2g})", o,
                         to_string(expected.outputs[o].dims()), i, e[i], a[i], tolerance);
    }
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

std::string float_problem(CaseResult& result, const Graph& before, const Graph& after,
                          const std::vector<bool>& positive, Random& random) {
  const std::string difference = compare_floats(before, after, positive, random);
  ++result.floats;
  result.float_failures += !difference.empty();
  return difference.empty() ? "" : "floats: " + difference;
}

void add_problem(CaseResult& result, const std::string& problem) {
  if (!problem.empty()) result.problem += (result.problem.empty() ? "" : "; ") + problem;
}

void compare_into(CaseResult& result, const Graph& before, const Graph& after, const std::vector<bool>& positive,
                  uint64_t seed, bool exactly = true) {
  Random random(seed);
  try {
    if (exactly) add_problem(result, exact_problem(result, before, after, random));
  } catch (const UnsupportedError&) {
  }
  try {
    add_problem(result, float_problem(result, before, after, positive, random));
  } catch (const UnsupportedError&) {
  }
}

void check_match(CaseResult& result, const RuleMatch& match, const RuleInstance& instance, uint64_t seed) {
  Graph after = instance.graph;
  if (!apply_rule(after, match.in(after))) return;
  ++result.applied;
  verify(after);
  for (size_t o = 0; o < after.outputs().size(); ++o) {
    const Type& was = instance.graph.type(instance.graph.outputs()[o]);
    const Type& is = after.type(after.outputs()[o]);
    if (!(was == is)) {
      result.problem = fmt::format("type of output {}: expected {}, got {}", o, to_string(was), to_string(is));
      return;
    }
  }
  compare_into(result, instance.graph, after, instance.positive_inputs, seed, !match.rule().is_rounded);
}

}  // namespace

CaseResult check_case(const RuleMatcher& matcher, const RuleInstance& instance, uint64_t seed) {
  CaseResult result;
  try {
    const std::vector<RuleMatch> matches = matcher.find_all(instance.graph);
    for (size_t i = 0; i < std::min(matches.size(), kMaxMatches) && result.problem.empty(); ++i) {
      check_match(result, matches[i], instance, seed);
    }
  } catch (const std::exception& error) {
    // A rule that does not fit must say no.
    result.problem = fmt::format("stops instead of refusing: {}", error.what());
  }
  return result;
}

CaseResult compare_graphs(const Graph& before, const Graph& after, const std::vector<bool>& positive_inputs,
                          uint64_t seed) {
  CaseResult result;
  result.applied = 1;
  compare_into(result, before, after, positive_inputs, seed);
  return result;
}

}  // namespace autograph
