// fuse_squeeze_excite: the gate of a squeeze-and-excite block becomes one node.
//
//   global_average_pool -> conv 1x1 -> relu -> conv 1x1 -> sigmoid    becomes    fused{...}
//
// Starting from each global average pool, the chain of convolutions and elementwise ops behind it is followed as long
// as nothing else reads the values in between and the device has a kernel for the whole, and with at least two
// convolutions (one is what ends a classifier). The multiplication by the gate stays outside, where it is computed
// together with what follows it.
#include <optional>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/body_builder.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr size_t kMaxNodes = 8;

// The node that alone reads `v` and could join the chain; null when there is none.
const Node* next_in_chain(const Graph& graph, ValueId v) {
  if (num_reads(graph, v) != 1 || graph.value(v).uses().empty()) return nullptr;
  const Use use = graph.value(v).uses()[0];
  const Node& node = graph.node(use.node);
  if (use.slot != 0 || node.outputs().size() != 1 || !graph.type(node.output(0)).is_static()) return nullptr;
  if (&node.op() == &conv_def()) return &node;
  const bool is_elementwise = node.op().traits.elementwise && node.op().traits.pure && !node.op().traits.view;
  return is_elementwise && graph.type(node.output(0)) == graph.type(v) ? &node : nullptr;
}

// The longest chain behind `pool` that the device runs as one; nothing when there is none.
std::optional<BodyBuilder> find_gate(const Graph& graph, const PassContext& context, const Node& pool) {
  BodyBuilder chain(graph);
  std::optional<BodyBuilder> best;
  int convolutions = 0;
  const Node* last = &pool;
  for (size_t size = 1; last && size <= kMaxNodes; ++size, last = next_in_chain(graph, last->output(0))) {
    chain.add(*last);
    convolutions += &last->op() == &conv_def() ? 1 : 0;
    if (convolutions < 2) continue;
    if (!chain.has_kernel(context)) break;
    best.emplace(chain);
  }
  return best;
}

}  // namespace

bool fuse_squeeze_excite(Graph& graph, PassContext& context) {
  if (!context.has_kernel) return false;
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    const Node& pool = graph.node(id);
    if (!graph.is_live(id) || &pool.op() != &global_average_pool_def() || !graph.type(pool.output(0)).is_static()) {
      continue;
    }
    const std::optional<BodyBuilder> gate = find_gate(graph, context, pool);
    if (!gate) continue;
    gate->emit(graph);
    changed = true;
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph
