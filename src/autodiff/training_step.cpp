// Gradients and updates: the training step as one graph.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autodiff/losses.h"
#include "autodiff/name_pattern.h"
#include "autodiff/optimizers.h"
#include "autograph/autodiff.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/train.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "graph/nested/inline_graph.h"

namespace autograph {
namespace {

void check_options(const UpdateOptions& options) {
  const auto check_positive = [](const char* what, const std::optional<double>& value) {
    AG_CHECK_USER(!value || *value > 0, ValueError, "[train] {}: expected more than 0, got {}", what, *value);
  };
  check_positive("clip_norm", options.clip_norm);
  check_positive("clip_value", options.clip_value);
  AG_CHECK_USER(options.accumulate >= 1, ValueError, "[train] accumulate: expected 1 or more, got {}",
                options.accumulate);
  for (const WeightGroup& group : options.groups) {
    AG_CHECK_USER(group.rate_factor >= 0, ValueError, "[train] group '{}': expected a rate factor of 0 or more, got {}",
                  group.weights, group.rate_factor);
    AG_CHECK_USER(!group.weight_decay || *group.weight_decay >= 0, ValueError,
                  "[train] group '{}': expected a weight decay of 0 or more, got {}", group.weights,
                  *group.weight_decay);
  }
  if (!options.loss_scale) return;
  check_positive("loss_scale", options.loss_scale->initial);
  AG_CHECK_USER(options.loss_scale->growth_interval >= 1, ValueError,
                "[train] growth_interval: expected 1 or more, got {}", options.loss_scale->growth_interval);
}

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

// At least f32.
Var as_wide(const Var& x) { return x.dtype() == DType::f64 ? x : cast(x, DType::f32); }

class StepMaker {
 public:
  StepMaker(const Var& loss, const std::vector<Var>& weights, const Optimizer& optimizer, const UpdateOptions& options)
      : graph_(loss.graph()), loss_(loss), weights_(reached(loss, weights)), optimizer_(optimizer), options_(options) {
    AG_CHECK_USER(!weights_.empty(), ValueError, "[train] loss: it depends on none of the weights");
    check_groups(weights);
  }

  UpdateStep make() {
    const ProvenanceScope scope("optimizer");
    result_.learning_rate = state(graph_, Tensor::scalar(learning_rate(optimizer_)), "optimizer/learning_rate");
    result_.step = state(graph_, Tensor::scalar(int64_t{0}), "optimizer/step");
    gradients_ = grad(scaled_loss(), weights_);
    accumulate();
    unscale();
    clip();
    update_weights();
    update(result_.step, taken(result_.step + 1, result_.step));
    update_scale();
    return result_;
  }

 private:
  bool is_dynamic() const { return options_.loss_scale && options_.loss_scale->dynamic; }

  Var scaled_loss() {
    if (!options_.loss_scale) return loss_;
    scale_ = state(graph_, Tensor::scalar(static_cast<float>(options_.loss_scale->initial)), "optimizer/loss_scale");
    return loss_ * cast(scale_, loss_.dtype());
  }

  // Sums up the mean of the gradients of several runs, of which the last is due.
  void accumulate() {
    if (options_.accumulate == 1) return;
    const Var run = state(graph_, Tensor::scalar(int64_t{0}), "optimizer/run");
    const Var last = scalar_like(run, static_cast<double>(options_.accumulate - 1));
    is_due_ = equal(run, last);
    update(run, where(is_due_, scalar_like(run, 0), run + 1));
    for (size_t k = 0; k < weights_.size(); ++k) {
      const Tensor& now = graph_.value(weights_[k].id()).initial();
      const Var sum = state(graph_, Tensor::zeros(now.dtype(), now.dims()), "optimizer/gradient/" + name_of(k));
      gradients_[k] = sum + gradients_[k] / static_cast<double>(options_.accumulate);
      update(sum, where(is_due_, scalar_like(sum, 0), gradients_[k]));
    }
  }

  std::string name_of(size_t k) const { return graph_.value(weights_[k].id()).name(); }

  void unscale() {
    counts_ = is_due_;
    if (!options_.loss_scale) return;
    Var bad;
    for (Var& gradient : gradients_) {
      gradient = gradient / cast(scale_, gradient.dtype());
      if (!is_dynamic()) continue;
      const Var wide = as_wide(gradient);
      const Var count = reduce_sum(cast(logical_or(is_nan(wide), is_inf(wide)), DType::f32), {}, false);
      bad = bad.is_valid() ? bad + count : count;
    }
    if (!is_dynamic()) return;
    is_finite_ = equal(bad, scalar_like(bad, 0));
    counts_ = counts_.is_valid() ? logical_and(counts_, is_finite_) : is_finite_;
  }

