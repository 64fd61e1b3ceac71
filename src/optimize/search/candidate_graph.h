// A graph of the search together with what it costs, kept up to date while rules are tried on it.
//
// Trying a rule takes time in proportion to what it changes: costs of the nodes around it are looked at again, the
// critical path is relaxed only behind them, and the hash is a sum over nodes of what they compute from which values,
// where a value that replaces another takes over its identity.
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"
#include "autograph/hash.h"
#include "base/function_ref.h"
#include "optimize/rules/rule.h"
#include "optimize/search/fused_cost.h"

namespace autograph {

inline Hash128 operator+(const Hash128& a, const Hash128& b) { return {a.low + b.low, a.high + b.high}; }
inline Hash128 operator-(const Hash128& a, const Hash128& b) { return {a.low - b.low, a.high - b.high}; }

/// What the search compares.
struct GraphScore {
  double sum_us = 0;       ///< Of all nodes, as FusedCost::sum_us() has it.
  double critical_us = 0;  ///< Of the longest path.
  size_t num_nodes = 0;
  Hash128 hash;  ///< Equal for graphs made of the same nodes over the same values, whatever the order of rewrites.

  /// C_E of the AutoGraph paper (AAAI 2023): alpha * critical path + sum.
  double mixed_us(double alpha) const { return alpha * critical_us + sum_us; }
};

/// The longest paths through a graph.
struct PathTimes {
  std::vector<double> least_us;                  ///< By output: when it is there if all inputs are from the start.
  std::vector<std::vector<double>> from_inputs;  ///< By output, then input; less than 0: no path leads there.

  /// When the outputs are there, in their order, if the inputs are there at these times.
  std::vector<double> output_times_us(const std::vector<double>& input_times_us) const;
};

/// Copies are independent. For one thread at a time.
class CandidateGraph {
 public:
  /// `cost` must outlive the candidate and its copies. Values of `graph` keep their ids.
  CandidateGraph(Graph graph, FusedCost& cost);

  const Graph& graph() const { return graph_; }
  const GraphScore& score() const { return score_; }
  /// What nodes cost by.
  FusedCost& cost() const { return *cost_; }
  /// FusedCost::node_us() and node_load() of a live node.
  double node_us(NodeId id) const { return nodes_[id.index].us; }
  const KernelLoad& node_load(NodeId id) const { return nodes_[id.index].load; }
  /// The score after applying `match`, which was found in this graph or in one that is equal to it id by id; nothing
  /// when it does not apply. The graph stays as it is.
  std::optional<GraphScore> try_rule(const RuleMatch& match);
  /// Calls `change`, which may apply rules to this, and takes back all that it did.
  void tentatively(FunctionRef<void()> change);
  /// Applies `match` for good; false, and nothing changes, when it does not apply.
  bool apply(const RuleMatch& match, RuleEffect* effect = nullptr);
  /// From now on critical_us is not kept up to date: a rewrite at the front of a deep graph changes every time behind
  /// it.
  void forget_paths() { has_paths_ = false; }
  /// Finds the longest paths again, and keeps them up to date from now on.
  void find_paths();
  /// The longest paths to the outputs.
  PathTimes path_times() const;

 private:
  struct NodeScore {
    double us = 0;
    double sum_us = 0;
    double finish_us = 0;
    KernelLoad load;
    Hash128 hash;
  };

  void add_new_entries();
  void set_classes(const RuleEffect& effect, size_t old_values);
  std::vector<NodeId> changed_by(const RuleEffect& effect) const;
  bool rewrite(const RuleMatch& match, RuleEffect* effect = nullptr);
  NodeScore& change(NodeId id);
  void find_costs(NodeId id, NodeScore& score);
  void remove(NodeId id);
  void rescore(const std::vector<NodeId>& nodes);
  void relax(std::vector<NodeId> work);
  Hash128 hash_of(const Node& node) const;
  double start_us(const Node& node) const;
  void find_critical_path();
  std::vector<double> output_times_us(const std::vector<NodeId>& order, std::vector<double> value_times_us,
                                      double least_us) const;

  Graph graph_;
  FusedCost* cost_;
  std::vector<NodeScore> nodes_;  // by node
  std::vector<Hash128> class_;    // by value: what it stands for
  GraphScore score_;
  bool is_trial_ = false;
  bool has_paths_ = true;                                    // finish_us and critical_us hold
  std::vector<std::pair<uint32_t, NodeScore>> overwritten_;  // in a trial, newest last
};

}  // namespace autograph
