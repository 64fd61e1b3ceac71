// fuse_elementwise: neighbouring elementwise ops become one node, so that what lies between them stays in cache.
//
//   a = mul(x, s); b = add(a, t); y = sigmoid(b)    becomes    y = fused{mul, add, sigmoid}(x, s, t)
//
// A group grows from its last node towards producers that nobody outside the group reads and that have the dims of the
// output: a smaller one, computed once, is cheaper than the same computed for every element it is broadcast to. It has
// one output, and the device has a kernel for it. Linear in the size of the graph, times the bound on a group.
//
// A reduction may end a group, which then computes some rows at a time (mean(square(x)) never writes the squares). It
// has the dims of what it reduces for this. Images are left out: their layouts matter more.
//
// Groups take dequantizations that have other readers, too, and leave them what they read: bytes are cheaper to read
// twice than floats are to write.
#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "ops/reduction/axes.h"
#include "optimize/body_builder.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr size_t kMaxNodes = 24;
constexpr size_t kMaxInputs = 8;

bool is_dequantization(const Graph& graph, NodeId id) { return &graph.node(id).op() == &dequantize_linear_def(); }

bool can_fuse(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (is_dequantization(graph, id) || &node.op() == &quantize_linear_def()) {
    return graph.type(node.output(0)).is_static() && graph.type(node.inputs()[1]).shape().num_elements() == 1;
  }
  return node.op().traits.elementwise && node.op().traits.pure && !node.op().traits.view &&
         node.outputs().size() == 1 && graph.type(node.output(0)).is_static();
}

constexpr int64_t kImageRank = 4;

// A reduction over known axes, of a tensor that is no image.
bool is_last_reduction(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (!is_reduction(node.op()) || !graph.type(node.inputs()[0]).is_static()) return false;
  if (graph.type(node.inputs()[0]).shape().rank() >= kImageRank) return false;
  return node.inputs().size() < 2 || !node.inputs()[1].is_valid() || graph.value(node.inputs()[1]).is_constant();
}

class ElementwiseFuser {
 public:
  ElementwiseFuser(Graph& graph, const PassContext& context)
      : graph_(graph),
        context_(context),
        position_(graph.node_capacity(), 0),
        in_group_(graph.node_capacity(), kOutside) {
    const std::vector<NodeId> order = graph.topological_order();
    for (size_t i = 0; i < order.size(); ++i) position_[order[i].index] = i;
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (graph.is_live(*it) && (can_fuse(graph, *it) || is_last_reduction(graph, *it))) fuse_from(*it);
    }
  }

  bool changed() const { return changed_; }

 private:
  enum Membership : uint8_t { kOutside, kMoved, kCopied };

  void fuse_from(NodeId last) {
    group_ = {last};
    in_group_[last.index] = kMoved;
    for (size_t next = 0; next < group_.size() && group_.size() < kMaxNodes; ++next) {
      // By value: the group grows while its producers are looked at.
      const std::vector<ValueId> inputs = graph_.node(group_[next]).inputs();
      for (const ValueId input : inputs) try_to_add(input);
    }
    if (group_.size() > 1) {
      builder().replace(graph_, sorted_group());
      changed_ = true;
    }
    for (const NodeId id : group_) in_group_[id.index] = kOutside;
  }

  void try_to_add(ValueId input) {
    if (!input.is_valid() || group_.size() >= kMaxNodes) return;
    const Value& value = graph_.value(input);
    const NodeId producer = value.producer();
    if (!producer.is_valid() || is_in_group(producer) || !can_fuse(graph_, producer)) return;
    if (value.type().shape() != graph_.type(full_size_value()).shape()) return;
    const bool inside =
        graph_.num_output_uses(input) == 0 && std::all_of(value.uses().begin(), value.uses().end(),
                                                          [&](const Use& use) { return goes_with_group(use.node); });
    if (!inside && !is_dequantization(graph_, producer)) return;
    group_.push_back(producer);
    in_group_[producer.index] = inside ? kMoved : kCopied;
    const BodyBuilder longer = builder();
    if (longer.num_inputs() <= kMaxInputs && longer.has_kernel(context_)) return;
    group_.pop_back();
    in_group_[producer.index] = kOutside;
  }

  // Fused nodes come behind the end of what was there at the beginning, and are in no group.
  bool is_in_group(NodeId id) const { return id.index < in_group_.size() && in_group_[id.index] != kOutside; }
  // Not so what stays where it is for other readers, and goes on reading.
  bool goes_with_group(NodeId id) const { return id.index < in_group_.size() && in_group_[id.index] == kMoved; }

  // What has the dims of all values between the nodes.
  ValueId full_size_value() const {
    const Node& last = graph_.node(group_[0]);
    return is_last_reduction(graph_, group_[0]) ? last.inputs()[0] : last.output(0);
  }

  std::vector<NodeId> sorted_group() const {
    std::vector<NodeId> nodes = group_;
    std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return position_[a.index] < position_[b.index]; });
    return nodes;
  }

  BodyBuilder builder() const {
    BodyBuilder result(graph_);
    for (const NodeId id : sorted_group()) {
      const Node& node = graph_.node(id);
      if (is_last_reduction(graph_, id) && node.inputs().size() > 1 && node.inputs()[1].is_valid()) {
        result.add_constant(node.inputs()[1]);
      }
      result.add(node);
    }
    return result;
  }

  Graph& graph_;
  const PassContext& context_;
  std::vector<size_t> position_;
  std::vector<Membership> in_group_;  // by node
  std::vector<NodeId> group_;
  bool changed_ = false;
};

}  // namespace

bool fuse_elementwise(Graph& graph, PassContext& context) {
  if (!context.has_kernel) return false;
  const bool changed = ElementwiseFuser(graph, context).changed();
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph
