// Taking changes of a graph back. Entries are kept as they were when they are first changed; what was added since lies
// behind the old ends of the tables.
#include <algorithm>

#include "autograph/graph.h"
#include "base/check.h"

namespace autograph {
namespace {

// A transaction changes few entries: looking through them beats a table.
template <class Entry>
bool is_kept(const std::vector<std::pair<uint32_t, Entry>>& kept, uint32_t index) {
  return std::any_of(kept.rbegin(), kept.rend(), [&](const auto& entry) { return entry.first == index; });
}

}  // namespace

GraphTransaction::GraphTransaction(Graph& graph)
    : graph_(&graph),
      outer_(graph.journal_.transaction),
      num_node_entries_(graph.nodes_.size()),
      num_value_entries_(graph.values_.size()),
      num_nodes_(graph.num_nodes_),
      inputs_(graph.inputs_),
      outputs_(graph.outputs_),
      output_names_(graph.output_names_),
      states_(graph.states_),
      updates_(graph.updates_),
      kept_(graph.kept_) {
  graph.journal_.transaction = this;
}

GraphTransaction::~GraphTransaction() { rollback(); }

void GraphTransaction::leave() {
  graph_->journal_.transaction = outer_;
  graph_ = nullptr;
}

void GraphTransaction::commit() {
  if (!graph_) return;
  leave();
  if (!outer_) return;
  // What the outer transaction has not kept is as it was when that began.
  for (auto& [index, node] : kept_nodes_) {
    if (index < outer_->num_node_entries_ && !is_kept(outer_->kept_nodes_, index)) {
      outer_->kept_nodes_.emplace_back(index, std::move(node));
    }
  }
  for (auto& [index, value] : kept_values_) {
    if (index < outer_->num_value_entries_ && !is_kept(outer_->kept_values_, index)) {
      outer_->kept_values_.emplace_back(index, std::move(value));
    }
  }
}

void GraphTransaction::rollback() {
  if (!graph_) return;
  Graph& graph = *graph_;
  leave();
  graph.nodes_.resize(num_node_entries_);
  graph.values_.resize(num_value_entries_);
  for (auto& [index, node] : kept_nodes_) graph.nodes_[index] = std::move(node);
  for (auto& [index, value] : kept_values_) graph.values_[index] = std::move(value);
  graph.num_nodes_ = num_nodes_;
  graph.inputs_ = std::move(inputs_);
  graph.outputs_ = std::move(outputs_);
  graph.output_names_ = std::move(output_names_);
  graph.states_ = std::move(states_);
  graph.updates_ = std::move(updates_);
  graph.kept_ = std::move(kept_);
}

void GraphTransaction::keep(NodeId id) {
  if (id.index >= num_node_entries_ || is_kept(kept_nodes_, id.index)) return;
  kept_nodes_.emplace_back(id.index, graph_->nodes_[id.index]);
}

void GraphTransaction::keep(ValueId id) {
  if (id.index >= num_value_entries_ || is_kept(kept_values_, id.index)) return;
  kept_values_.emplace_back(id.index, graph_->values_[id.index]);
}

}  // namespace autograph
