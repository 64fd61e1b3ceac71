#include "autodiff/gradient_graph.h"

#include <set>

#include "autodiff/capture_weights.h"
#include "autodiff/learnable.h"
#include "autodiff/losses.h"
#include "autodiff/name_pattern.h"
#include "autograph/autodiff.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "graph/nested/inline_graph.h"

namespace autograph {
namespace {

Graph capturing(Graph model) {
  capture_weights(model);
  return model;
}

// Copies the model into `graph` and gives its float outputs.
NamedValues copy_into(Graph& graph, const Graph& model) {
  Graph frozen = model;
  frozen.freeze();
  std::vector<ValueId> inputs;
  for (const ValueId id : frozen.inputs()) {
    inputs.push_back(graph.add_input(frozen.type(id), frozen.value(id).name()));
  }
  const std::vector<ValueId> outputs = inline_graph(graph, frozen, inputs);
  infer_types(graph);
  NamedValues floats;
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (is_float(graph.type(outputs[k]))) floats.emplace_back(model.output_name(k), Var(graph, outputs[k]));
  }
  return floats;
}

// Of the constants of the model those that "all" speaks of: tables, masks and what shapes follow from have no slope
// that anybody asks for, or none at all.
std::set<std::string> weights_of(const Graph& model) {
  std::set<std::string> names;
  for (const ValueId id : learnable_values(model)) names.insert(model.value(id).name());
  return names;
}

NamedValues wanted_values(Graph& graph, const Graph& model, const std::string& pattern) {
  std::vector<ValueId> all = graph.inputs();
  const std::vector<ValueId> constants = graph.constants();
  all.insert(all.end(), constants.begin(), constants.end());
  const bool is_all = pattern == "all";
  const std::set<std::string> weights = is_all ? weights_of(model) : std::set<std::string>();
  NamedValues wanted;
  std::vector<std::string> names;
  for (const ValueId id : all) {
    const std::string& name = graph.value(id).name();
    if (name.empty() || !is_float(graph.type(id))) continue;
    names.push_back(name);
    const bool is_chosen = !is_all || graph.value(id).is_input() || weights.contains(name);
    if (is_chosen && fits(pattern, name)) wanted.emplace_back(name, Var(graph, id));
  }
  AG_CHECK_USER(!wanted.empty() || !is_all, ValueError,
                "[grad] wanted: expected a model with float inputs or weights, got one without any");
  AG_CHECK_USER(!wanted.empty(), ValueError, "[grad] wanted: no float input or weight is called '{}'{}", pattern,
                did_you_mean(pattern, names));
  return wanted;
}

}  // namespace

Graph loss_graph(const Graph& given, const GradientGraphOptions& options) {
  const Graph model = capturing(given);
  Graph graph(model.name());
  graph.add_output(make_loss(copy_into(graph, model), {options.loss, "", options.seed}, "grad").id(), "loss");
  graph.erase_dead();
  return graph;
}

Graph gradient_graph(const Graph& given, const GradientGraphOptions& options) {
  const Graph model = capturing(given);
  Graph graph(model.name());
  {
    const NamedValues outputs = copy_into(graph, model);
    const NamedValues wanted = wanted_values(graph, model, options.wanted);
    const Var loss = make_loss(outputs, {options.loss, "", options.seed}, "grad");
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
