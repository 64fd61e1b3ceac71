// fuse_recurrent: an LSTM or GRU that a model spells out step by step becomes one node.
//
//   h1, c1 = cell(x1, h0, c0),  h2, c2 = cell(x2, h1, c1), ...    becomes    y, hn, cn = lstm([x1 x2 ...], W, R, B, h0,
//   c0)
//
// The products of all x are one product then, the weights are packed once, and a step is one kernel. Which cells there
// are: recurrent_cell.h. Cells with the same weights are joined as far as no x needs an h of the same chain (a decoder
// that reads its own output stays step by step) and nothing outside reads a c in between. When all x are positions of
// one tensor in order, the node reads that tensor. Holds before: f32; batch and widths are known; weights and biases
// are constants; the device has a kernel for the node.
#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "optimize/axis_trace.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/recurrent_cell.h"

namespace autograph {
namespace {

// One position of a sequence.
struct Position {
  ValueId sequence;
  int64_t index, length;
};

// The position of [length, batch, width] that `x`, [batch, width], is; axes of extent 1 may stand anywhere.
std::optional<Position> position_of(const Graph& graph, ValueId x) {
  const Dims dims = graph.type(x).shape().static_dims();
  std::vector<int64_t> wide;
  for (const int64_t axis : {0, 1}) {
    if (dims[static_cast<size_t>(axis)] != 1) wide.push_back(axis);
  }
  AxisTrace trace(graph, x, {});
  while (trace.step_back()) {
    const std::vector<AxisPart> parts = trace.parts();
    if (parts.size() != wide.size() + 1 || parts[0].role != AxisPart::kPicked || !parts[0].extent.is_known()) continue;
    const bool in_order = std::equal(wide.begin(), wide.end(), parts.begin() + 1,
                                     [](int64_t axis, const AxisPart& part) { return part.role == axis; });
    if (in_order) return Position{trace.source(), parts[0].index, parts[0].extent.value()};
  }
  return std::nullopt;
}

class RecurrentFuser {
 public:
  RecurrentFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  bool fuse() {
    for (const NodeId root : graph_.topological_order()) {
      // A chain takes its later cells with it.
      if (graph_.is_live(root)) fuse_from(root);
    }
    return changed_;
  }

 private:
  void fuse_from(NodeId root) {
    auto first = match_cell(graph_, root);
    if (!first) return;
    std::vector<RecurrentCell> chain{*first};
    std::optional<std::set<NodeId>> behind;  // what reads an h of the chain, directly or not
    while (const auto next = next_of(chain)) {
      if (!behind) behind = readers_behind(chain.front().h_out);
      if (behind->contains(graph_.value(next->x).producer())) break;
      chain.push_back(*next);
    }
    if (chain.back().has_h()) replace(chain);
  }

  // The cell that goes on where the chain ends.
  std::optional<RecurrentCell> next_of(std::vector<RecurrentCell>& chain) const {
    RecurrentCell& last = chain.back();
    const bool is_lstm = last.op == &lstm_def();
    if (is_lstm && num_reads(graph_, last.c_out) != 2) return std::nullopt;
    for (const ValueId end : ends_after(last)) {
      auto next = match_cell(graph_, graph_.value(end).producer());
      if (!next || !next->has_h() || next->op != last.op || (is_lstm && next->c != last.c_out)) continue;
      if (is_lstm && next->h != last.h_out && can_swap(*next)) next->swap_inputs();
      if (next->h != last.h_out) continue;
      // Of the first cell nothing has told yet which input is h.
      const bool is_first = chain.size() == 1;
      if (is_lstm && is_first && last.has_h() && !has_weights_of(graph_, last, *next) && can_swap(last)) {
        last.swap_inputs();
      }
      if (has_weights_of(graph_, last, *next)) return next;
    }
    return std::nullopt;
  }

  // Where cells that keep a part of c (LSTM) or h (GRU) would end.
  std::vector<ValueId> ends_after(const RecurrentCell& cell) const {
    if (cell.op == &gru_def()) {
      std::vector<ValueId> products = readers({cell.h_out}, mul_def());
      const std::vector<ValueId> steps = readers(readers({cell.h_out}, sub_def()), mul_def());
      products.insert(products.end(), steps.begin(), steps.end());
      return readers(products, add_def());
    }
    return readers(readers(readers(readers({cell.c_out}, mul_def()), add_def()), tanh_def()), mul_def());
  }

