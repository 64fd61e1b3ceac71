// A whole model as loss and gradients.
#include <algorithm>
#include <utility>

#include "autograph/autodiff.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "graph/inline_graph.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return type.is_tensor() && dtypes::kFloat.contains(type.dtype()); }

// Does `name` match `pattern`? Back to the last * when something does not fit.
bool matches(std::string_view pattern, std::string_view name) {
  size_t p = 0, n = 0, star = std::string_view::npos, after_star = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p;
      ++n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++after_star;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

using Named = std::vector<std::pair<std::string, Var>>;

// Copies the model into `graph` and gives its float outputs.
Named copy_into(Graph& graph, const Graph& model) {
  Graph frozen = model;
  frozen.freeze();
  std::vector<ValueId> inputs;
  for (const ValueId id : frozen.inputs()) {
    inputs.push_back(graph.add_input(frozen.type(id), frozen.value(id).name()));
  }
  const std::vector<ValueId> outputs = inline_graph(graph, frozen, inputs);
  infer_types(graph);
  Named floats;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (is_float(graph.type(outputs[k]))) floats.emplace_back(model.output_name(k), Var(graph, outputs[k]));
  }
  return floats;
}

Named wanted_values(Graph& graph, const std::string& pattern) {
  std::vector<ValueId> all = graph.inputs();
  const std::vector<ValueId> constants = graph.constants();
  all.insert(all.end(), constants.begin(), constants.end());
  Named wanted;
  std::vector<std::string> names;
  for (const ValueId id : all) {
    const std::string& name = graph.value(id).name();
    if (name.empty() || !is_float(graph.type(id))) continue;
    names.push_back(name);
    if (pattern == "all" || matches(pattern, name)) wanted.emplace_back(name, Var(graph, id));
  }
  AG_CHECK_USER(!wanted.empty(), ValueError, "[grad] wanted: no float input or weight is called '{}'{}", pattern,
                did_you_mean(pattern, names));
  return wanted;
}

// Added up in f32 at least.
Var as_wide(const Var& x) { return x.dtype() == DType::f64 || x.dtype() == DType::f32 ? x : cast(x, DType::f32); }

Var weighted(const Var& x, const std::string& name, Random& random) {
  AG_CHECK_USER(x.type().is_static(), ShapeError,
                "[grad] loss 'sum': output '{}' is {}, expected known extents (give them, or take sum1 or mean)", name,
                to_string(x.type()));
  std::normal_distribution<double> normal;
  std::vector<double> weights(static_cast<size_t>(*x.shape().num_elements()));
  for (double& weight : weights) weight = normal(random);
  return x * cast(constant(x.graph(), Tensor::of<double>(x.shape().static_dims(), weights)), x.dtype());
}

Var make_loss(const Named& outputs, const GradientGraphOptions& options) {
  for (const auto& [name, value] : outputs) {
    if (name == options.loss) return value;
  }
  const bool is_mean = options.loss == "mean", is_weighted = options.loss == "sum";
  std::vector<std::string> names{"sum", "sum1", "mean"};
  for (const auto& [name, value] : outputs) names.push_back(name);
  AG_CHECK_USER(is_mean || is_weighted || options.loss == "sum1", ValueError,
                "[grad] loss: no float output '{}'{}, nor is it sum, sum1 or mean", options.loss,
                did_you_mean(options.loss, names));
  AG_CHECK_USER(!outputs.empty(), ValueError, "[grad] loss: the model has no output of floats");
  Random random(options.seed);
  Var loss;
  for (const auto& [name, value] : outputs) {
    const Var x = as_wide(value);
    const Var part =
        is_mean ? reduce_mean(x, {}, false) : reduce_sum(is_weighted ? weighted(x, name, random) : x, {}, false);
    loss = !loss.is_valid() ? part : loss + cast(part, loss.dtype());
  }
  return loss;
}

}  // namespace

Graph gradient_graph(const Graph& model, const GradientGraphOptions& options) {
  Graph graph(model.name());
  {
    const Named outputs = copy_into(graph, model);
    const Named wanted = wanted_values(graph, options.wanted);
    const Var loss = make_loss(outputs, options);
    std::vector<Var> values;
    for (const auto& [name, value] : wanted) values.push_back(value);
    const std::vector<Var> gradients = grad(loss, values);
    graph.add_output(loss.id(), "loss");
    for (size_t k = 0; k < wanted.size(); ++k) graph.add_output(gradients[k].id(), "grad/" + wanted[k].first);
  }
  graph.erase_dead();
  return graph;
}

}  // namespace autograph
