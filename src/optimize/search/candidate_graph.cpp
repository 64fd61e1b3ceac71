#include "optimize/search/candidate_graph.h"

#include <algorithm>
#include <limits>

#include "autograph/op_def.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"

namespace autograph {
namespace {

Hash128 hash_output(const Hash128& node, size_t slot) {
  return Hasher().add(node).add(static_cast<int64_t>(slot)).finish();
}

// Constants that rules add are small: what they hold tells them apart. Others are told apart by where they stand.
constexpr int64_t kSmallConstant = 64;

}  // namespace

CandidateGraph::CandidateGraph(Graph graph, FusedCost& cost) : graph_(std::move(graph)), cost_(&cost) {
  add_new_entries();
  const std::vector<NodeId> order = graph_.topological_order();
  for (const NodeId id : order) {
    const Node& node = graph_.node(id);
    NodeScore& score = nodes_[id.index];
    score.hash = hash_of(node);
    for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
      class_[node.output(slot).index] = hash_output(score.hash, slot);
    }
    find_costs(id, score);
    score.finish_us = start_us(node) + score.us;
    score_.sum_us += score.sum_us;
    score_.hash = score_.hash + score.hash;
  }
  find_critical_path();
}

// Values without a producer get their identity here, results of nodes later.
void CandidateGraph::add_new_entries() {
  nodes_.resize(graph_.node_capacity());
  for (size_t index = class_.size(); index < graph_.value_capacity(); ++index) {
    const ValueId id{static_cast<uint32_t>(index)};
    Hasher hasher;
    hasher.add(static_cast<int64_t>(index));
    if (graph_.is_live(id) && graph_.value(id).is_constant()) {
      const Tensor& tensor = graph_.value(id).constant();
      if (tensor.raw() && tensor.num_elements() <= kSmallConstant) hasher = Hasher().add(tensor.content_hash());
    }
    class_.push_back(hasher.finish());
  }
}

Hash128 CandidateGraph::hash_of(const Node& node) const {
  Hasher hasher;
  hasher.add(node.op().name).add(static_cast<int64_t>(node.outputs().size()));
  add_attributes(hasher, node.attributes());
  for (const ValueId v : node.inputs()) hasher.add(v.is_valid() ? class_[v.index] : Hash128{});
  return hasher.finish();
}

double CandidateGraph::start_us(const Node& node) const {
  double start = 0;
  for (const ValueId v : node.inputs()) {
    const NodeId producer = v.is_valid() ? graph_.value(v).producer() : NodeId{};
    if (producer.is_valid()) start = std::max(start, nodes_[producer.index].finish_us);
  }
  return start;
}

void CandidateGraph::find_critical_path() {
  score_.num_nodes = graph_.num_nodes();
  score_.critical_us = 0;
  if (!has_paths_) return;
  for (const ValueId v : graph_.roots()) {
    const NodeId producer = graph_.value(v).producer();
    if (producer.is_valid()) score_.critical_us = std::max(score_.critical_us, nodes_[producer.index].finish_us);
  }
}

void CandidateGraph::find_costs(NodeId id, NodeScore& score) {
  score.us = cost_->node_us(graph_, id);
  score.load = cost_->node_load(graph_, id, score.us);
  score.sum_us = cost_->sum_us(score.us, score.load);
}

CandidateGraph::NodeScore& CandidateGraph::change(NodeId id) {
  if (is_trial_) overwritten_.emplace_back(id.index, nodes_[id.index]);
  return nodes_[id.index];
}

void CandidateGraph::remove(NodeId id) {
  NodeScore& score = change(id);
  score_.sum_us -= score.sum_us;
  score_.hash = score_.hash - score.hash;
  score = {};
}

// What replaces a value stands for it from now on; other new results are what their nodes compute.
void CandidateGraph::set_classes(const RuleEffect& effect, size_t old_values) {
  add_new_entries();
  std::vector<ValueId> named;
  for (size_t k = 0; k < effect.replaced.size(); ++k) {
    const ValueId fresh = effect.replacements[k];
    if (fresh.index < old_values) continue;
    class_[fresh.index] = class_[effect.replaced[k].index];
    named.push_back(fresh);
  }
  for (const NodeId id : effect.added) {
    if (!graph_.is_live(id)) continue;
    const Node& node = graph_.node(id);
    const Hash128 hash = hash_of(node);
    for (size_t slot = 0; slot < node.outputs().size(); ++slot) {
      const ValueId v = node.output(slot);
      if (std::find(named.begin(), named.end(), v) == named.end()) class_[v.index] = hash_output(hash, slot);
    }
  }
}

// Cost and hash of nodes whose inputs, or whose inputs' other readers, have changed.
void CandidateGraph::rescore(const std::vector<NodeId>& nodes) {
  for (const NodeId id : nodes) {
    NodeScore& score = change(id);
    score_.sum_us -= score.sum_us;
    score_.hash = score_.hash - score.hash;
    find_costs(id, score);
    score.hash = hash_of(graph_.node(id));
    score_.sum_us += score.sum_us;
    score_.hash = score_.hash + score.hash;
  }
}

