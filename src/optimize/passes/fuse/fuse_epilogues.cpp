// fuse_epilogues: what follows a convolution or a matrix product element by element is computed while its result is
// still in registers.
//
//   conv -> add(residual) -> relu    becomes    fused{conv, add, relu}
//
// Starting from each op with the `anchor` trait, the chain of elementwise nodes behind it is followed as long as
// nothing else reads the values in between, dims and dtype stay, and the device has a kernel for the whole. Scalars
// become constants of the body; everything else that is read becomes an input of the fused node, so weights stay where
// they are. A residual is taken by the producer that comes last, by which time the other operand is there.
#include <algorithm>

#include "autograph/op_def.h"
#include "optimize/body_builder.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// The elementwise node that alone reads `v` and could join the chain; invalid when there is none.
NodeId next_in_chain(const Graph& graph, ValueId v) {
  const NodeId id = only_reader(graph, v);
  if (!id.is_valid() || !graph.type(v).is_static()) return {};
  const Node& node = graph.node(id);
  const bool joins = node.op().traits.elementwise && node.op().traits.pure && node.outputs().size() == 1 &&
                     graph.type(node.output(0)) == graph.type(v);
  return joins ? id : NodeId{};
}

class EpilogueFuser {
 public:
  EpilogueFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {
    const std::vector<NodeId> order = graph.topological_order();
    // From the back, so that of two producers of a sum the later one takes it.
    for (auto it = order.rbegin(); it != order.rend(); ++it) {
      if (graph.is_live(*it) && graph.node(*it).op().traits.anchor) fuse_behind(*it);
    }
  }

  bool changed() const { return changed_; }

 private:
  void fuse_behind(NodeId anchor) {
    std::vector<NodeId> chain{anchor};
    for (NodeId next = next_in_chain(graph_, graph_.node(anchor).output(0)); next.is_valid();
         next = next_in_chain(graph_, graph_.node(chain.back()).output(0))) {
      BodyBuilder longer = copy_of(chain);
      longer.add(graph_.node(next));
      if (!longer.has_kernel(context_)) break;
      chain.push_back(next);
    }
    if (chain.size() > 1) replace(chain);
  }

  BodyBuilder copy_of(const std::vector<NodeId>& chain) const {
    BodyBuilder builder(graph_);
    for (const NodeId id : chain) builder.add(graph_.node(id));
    return builder;
  }

  void replace(const std::vector<NodeId>& chain) {
    copy_of(chain).emit(graph_);
    for (auto it = chain.rbegin(); it != chain.rend(); ++it) graph_.erase_node(*it);
    changed_ = true;
  }

  Graph& graph_;
  const PassContext& context_;
  bool changed_ = false;
};

}  // namespace

bool fuse_epilogues(Graph& graph, PassContext& context) {
  if (!context.has_kernel) return false;
  const bool changed = EpilogueFuser(graph, context).changed();
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph
