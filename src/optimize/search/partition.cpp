#include "optimize/search/partition.h"

#include <algorithm>
#include <map>

#include "autograph/op_def.h"
#include "base/check.h"
#include "optimize/cost/cost_model.h"
#include "optimize/match.h"
#include "optimize/search/min_cut.h"

namespace autograph {
namespace {

// A rewrite that is lost weighs as much as this many bytes that cross.
constexpr double kBytesPerRewrite = 1e9;
// This share of a part, at either end, is not cut off alone: else the cheapest cut is at the narrow end of the graph.
constexpr double kAnchored = 0.25;

double bytes_of(const Type& type) {
  if (!type.is_static() || type.dtype() == DType::string) return 0;
  return static_cast<double>(type.shape().num_elements().value_or(0)) * static_cast<double>(element_size(type.dtype()));
}

class Partitioner {
 public:
  Partitioner(const Graph& graph, std::span<const RuleMatch> matches, const PartitionOptions& options)
      : graph_(graph), options_(options), lost_(graph.value_capacity(), 0), vertex_(graph.node_capacity(), 0) {
    for (const RuleMatch& match : matches) count_edges(match);
  }

  Partition run() {
    std::vector<NodeId> order = graph_.topological_order();
    std::stable_partition(order.begin(), order.end(), [&](NodeId id) { return is_weight_only(graph_, id); });
    const auto first = std::find_if(order.begin(), order.end(), [&](NodeId id) { return !is_weight_only(graph_, id); });
    const std::vector<NodeId> weights(order.begin(), first);
    split({first, order.end()});
    if (result_.parts.empty()) result_.parts.emplace_back();
    // What is made of constants alone comes before all that reads it.
    result_.parts[0].insert(result_.parts[0].begin(), weights.begin(), weights.end());
    merge();
    return std::move(result_);
  }

 private:
  // A cut through a match loses it.
  void count_edges(const RuleMatch& match) {
    for (const NodeId reader : match.nodes()) {
      for (const ValueId v : graph_.node(reader).inputs()) {
        const NodeId producer = v.is_valid() ? graph_.value(v).producer() : NodeId{};
        if (std::find(match.nodes().begin(), match.nodes().end(), producer) != match.nodes().end()) ++lost_[v.index];
      }
    }
  }

  void split(const std::vector<NodeId>& nodes) {
    if (nodes.empty()) return;
    if (nodes.size() < static_cast<size_t>(std::max(options_.size_lower, 2)) ||
        (options_.should_stop && options_.should_stop())) {
      result_.parts.push_back(nodes);
      return;
    }
    const std::vector<bool> is_first = cut(nodes);
    std::vector<NodeId> first;
    std::vector<NodeId> second;
    for (size_t i = 0; i < nodes.size(); ++i) (is_first[i] ? first : second).push_back(nodes[i]);
    if (first.empty() || second.empty()) {
      result_.parts.push_back(nodes);
      return;
    }
    split(first);
    split(second);
  }

  // Which of `nodes`, in topological order, come first: with a node all that it reads. Vertices: source, sink, nodes,
  // then one for each tensor that is read inside, which is cut once however many read it.
  std::vector<bool> cut(const std::vector<NodeId>& nodes) {
    const auto count = static_cast<uint32_t>(nodes.size());
    for (uint32_t i = 0; i < count; ++i) vertex_[nodes[i].index] = i + 2;
    std::vector<ValueId> tensors;
    for (const NodeId id : nodes) {
      for (const ValueId v : graph_.node(id).outputs()) {
        if (is_read_inside(v)) tensors.push_back(v);
      }
    }
    MinCut network(2 + nodes.size() + tensors.size());
    const auto anchored = std::max<uint32_t>(1, static_cast<uint32_t>(kAnchored * count));
    for (uint32_t i = 0; i < anchored; ++i) {
      network.add_edge(0, i + 2, MinCut::kUnbounded);
      network.add_edge(count - 1 - i + 2, 1, MinCut::kUnbounded);
    }
    for (size_t t = 0; t < tensors.size(); ++t) add_tensor(network, tensors[t], static_cast<uint32_t>(2 + count + t));
    const std::vector<bool> side = network.source_side(0, 1);
    for (const NodeId id : nodes) vertex_[id.index] = 0;
    return {side.begin() + 2, side.begin() + 2 + static_cast<std::ptrdiff_t>(count)};
  }

  bool is_read_inside(ValueId v) const {
    const auto& uses = graph_.value(v).uses();
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return vertex_[use.node.index] > 0; });
  }

  void add_tensor(MinCut& network, ValueId v, uint32_t tensor) const {
    const uint32_t producer = vertex_[graph_.value(v).producer().index];
    network.add_edge(producer, tensor, 1 + bytes_of(graph_.type(v)) + kBytesPerRewrite * lost_[v.index]);
    for (const Use& use : graph_.value(v).uses()) {
      const uint32_t reader = vertex_[use.node.index];
      if (reader == 0) continue;
      network.add_edge(tensor, reader, MinCut::kUnbounded);
      network.add_edge(reader, producer, MinCut::kUnbounded);
    }
  }

  void merge() {
    const auto count = static_cast<uint32_t>(result_.parts.size());
    for (uint32_t first = 0; first < count; ++first) {
      size_t size = result_.parts[first].size();
      result_.intervals.emplace_back(first, first);
      for (uint32_t last = first + 1; last < count; ++last) {
        size += result_.parts[last].size();
        if (size >= static_cast<size_t>(options_.size_upper)) break;
        result_.intervals.emplace_back(first, last);
      }
    }
  }

  const Graph& graph_;
  const PartitionOptions& options_;
  std::vector<double> lost_;      // by value: rewrites that a cut through it loses
  std::vector<uint32_t> vertex_;  // by node: its vertex in the network at hand; 0: not in it
  Partition result_;
};

}  // namespace

Partition partition(const Graph& graph, std::span<const RuleMatch> matches, const PartitionOptions& options) {
  AG_CHECK_USER(options.size_lower >= 2 && options.size_upper >= options.size_lower, ValueError,
                "[search] sizes of parts: expected 2 <= lower <= upper, got {} and {}", options.size_lower,
                options.size_upper);
  return Partitioner(graph, matches, options).run();
}

Partition whole_graph(const Graph& graph) {
  Partition result;
  result.parts.push_back(graph.topological_order());
  result.intervals.emplace_back(0, 0);
  return result;
}

}  // namespace autograph
