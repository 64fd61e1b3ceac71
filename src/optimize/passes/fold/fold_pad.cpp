// fold_pad: what a pad node puts around the spatial axes becomes the padding of the convolution or pool behind it.
//
//   convolution    zeros
//   max_pool       minus infinity
//   average_pool   zeros, which then count in the divisor (count_include_pad); it must have no padding of its own, or
//                  count that too
//
// Holds before: mode constant, no pads on batch and channels, none negative; the reader computes its padding from
// `pads` (auto_pad NOTSET), and a pool rounds down and stays with less padding than kernel. The pad node stays when
// others read it.
#include <algorithm>
#include <limits>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// Pads of all axes, begins first; nothing when they are not `value` around the spatial axes.
std::optional<std::vector<int64_t>> constant_pads(const Graph& graph, const Node& pad, double value) {
  const Shape& shape = graph.type(pad.input(0)).shape();
  const auto given = integer_constants(graph, pad.input(1));
  if (!given || !shape.has_rank() || pad.attributes().text("mode") != "constant") return std::nullopt;
  const auto fill = pad.input(2).is_valid() ? scalar_constant(graph, pad.input(2)) : std::optional(0.0);
  if (fill != value) return std::nullopt;
  const auto rank = static_cast<size_t>(shape.rank());
  std::vector<int64_t> axes;
  for (size_t a = 0; a < rank; ++a) axes.push_back(static_cast<int64_t>(a));
  if (pad.input(3).is_valid()) {
    const auto chosen = integer_constants(graph, pad.input(3));
    if (!chosen) return std::nullopt;
    axes = *chosen;
  }
  if (given->size() != 2 * axes.size()) return std::nullopt;
  std::vector<int64_t> pads(2 * rank, 0);
  for (size_t k = 0; k < axes.size(); ++k) {
    const int64_t axis = axes[k] < 0 ? axes[k] + shape.rank() : axes[k];
    if (axis < 0 || axis >= shape.rank()) return std::nullopt;
    pads[static_cast<size_t>(axis)] = (*given)[k];
    pads[static_cast<size_t>(axis) + rank] = (*given)[k + axes.size()];
  }
  const bool fits = rank > 2 && pads[0] == 0 && pads[1] == 0 && pads[rank] == 0 && pads[rank + 1] == 0 &&
                    std::all_of(pads.begin(), pads.end(), [](int64_t p) { return p >= 0; });
  return fits ? std::optional(pads) : std::nullopt;
}

// The padding that a node has by itself: begins, then ends; zeros when it has none.
std::vector<int64_t> own_pads(const Node& node, size_t spatial) {
  const auto* given = node.attributes().find_as<std::vector<int64_t>>("pads");
  if (given && given->size() == 2 * spatial) return *given;
  return std::vector<int64_t>(2 * spatial, 0);
}

// What the node takes its padding to be; nothing when it is no node of this kind.
std::optional<double> padding_value(const Node& node) {
  if (&node.op() == &conv_def() || &node.op() == &average_pool_def()) return 0.0;
  if (&node.op() == &max_pool_def() && node.outputs().size() == 1) return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

// May a pool have these pads?
bool fits_pool(const Node& pool, const std::vector<int64_t>& pads) {
  const std::vector<int64_t>& kernel = pool.attributes().integers("kernel_shape");
  if (pool.attributes().flag("ceil_mode") || pads.size() != 2 * kernel.size()) return false;
  for (size_t k = 0; k < pads.size(); ++k) {
    if (pads[k] >= kernel[k % kernel.size()]) return false;
  }
  const std::vector<int64_t> own = own_pads(pool, kernel.size());
  const bool has_own = std::any_of(own.begin(), own.end(), [](int64_t p) { return p != 0; });
  return &pool.op() != &average_pool_def() || !has_own || pool.attributes().flag("count_include_pad");
}

bool fold(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const auto value = padding_value(node);
  if (!value || node.attributes().text("auto_pad") != "NOTSET") return false;
  const Node* pad = made_by(graph, node.input(0), pad_def());
  const auto added = pad ? constant_pads(graph, *pad, *value) : std::nullopt;
  if (!added) return false;
  const size_t rank = added->size() / 2;
  const size_t spatial = rank - 2;
  std::vector<int64_t> pads = own_pads(node, spatial);
  for (size_t a = 0; a < spatial; ++a) {
    pads[a] += (*added)[a + 2];
    pads[a + spatial] += (*added)[a + 2 + rank];
  }
  if (&node.op() != &conv_def() && !fits_pool(node, pads)) return false;
  const NodeId pad_node = graph.value(node.input(0)).producer();
  if (&node.op() == &average_pool_def()) graph.set_attribute(id, "count_include_pad", int64_t{1});
  graph.set_attribute(id, "pads", pads);
  graph.set_input(id, 0, pad->input(0));
  const Provenance origins = erase_unread(graph, pad_node);
  graph.set_provenance(id, Provenance::merged(origins, graph.node(id).provenance()));
  return true;
}

}  // namespace

bool fold_pad(Graph& graph, PassContext&) {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    if (graph.is_live(id)) changed = fold(graph, id) || changed;
  }
  return changed;
}

}  // namespace autograph
