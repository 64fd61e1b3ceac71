// Models whose weights learn.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_map>

#include "autodiff/capture_weights.h"
#include "autodiff/learnable.h"
#include "autodiff/name_pattern.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/train.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "ops/defs.h"

namespace autograph {
namespace {

class Promotion {
 public:
  explicit Promotion(const Graph& model) : graph_(model) {
    capture_weights(graph_);
    for (const ValueId id : graph_.states()) names_.insert(graph_.value(id).name());
  }

  TrainableModel run(const TrainableOptions& options) {
    const std::vector<ValueId> weights = choose(options.weights);
    TrainableModel result;
    for (const ValueId id : weights) result.weights.push_back(graph_.value(promote(id)).name());
    for (const NodeId id : graph_.topological_order()) {
      if (infers_statistics(graph_.node(id))) train_statistics(id, options.batch_statistics);
    }
    infer_types(graph_);
    result.graph = std::move(graph_);
    return result;
  }

 private:
  // The name that was meant, or what names there are.
  static std::string hint(const std::string& patterns, const std::vector<std::string>& names) {
    constexpr size_t kNamed = 8;
    std::string nearest = did_you_mean(patterns, names);
    if (!nearest.empty()) return nearest;
    return fmt::format(" (there are {}{})",
                       printable(join(std::span(names).first(std::min(names.size(), kNamed)), ", ")),
                       names.size() > kNamed ? fmt::format(" and {} more", names.size() - kNamed) : "");
  }

  // Constants and states that may learn and have a name that fits, in the order in which nodes read them.
  std::vector<ValueId> choose(const std::string& patterns) {
    const std::vector<ValueId> candidates = learnable_values(graph_);
    AG_CHECK_USER(!candidates.empty(), ValueError,
                  "[train] weights: expected a model with float weights, got one without any that could learn");
    std::vector<ValueId> chosen;
    std::vector<std::string> names;
    for (const ValueId id : candidates) {
      names.push_back(name_of(id));
      if (fits(patterns, names.back())) chosen.push_back(id);
    }
    AG_CHECK_USER(!chosen.empty(), ValueError, "[train] weights: no float weight of the model is called '{}'{}",
                  patterns, hint(patterns, names));
    return chosen;
  }

  // That of the value, or what its first reader calls it.
  std::string name_of(ValueId id) const {
    const Value& value = graph_.value(id);
    if (!value.name().empty()) return value.name();
    const Use use = *std::min_element(value.uses().begin(), value.uses().end(), [](const Use& a, const Use& b) {
      return std::tie(a.node, a.slot) < std::tie(b.node, b.slot);
    });
    const Node& node = graph_.node(use.node);
    const auto origins = node.provenance().origins();
    const std::string reader = origins.empty() ? std::string(node.op().name) : origins.front();
    const size_t slot = std::min<size_t>(use.slot, node.op().inputs.size() - 1);
    return reader + "/" + std::string(node.op().inputs[slot].name);
  }

  // Makes a state of a constant.
  ValueId promote(ValueId id) {
    if (graph_.value(id).is_state()) return id;
    const ValueId state = graph_.add_state(graph_.value(id).constant(), take_name(names_, name_of(id)));
    graph_.replace_uses(id, state);
    graph_.erase_value(id);
    return state;
  }

  // The statistics of a batch norm become states, which each batch brings nearer to its own. Two batch norms with the
  // same ones bring them nearer one after the other.
  void train_statistics(NodeId id, bool from_batch) {
    for (const size_t slot : {kMean, kVariance}) {
      const ValueId given = graph_.node(id).input(slot);
      if (graph_.value(given).is_constant()) promote(given);
      if (!graph_.value(graph_.node(id).input(slot)).is_state()) return;
    }
    if (!from_batch) return;
    const Node node = graph_.node(id);
    const ProvenanceScope scope("running_statistics");
    Attributes attributes = node.attributes();
    attributes.set("training_mode", int64_t{1});
    std::vector<ValueId> inputs = node.inputs();
    for (const size_t slot : {kMean, kVariance}) inputs[slot] = running(node.input(slot));
    const NodeId training =
        graph_.add_node(node.op(), inputs, attributes, {.provenance = node.provenance(), .num_outputs = 3});
    const std::vector<ValueId> outputs = graph_.node(training).outputs();
    if (const std::string name = graph_.value(node.output(0)).name(); !name.empty()) {
      graph_.set_value_name(outputs[0], name);
    }
    graph_.replace_uses(node.output(0), outputs[0]);
    graph_.erase_node(id);
    update_statistic(node.input(kMean), outputs[1]);
    update_statistic(node.input(kVariance), sample_variance(Var(graph_, inputs[0]), Var(graph_, inputs[kVariance]),
                                                            Var(graph_, outputs[2]), attributes.real("momentum")));
  }

  ValueId running(ValueId state) const {
    const auto known = running_.find(state.index);
    return known == running_.end() ? state : known->second;
  }

  void update_statistic(ValueId state, ValueId value) {
    running_[state.index] = value;
    graph_.set_update(state, value);
  }

  // ONNX takes the variance of the batch, PyTorch that of a sample: n / (n - 1) times as much of the new one.
  ValueId sample_variance(const Var& x, const Var& old, const Var& updated, double momentum) {
    const double channels = static_cast<double>(graph_.type(old.id()).shape().static_dims()[0]);
    const Var others = max({cast(size(x), old.dtype()) / channels - 1, scalar_like(old, 1)});
    return (updated + (updated - old * momentum) / others).id();
  }

  Graph graph_;
  std::set<std::string> names_;                    // of states
  std::unordered_map<uint32_t, ValueId> running_;  // by state of a statistic: what it is after the batch norms so far
};

}  // namespace

TrainableModel make_trainable(const Graph& model, const TrainableOptions& options) {
  return Promotion(model).run(options);
}

}  // namespace autograph
