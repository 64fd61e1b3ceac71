// fold_pad: zeros that a pad node puts around the spatial axes become the padding of the convolution behind it.
//
// Pools keep theirs: a maximum pads with minus infinity, a mean may not count padding.  Holds before: mode constant
// with value 0, no pads on batch and channels, none negative; the reader computes its padding from `pads` (auto_pad
// NOTSET). The pad node stays when others read it.
#include <algorithm>

#include "autograph/op_def.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {

const OpDef& conv_def();
const OpDef& pad_def();

namespace {

// Pads of all axes, begins first; nothing when they are not constant zeros around the data.
std::optional<std::vector<int64_t>> zero_pads(const Graph& graph, const Node& pad) {
  const Shape& shape = graph.type(pad.input(0)).shape();
  const auto given = integer_constants(graph, pad.input(1));
  if (!given || !shape.has_rank() || pad.attributes().text("mode") != "constant") return std::nullopt;
  if (pad.input(2).is_valid() && scalar_constant(graph, pad.input(2)) != 0.0) return std::nullopt;
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

// The padding that a conv has by itself: begins, then ends; zeros when it has none.
std::vector<int64_t> own_pads(const Node& conv, size_t spatial) {
  const auto* given = conv.attributes().find_as<std::vector<int64_t>>("pads");
  if (given && given->size() == 2 * spatial) return *given;
  return std::vector<int64_t>(2 * spatial, 0);
}

bool fold(Graph& graph, NodeId id) {
  const Node& conv = graph.node(id);
  if (&conv.op() != &conv_def() || conv.attributes().text("auto_pad") != "NOTSET") return false;
  const Node* pad = made_by(graph, conv.input(0), pad_def());
  const auto zeros = pad ? zero_pads(graph, *pad) : std::nullopt;
  if (!zeros) return false;
  const size_t rank = zeros->size() / 2;
  const size_t spatial = rank - 2;
  std::vector<int64_t> pads = own_pads(conv, spatial);
  for (size_t a = 0; a < spatial; ++a) {
    pads[a] += (*zeros)[a + 2];
    pads[a + spatial] += (*zeros)[a + 2 + rank];
  }
  const NodeId pad_node = graph.value(conv.input(0)).producer();
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
