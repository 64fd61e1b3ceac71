// fuse_epilogues: what follows a convolution or a matrix product element by element is computed while its result is
// still in registers.
//
//   conv -> add(residual) -> relu    becomes    fused{conv, add, relu}
//
// Starting from each op with the `anchor` trait, the chain of elementwise nodes behind it is followed as long as
// nothing else reads the values in between, dims and dtype stay, and the device has a kernel for the whole. Scalars
// become constants of the body; everything else that is read becomes an input of the fused node, so weights stay where
// they are. Most chains are taken as a whole, so that is what is asked first: to ask takes most of the time. A residual
// is taken by the producer that comes last, by which time the other operand is there.
#include <algorithm>
#include <optional>
#include <span>

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

// Nodes of a chain that are asked about at once.
constexpr size_t kFirstLength = 6;

BodyBuilder body_of(const Graph& graph, std::span<const NodeId> chain) {
  BodyBuilder builder(graph);
  for (const NodeId id : chain) builder.add(graph.node(id));
  return builder;
}

bool fuse_behind(Graph& graph, const PassContext& context, NodeId anchor) {
  std::vector<NodeId> chain{anchor};
  for (NodeId next = next_in_chain(graph, graph.node(anchor).output(0)); next.is_valid();
       next = next_in_chain(graph, graph.node(chain.back()).output(0))) {
    chain.push_back(next);
  }
  const auto first = [&](size_t count) { return std::span<const NodeId>(chain).first(count); };
  std::optional<BodyBuilder> body;  // of the longest part that has a kernel
  size_t length = 0;
  const auto has_kernel = [&](size_t count) {
    BodyBuilder longer = body_of(graph, first(count));
    if (!longer.has_kernel(context)) return false;
    body.emplace(std::move(longer));
    length = count;
    return true;
  };
  size_t count = std::min(chain.size(), kFirstLength);
  while (count > 1 && !has_kernel(count)) --count;
  while (count >= kFirstLength && count < chain.size() && has_kernel(count + 1)) ++count;
  if (!body) return false;
  body->replace(graph, first(length));
  return true;
}

}  // namespace

bool fuse_epilogues(Graph& graph, PassContext& context) {
  if (!context.has_kernel) return false;
  return fuse_from_anchors(graph, [&](NodeId anchor) { return fuse_behind(graph, context, anchor); });
}

}  // namespace autograph
