#include "support/graphs/shape_operands.h"

#include <algorithm>
#include <vector>

#include "autograph/error.h"
#include "autograph/op_def.h"

namespace autograph {
namespace {

// Notes which inputs the infer function of a node asks for.
class AskedInputs : public InferContext {
 public:
  AskedInputs(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    op_ = &node.op();
    attributes_ = &node.attributes();
    for (const ValueId v : node.inputs()) input_types_.push_back(v.is_valid() ? graph.type(v) : Type());
    output_types_.resize(node.outputs().size());
    try {
      op_->infer(*this);
    } catch (const UserError&) {  // it needs a value that is computed; by then it has asked
    }
  }

  const Tensor* known_value(size_t slot) const override {
    const ValueId v = node_.input(slot);
    if (!v.is_valid()) return nullptr;
    asked_.push_back(v);
    return graph_.value(v).is_constant() ? &graph_.value(v).constant() : nullptr;
  }

  const std::vector<ValueId>& asked() const { return asked_; }

 private:
  const Graph& graph_;
  const Node& node_;
  mutable std::vector<ValueId> asked_;
};

// Constants, extents and what is computed from these alone.
std::unordered_set<uint32_t> free_of_data(const Graph& graph, const std::vector<NodeId>& order) {
  std::unordered_set<uint32_t> found;
  for (const ValueId v : graph.constants()) found.insert(v.index);
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    if (node.op().traits.random) continue;
    const bool is_free = std::all_of(node.inputs().begin(), node.inputs().end(),
                                     [&](ValueId v) { return !v.is_valid() || found.contains(v.index); });
    if (!is_free && !node.op().traits.reads_shape_only) continue;
    for (const ValueId v : node.outputs()) found.insert(v.index);
  }
  return found;
}

}  // namespace

std::unordered_set<uint32_t> shape_operands(const Graph& graph) {
  const std::vector<NodeId> order = graph.topological_order();
  const std::unordered_set<uint32_t> free = free_of_data(graph, order);
  std::unordered_set<uint32_t> found;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node& node = graph.node(*id);
    std::vector<ValueId> read = AskedInputs(graph, node).asked();
    const bool is_operand =
        std::any_of(node.outputs().begin(), node.outputs().end(), [&](ValueId v) { return found.contains(v.index); });
    if (is_operand && !node.op().traits.reads_shape_only) {
      read.insert(read.end(), node.inputs().begin(), node.inputs().end());
    }
    for (const ValueId v : read) {
      if (v.is_valid() && free.contains(v.index)) found.insert(v.index);
    }
  }
  return found;
}

}  // namespace autograph