  void clip() {
    if (options_.clip_value) {
      for (Var& gradient : gradients_) {
        gradient = autograph::clip(gradient, scalar_like(gradient, -*options_.clip_value),
                                   scalar_like(gradient, *options_.clip_value));
      }
    }
    if (!options_.clip_norm) return;
    std::vector<Var> squares;
    DType dtype = DType::f32;
    for (const Var& gradient : gradients_) {
      squares.push_back(reduce_sum_square(as_wide(gradient), {}, false));
      if (squares.back().dtype() == DType::f64) dtype = DType::f64;
    }
    for (Var& square : squares) square = cast(square, dtype);
    result_.gradient_norm = sqrt(squares.size() == 1 ? squares[0] : sum(squares));
    constexpr double kPyTorchsEpsilon = 1e-6;
    const Var part = *options_.clip_norm / (result_.gradient_norm + kPyTorchsEpsilon);
    const Var factor = min({part, scalar_like(part, 1)});
    for (Var& gradient : gradients_) gradient = gradient * cast(factor, gradient.dtype());
  }

  // `now` in a run that updates, else `before`.
  Var taken(const Var& now, const Var& before) const { return counts_.is_valid() ? where(counts_, now, before) : now; }

  // A group that fits nothing is a typing error.
  void check_groups(const std::vector<Var>& weights) const {
    std::vector<std::string> names;
    for (const Var& weight : weights) names.push_back(graph_.value(weight.id()).name());
    for (const WeightGroup& group : options_.groups) {
      const bool used =
          std::any_of(names.begin(), names.end(), [&](const std::string& name) { return fits(group.weights, name); });
      AG_CHECK_USER(used, ValueError, "[train] group: no weight is called '{}'{}", group.weights,
                    did_you_mean(group.weights, names));
    }
  }

  // The group of a weight, or null.
  const WeightGroup* group_of(size_t k) const {
    for (const WeightGroup& group : options_.groups) {
      if (fits(group.weights, name_of(k))) return &group;
    }
    return nullptr;
  }

  Optimizer optimizer_of(const WeightGroup* group) const {
    Optimizer optimizer = optimizer_;
    if (group && group->weight_decay) {
      std::visit([&](auto& kind) { kind.weight_decay = *group->weight_decay; }, optimizer);
    }
    return optimizer;
  }

  // Computed once for all weights of a group.
  Var rate_of(const WeightGroup* group) {
    if (!group || group->rate_factor == 1) return result_.learning_rate;
    Var& rate = rates_[group];
    if (!rate.is_valid()) rate = result_.learning_rate * group->rate_factor;
    return rate;
  }

  void update_weights() {
    const Var count = cast(result_.step + 1, DType::f64);
    for (size_t k = 0; k < weights_.size(); ++k) {
      const ProvenanceScope scope(name_of(k));
      const WeightGroup* group = group_of(k);
      WeightUpdate change{weights_[k], gradients_[k], rate_of(group), count};
      const Var weight = updated_weight(optimizer_of(group), change);
      update(weights_[k], taken(weight, weights_[k]));
      for (const auto& [before, now] : change.remembered) update(before, taken(now, before));
    }
  }

  // Doubled after many finite steps in a row, halved after one that is not; PyTorch's numbers.
  void update_scale() {
    if (!is_dynamic()) return;
    const auto interval = static_cast<double>(options_.loss_scale->growth_interval);
    const Var good = state(graph_, Tensor::scalar(int64_t{0}), "optimizer/finite_steps");
    const Var grows = equal(good + 1, scalar_like(good, interval));
    const Var next_good = where(logical_and(is_finite_, logical_not(grows)), good + 1, scalar_like(good, 0));
    const Var next_scale = where(is_finite_, where(grows, scale_ * 2, scale_), scale_ * 0.5);
    update(good, is_due_.is_valid() ? where(is_due_, next_good, good) : next_good);
    update(scale_, is_due_.is_valid() ? where(is_due_, next_scale, scale_) : next_scale);
  }

  Graph& graph_;
  Var loss_;
  std::vector<Var> weights_;
  const Optimizer& optimizer_;
  const UpdateOptions& options_;
  UpdateStep result_;
  std::vector<Var> gradients_;
  Var scale_;
  std::unordered_map<const WeightGroup*, Var> rates_;
  // bool []; none: always true
  Var is_due_;     // Are gradients of enough runs together?
  Var is_finite_;  // Are they numbers?
  Var counts_;     // Both.
};

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
  check_options(options);
  check_weights(loss, weights);
  return StepMaker(loss, weights, optimizer, options).make();
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
  const TrainableModel trainable = make_trainable(model, as_trained);
  Graph graph(model.name());
  {
    const NamedValues outputs = copy_without_outputs(graph, trainable.graph);
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