// Finishing times of `work` and of what lies behind, as far as they change.
void CandidateGraph::relax(std::vector<NodeId> work) {
  for (size_t next = 0; next < work.size(); ++next) {
    const NodeId id = work[next];
    const Node& node = graph_.node(id);
    const double finish = start_us(node) + nodes_[id.index].us;
    if (finish == nodes_[id.index].finish_us) continue;
    change(id).finish_us = finish;
    for (const ValueId v : node.outputs()) {
      for (const Use& use : graph_.value(v).uses()) work.push_back(use.node);
    }
  }
}

// Nodes whose cost or hash may have changed: those around the rewrite, and what reads the same values.
std::vector<NodeId> CandidateGraph::changed_by(const RuleEffect& effect) const {
  std::vector<NodeId> changed;
  const auto add = [&](NodeId id) {
    if (graph_.is_live(id) && std::find(changed.begin(), changed.end(), id) == changed.end()) changed.push_back(id);
  };
  for (const NodeId id : effect.added) add(id);
  for (const NodeId id : effect.touched) add(id);
  const size_t num_touched = changed.size();
  for (size_t i = 0; i < num_touched; ++i) {
    for (const ValueId v : graph_.node(changed[i]).outputs()) {
      for (const Use& use : graph_.value(v).uses()) add(use.node);
    }
  }
  return changed;
}

bool CandidateGraph::rewrite(const RuleMatch& match, RuleEffect* told) {
  const size_t old_values = graph_.value_capacity();
  std::optional<RuleEffect> effect = apply_rule(graph_, match);
  if (!effect) return false;
  set_classes(*effect, old_values);
  for (const NodeId id : effect->removed) remove(id);
  const std::vector<NodeId> changed = changed_by(*effect);
  rescore(changed);
  if (has_paths_) relax(changed);
  find_critical_path();
  if (told) *told = std::move(*effect);
  return true;
}

void CandidateGraph::tentatively(FunctionRef<void()> change) {
  const GraphTransaction transaction(graph_);
  const GraphScore before = score_;
  const size_t num_nodes = nodes_.size();
  const size_t num_values = class_.size();
  is_trial_ = true;
  change();
  is_trial_ = false;
  for (auto it = overwritten_.rbegin(); it != overwritten_.rend(); ++it) nodes_[it->first] = it->second;
  overwritten_.clear();
  nodes_.resize(num_nodes);
  class_.resize(num_values);
  score_ = before;
}

std::optional<GraphScore> CandidateGraph::try_rule(const RuleMatch& match) {
  std::optional<GraphScore> after;
  tentatively([&] {
    if (rewrite(match)) after = score_;
  });
  return after;
}

bool CandidateGraph::apply(const RuleMatch& match, RuleEffect* effect) { return rewrite(match, effect); }

void CandidateGraph::find_paths() {
  if (has_paths_) return;
  has_paths_ = true;
  for (const NodeId id : graph_.topological_order()) {
    nodes_[id.index].finish_us = start_us(graph_.node(id)) + nodes_[id.index].us;
  }
  find_critical_path();
}

std::vector<double> PathTimes::output_times_us(const std::vector<double>& input_times_us) const {
  std::vector<double> times = least_us;
  for (size_t k = 0; k < times.size(); ++k) {
    for (size_t i = 0; i < input_times_us.size(); ++i) {
      if (from_inputs[k][i] >= 0) times[k] = std::max(times[k], input_times_us[i] + from_inputs[k][i]);
    }
  }
  return times;
}

// Nodes start when all that they read is there, and not before `least_us`.
std::vector<double> CandidateGraph::output_times_us(const std::vector<NodeId>& order, std::vector<double> time,
                                                    double least_us) const {
  for (const NodeId id : order) {
    double start = least_us;
    for (const ValueId v : graph_.node(id).inputs()) start = std::max(start, v.is_valid() ? time[v.index] : least_us);
    for (const ValueId v : graph_.node(id).outputs()) time[v.index] = start + nodes_[id.index].us;
  }
  std::vector<double> result;
  for (const ValueId v : graph_.outputs()) result.push_back(time[v.index]);
  return result;
}

PathTimes CandidateGraph::path_times() const {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const std::vector<NodeId> order = graph_.topological_order();
  PathTimes paths;
  paths.least_us = output_times_us(order, std::vector<double>(graph_.value_capacity(), 0), 0);
  paths.from_inputs.assign(graph_.outputs().size(), {});
  for (const ValueId input : graph_.inputs()) {
    std::vector<double> time(graph_.value_capacity(), kNever);
    time[input.index] = 0;
    const std::vector<double> from_here = output_times_us(order, std::move(time), kNever);
    for (size_t k = 0; k < from_here.size(); ++k) paths.from_inputs[k].push_back(from_here[k]);
  }
  return paths;
}

}  // namespace autograph
