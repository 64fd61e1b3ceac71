// Gradients and updates: the training step as one graph.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/learnable.h"
#include "autodiff/losses.h"
#include "autodiff/optimizers.h"
#include "autodiff/weight_updates.h"
#include "autograph/autodiff.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/train.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "graph/nested/inline_graph.h"

namespace autograph {
namespace {

void check_weights(const Var& loss, const std::vector<Var>& weights) {
  AG_CHECK_USER(loss.is_valid(), ValueError, "[train] loss: expected a value, got none");
  AG_CHECK_USER(!weights.empty(), ValueError, "[train] weights: expected at least one");
  const Graph& graph = loss.graph();
  std::unordered_set<uint32_t> seen;
  for (const StateUpdate& update : graph.updates()) seen.insert(update.state.index);
  for (const Var& weight : weights) {
    const bool is_state = weight.is_valid() && &weight.graph() == &graph && graph.value(weight.id()).is_state() &&
                          is_float(weight.type());
    AG_CHECK_USER(is_state, ValueError, "[train] weights: expected float states of the graph of the loss, got {}",
                  weight.is_valid() ? "\"" + weight.graph().value(weight.id()).name() + "\"" : "none");
    AG_CHECK_USER(seen.insert(weight.id().index).second, ValueError,
                  "[train] weights: state \"{}\" is updated already, or given twice", graph.value(weight.id()).name());
  }
}

// Those on which the loss depends.
std::vector<Var> reached(const Var& loss, const std::vector<Var>& weights) {
  const Graph& graph = loss.graph();
  std::unordered_set<uint32_t> ancestors{loss.id().index};
  const std::vector<NodeId> order = graph.topological_order();
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    const auto& outputs = graph.node(*node).outputs();
    if (std::none_of(outputs.begin(), outputs.end(), [&](ValueId id) { return ancestors.contains(id.index); }))
      continue;
    for (const ValueId input : graph.node(*node).inputs()) ancestors.insert(input.index);
  }
  std::vector<Var> found;
  for (const Var& weight : weights) {
    if (ancestors.contains(weight.id().index)) found.push_back(weight);
  }
  return found;
}

// States of the graph.
class GraphMemory final : public UpdateMemory {
 public:
  explicit GraphMemory(Graph& graph) : graph_(graph) {}

  Var state(const std::string& name, Tensor initial) override {
    Var& known = states_[name];
    if (!known.is_valid()) known = autograph::state(graph_, std::move(initial), name);
    return known;
  }
  void update(const Var& state, const Var& value) override { autograph::update(state, value); }
  Tensor now(const Var& weight) override { return graph_.value(weight.id()).initial(); }

 private:
  Graph& graph_;
  std::unordered_map<std::string, Var> states_;
};

std::vector<std::string> names_of(const std::vector<Var>& weights) {
  std::vector<std::string> names;
  for (const Var& weight : weights) names.push_back(weight.graph().value(weight.id()).name());
  return names;
}

// Copies `model` with its states but without outputs, and gives the float ones.
NamedValues copy_without_outputs(Graph& graph, const Graph& model) {
  Graph function = model;
  const HiddenStates hidden = function.states_to_inputs();
  const size_t first_state = function.inputs().size() - hidden.initial.size();
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < function.inputs().size(); ++i) {
    const Value& value = function.value(function.inputs()[i]);
    inputs.push_back(i < first_state ? graph.add_input(value.type(), value.name())
                                     : graph.add_state(hidden.initial[i - first_state], value.name()));
  }
  const std::vector<ValueId> outputs = inline_graph(graph, function, inputs);
  infer_types(graph);
  NamedValues floats;
  for (size_t k = 0; k < model.outputs().size(); ++k) {
    if (is_float(graph.type(outputs[k]))) floats.emplace_back(model.output_name(k), Var(graph, outputs[k]));
  }
  for (size_t k = 0; k < hidden.updated.size(); ++k) {
    graph.set_update(inputs[first_state + hidden.updated[k]], outputs[model.outputs().size() + k]);
  }
  return floats;
}

std::vector<Var> named_states(Graph& graph, const std::vector<std::string>& names) {
  std::vector<Var> states;
  for (const ValueId id : graph.states()) {
    if (std::find(names.begin(), names.end(), graph.value(id).name()) != names.end()) states.emplace_back(graph, id);
  }
  return states;
}

}  // namespace

UpdateStep minimize(const Var& loss, const std::vector<Var>& weights, const Optimizer& optimizer,
                    const UpdateOptions& options) {
  check_optimizer(optimizer);
  check_update_options(options);
  check_weights(loss, weights);
  const std::vector<Var> learning = reached(loss, weights);
  AG_CHECK_USER(!learning.empty(), ValueError, "[train] loss: it depends on none of the weights");
  check_groups(options, names_of(weights));
  const ProvenanceScope scope("optimizer");
  GraphMemory memory(loss.graph());
  WeightUpdates updates(optimizer, options, memory);
  const std::vector<Var> gradients = grad(updates.scaled(loss), learning);
  const std::vector<std::string> names = names_of(learning);
  std::vector<LearningWeight> list;
  for (size_t k = 0; k < learning.size(); ++k) list.push_back({names[k], learning[k], gradients[k]});
  return updates.make(std::move(list));
}

Graph training_graph(const Graph& model, const TrainingOptions& options) {
  const TrainableModel trainable = make_trainable(model, options.trainable);
  Graph graph(model.name());
  {
    const NamedValues outputs = copy_without_outputs(graph, trainable.graph);
    const Var loss = make_loss(outputs, {options.loss, options.output, options.seed}, "train");
    const UpdateStep step = minimize(loss, named_states(graph, trainable.weights), options.optimizer, options.update);
    graph.add_output(loss.id(), "loss");
    if (step.gradient_norm.is_valid()) graph.add_output(step.gradient_norm.id(), "gradient_norm");
  }
  graph.erase_dead();
  return graph;
}

namespace {

// Of the output that the loss is of, whose classes lie along `axis`.
Var accuracy_of(const NamedValues& outputs, const std::string& output, int64_t axis) {
  const auto named = [&](const auto& entry) { return output.empty() || entry.first == output; };
  const Var scores = std::find_if(outputs.begin(), outputs.end(), named)->second;
  const Var labels(scores.graph(), scores.graph().inputs().back());
  return reduce_mean(cast(equal(arg_max(scores, axis, false), labels), DType::f32), {}, false);
}

}  // namespace

Graph evaluation_graph(const Graph& model, const TrainingOptions& options) {
  TrainableOptions as_trained = options.trainable;
  as_trained.batch_statistics = false;
  const Graph evaluated = learnable_values(model).empty() ? model : make_trainable(model, as_trained).graph;
  Graph graph(model.name());
  {
    const NamedValues outputs = copy_without_outputs(graph, evaluated);
    const Var loss = make_loss(outputs, {options.loss, options.output, options.seed}, "train");
    graph.add_output(loss.id(), "loss");
    const bool of_tokens = options.loss == "token_cross_entropy";
    if (of_tokens || options.loss == "cross_entropy") {
      graph.add_output(accuracy_of(outputs, options.output, of_tokens ? -1 : 1).id(), "accuracy");
    }
  }
  graph.erase_dead();
  return graph;
}

}  // namespace autograph
