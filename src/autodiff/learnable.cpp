#include "autodiff/learnable.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "autodiff/losses.h"
#include "autograph/op_def.h"
#include "autograph/statistics.h"
#include "autograph/verify.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// Masks hide with numbers that no weight has, or are made of 0 and one number that no score is below.
bool is_mask(const Tensor& tensor) {
  constexpr double kHides = 1e6, kHidesAmongZeros = -1e3;
  const std::optional<Statistics> found = statistics_of(tensor.view());
  if (found->num_nan > 0 || found->max >= kHides || found->min <= -kHides) return true;
  if (found->min > kHidesAmongZeros) return false;  // nearly all weights: their elements are not copied
  const std::vector<double> elements = tensor.to_f64();
  return std::all_of(elements.begin(), elements.end(), [&](double x) { return x == 0 || x == found->min; });
}

// Finds them in one graph.
class Learnable {
 public:
  explicit Learnable(const Graph& graph) : graph_(graph) {}

  std::vector<ValueId> find() const {
    std::vector<ValueId> candidates = readable_candidates();
    keep_shapes_known(candidates);
    return candidates;
  }

 private:
  std::vector<ValueId> readable_candidates() const {
    std::set<ValueId> seen = statistics();
    for (const StateUpdate& update : graph_.updates()) seen.insert(update.state);
    std::vector<ValueId> candidates;
    for (const NodeId node : graph_.topological_order()) {
      for (const ValueId id : graph_.node(node).inputs()) {
        if (id.is_valid() && seen.insert(id).second && can_learn(graph_.value(id))) candidates.push_back(id);
      }
    }
    return candidates;
  }

  std::set<ValueId> statistics() const {
    std::set<ValueId> found;
    for (const NodeId id : graph_.nodes()) {
      const Node& node = graph_.node(id);
      if (infers_statistics(node)) found.insert({node.input(kMean), node.input(kVariance)});
    }
    return found;
  }

  static bool can_learn(const Value& value) {
    if (value.is_state()) return is_float(value.type());
    if (!value.is_constant() || !is_float(value.type()) || value.constant().rank() == 0) return false;
    return value.constant().num_elements() > 0 && !is_mask(value.constant());
  }

  // A state has no elements that shapes could follow from: what shapes need must stay a constant. Without it the first
  // nodes that need it have other output types, though their other inputs have the same.
  void keep_shapes_known(std::vector<ValueId>& candidates) const {
    while (!candidates.empty()) {
      Graph trial = graph_;
      std::unordered_map<uint32_t, ValueId> state_of;
      for (const ValueId id : candidates) {
        if (!trial.value(id).is_constant()) continue;
        const ValueId input = trial.add_input(trial.type(id));
        trial.replace_uses(id, input);
        state_of[id.index] = input;
      }
      infer_types(trial);
      const std::set<ValueId> needed = needed_for_shapes(trial, state_of);
      if (needed.empty()) return;
      std::erase_if(candidates, [&](ValueId id) { return needed.contains(id); });
    }
  }

  std::set<ValueId> needed_for_shapes(const Graph& trial, const std::unordered_map<uint32_t, ValueId>& replaced) const {
    std::set<ValueId> needed;
    for (const NodeId id : graph_.nodes()) {
      const Node& node = graph_.node(id);
      const auto changed = [&](ValueId x) { return x.is_valid() && trial.type(x) != graph_.type(x); };
      const bool starts_here = std::any_of(node.outputs().begin(), node.outputs().end(), changed) &&
                               std::none_of(node.inputs().begin(), node.inputs().end(), changed);
      if (!starts_here) continue;
      for (const ValueId input : node.inputs()) {
        if (input.is_valid() && replaced.contains(input.index)) needed.insert(input);
      }
    }
    return needed;
  }

  const Graph& graph_;
};

}  // namespace

bool infers_statistics(const Node& node) {
  return &node.op() == &batch_normalization_def() && !node.attributes().flag("training_mode");
}

std::vector<ValueId> learnable_values(const Graph& graph) { return Learnable(graph).find(); }

}  // namespace autograph