  std::vector<ValueId> readers(const std::vector<ValueId>& values, const OpDef& op) const {
    std::vector<ValueId> results;
    for (const ValueId v : values) {
      for (const Use& use : graph_.value(v).uses()) {
        if (&graph_.node(use.node).op() == &op) results.push_back(graph_.node(use.node).output(0));
      }
    }
    return results;
  }

  int64_t width(ValueId v) const { return graph_.type(v).shape().static_dims().back(); }

  std::set<NodeId> readers_behind(ValueId v) const {
    std::set<NodeId> found;
    std::vector<ValueId> open{v};
    while (!open.empty()) {
      const ValueId next = open.back();
      open.pop_back();
      for (const Use& use : graph_.value(next).uses()) {
        if (!found.insert(use.node).second) continue;
        const auto outputs = graph_.node(use.node).outputs();
        open.insert(open.end(), outputs.begin(), outputs.end());
      }
    }
    return found;
  }

  bool can_swap(const RecurrentCell& cell) const { return width(cell.x) == width(cell.h); }

  // ---- Emission ----

  void replace(const std::vector<RecurrentCell>& chain) {
    const RecurrentCell &first = chain.front(), &last = chain.back();
    const LayerInputs from{sequence_of(chain), first.has_h() ? first.h : ValueId{}, first.c};
    const NodeId fused = add_layer(graph_, context_, last, weights_of(graph_, last), from);
    if (!fused.is_valid()) return;
    replace_results(chain, fused);
    changed_ = true;
  }

  void replace_results(const std::vector<RecurrentCell>& chain, NodeId fused) {
    const Node& node = graph_.node(fused);
    const Dims dims{chain.back().batch, chain.back().hidden};
    const ValueId y = node.output(0), last_h = node.output(1);
    const ValueId last_c = node.outputs().size() > 2 ? node.output(2) : ValueId{};
    // From the back, so that an h which only the next cell reads is not read any more.
    if (last_c.is_valid() && num_reads(graph_, chain.back().c_out) > 1) {
      replace_pattern(graph_, chain.back().c_out, reshaped(graph_, last_c, dims), fused);
    }
    replace_pattern(graph_, chain.back().h_out, reshaped(graph_, last_h, dims), fused);
    NodeId split;
    for (size_t t = chain.size() - 1; t-- > 0;) {
      if (!graph_.is_live(chain[t].h_out)) continue;
      if (!split.is_valid()) {
        const auto length = static_cast<int64_t>(chain.size());
        split = graph_.add_node(split_def(), {y}, {{"axis", int64_t{0}}, {"num_outputs", length}},
                                {{}, static_cast<int>(length)});
      }
      replace_pattern(graph_, chain[t].h_out, reshaped(graph_, graph_.node(split).output(t), dims), fused);
    }
  }

  // All x, one below the other: [length, batch, input].
  ValueId sequence_of(const std::vector<RecurrentCell>& chain) {
    const Dims dims = graph_.type(chain.front().x).shape().static_dims();
    const auto length = static_cast<int64_t>(chain.size());
    if (const auto start = neighbours(chain)) {
      const ValueId whole = reshaped(graph_, start->sequence, {start->length, dims[0], dims[1]});
      if (start->length == length) return whole;
      return slice(Var(graph_, whole), {start->index}, {start->index + length}, {0}).id();
    }
    std::vector<ValueId> rows;
    for (const RecurrentCell& cell : chain) rows.push_back(reshaped(graph_, cell.x, {1, dims[0], dims[1]}));
    if (length == 1) return rows.front();
    return graph_.node(graph_.add_node(concat_def(), rows, {{"axis", int64_t{0}}})).output(0);
  }

  // The position of the first x, when the others are the next positions of the same tensor.
  std::optional<Position> neighbours(const std::vector<RecurrentCell>& chain) const {
    const auto start = position_of(graph_, chain.front().x);
    if (!start) return std::nullopt;
    for (size_t t = 1; t < chain.size(); ++t) {
      const auto next = position_of(graph_, chain[t].x);
      if (!next || next->sequence != start->sequence || next->index != start->index + static_cast<int64_t>(t) ||
          next->length != start->length)
        return std::nullopt;
    }
    return start;
  }

  Graph& graph_;
  const PassContext& context_;
  bool changed_ = false;
};

}  // namespace

bool fuse_recurrent(Graph& graph, PassContext& context) { return RecurrentFuser(graph, context).fuse(); }

}  // namespace autograph
