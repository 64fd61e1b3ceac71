// fuse_scanned_cell: a scan whose body is an LSTM or GRU cell becomes one node.
//
//   y, hn, cn = scan(cell, h0, c0, x)      becomes      y, hn, cn = lstm(x, W, R, B, h0, c0)
//
// What cells there are: recurrent_cell.h. Holds before: the body computes nothing else; the slice may be viewed under
// other dims with extents of 1; all scan outputs are h; f32, static shapes; weights and biases are constants of the
// body (simplify_loops); the device has a kernel for the node.
#include <algorithm>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "autograph/verify.h"
#include "ops/defs.h"
#include "optimize/loop_parts.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/recurrent_cell.h"

namespace autograph {
namespace {

// The value that `v` shows under other dims.
ValueId behind_views(const Graph& graph, ValueId v) {
  while (graph.value(v).producer().is_valid()) {
    const Node& node = graph.node(graph.value(v).producer());
    if (!node.op().traits.view || node.outputs().size() != 1) break;
    v = node.input(0);
  }
  return v;
}

class ScannedCell {
 public:
  ScannedCell(Graph& graph, NodeId scan, LoopParts parts, const PassContext& context)
      : graph_(graph), scan_(scan), parts_(std::move(parts)), context_(context) {}

  bool fuse() {
    if (!find_cell() || !find_sequence() || !all_outputs_are_h()) return false;
    return replace();
  }

 private:
  bool is_lstm() const { return cell_.op == &lstm_def(); }

  bool find_cell() {
    for (const auto& state : parts_.states) {
      const NodeId root = parts_.body.value(state.next).producer();
      if (!root.is_valid()) continue;
      const auto found = match_cell(parts_.body, root);
      if (!found || !found->has_h()) continue;
      cell_ = *found;
      if (is_lstm() && cell_.h != state.inner && cell_.x == state.inner) cell_.swap_inputs();
      h_ = &state;
      if (cell_.h == state.inner && find_c()) return true;
    }
    return false;
  }

  bool find_c() {
    if (!is_lstm()) return parts_.states.size() == 1;
    const auto c = std::find_if(parts_.states.begin(), parts_.states.end(),
                                [&](const auto& state) { return state.inner == cell_.c && state.next == cell_.c_out; });
    c_ = c == parts_.states.end() ? nullptr : &*c;
    return c_ && parts_.states.size() == 2;
  }

  bool find_sequence() {
    const ValueId slice = behind_views(parts_.body, cell_.x);
    const auto scan = std::find_if(parts_.scan_inputs.begin(), parts_.scan_inputs.end(),
                                   [&](const auto& s) { return s.inner == slice; });
    if (scan == parts_.scan_inputs.end() || !graph_.type(scan->outer).is_static()) return false;
    x_ = &*scan;
    return true;
  }

  bool all_outputs_are_h() const {
    return std::all_of(parts_.scan_outputs.begin(), parts_.scan_outputs.end(), [&](const auto& scan) {
      return behind_views(parts_.body, scan.inner) == cell_.h_out && parts_.body.type(scan.inner).is_static();
    });
  }

  // ---- Emission ----

  bool replace() {
    const ValueId x = sequence();
    length_ = graph_.type(x).shape()[0].value();
    if (length_ == 0) return false;
    const LayerInputs from{x, h_->outer, is_lstm() ? c_->outer : ValueId{}};
    const Provenance provenance = graph_.node(scan_).provenance();
    const NodeId fused = add_layer(graph_, context_, cell_, weights_of(parts_.body, cell_), from, provenance);
    if (!fused.is_valid()) return false;
    const std::vector<ValueId> results = graph_.node(fused).outputs();
    for (const auto& scan : parts_.scan_outputs) replace_value(graph_, scan.result, stacked(results[0], scan));
    replace_value(graph_, h_->result, reshaped(graph_, results[1], dims_of(parts_.body, h_->inner)));
    if (is_lstm()) replace_value(graph_, c_->result, reshaped(graph_, results[2], dims_of(parts_.body, c_->inner)));
    graph_.erase_node(scan_);
    return true;
  }

  static Dims dims_of(const Graph& graph, ValueId v) { return graph.type(v).shape().static_dims(); }

  ValueId backwards(ValueId v, int64_t axis) {
    return slice(Var(graph_, v), {-1}, {std::numeric_limits<int64_t>::min()}, {axis}, {-1}).id();
  }

  // Moves an axis to another place.
  ValueId moved(ValueId v, int64_t from, int64_t to) {
    if (from == to) return v;
    std::vector<int64_t> perm;
    for (int64_t axis = 0; axis < graph_.type(v).shape().rank(); ++axis) {
      if (axis != from) perm.push_back(axis);
    }
    perm.insert(perm.begin() + to, from);
    return transpose(Var(graph_, v), perm).id();
  }

  // All x, one below the other: [length, batch, input].
  ValueId sequence() {
    const ValueId in_order = x_->is_backwards ? backwards(x_->outer, x_->axis) : x_->outer;
    const ValueId by_time = moved(in_order, x_->axis, 0);
    const Dims x = dims_of(parts_.body, cell_.x);
    return reshaped(graph_, by_time, {dims_of(graph_, by_time)[0], x[0], x[1]});
  }

  // y, [length, 1, batch, hidden], as the scan stacked h.
  ValueId stacked(ValueId y, const LoopParts::ScanOutput& scan) {
    Dims dims = dims_of(parts_.body, scan.inner);
    dims.insert(dims.begin(), length_);
    const ValueId by_time = reshaped(graph_, y, dims);
    return moved(scan.is_backwards ? backwards(by_time, 0) : by_time, 0, scan.axis);
  }

  Graph& graph_;
  const NodeId scan_;
  const LoopParts parts_;
  const PassContext& context_;
  RecurrentCell cell_;
  const LoopParts::State* h_ = nullptr;
  const LoopParts::State* c_ = nullptr;
  const LoopParts::ScanInput* x_ = nullptr;
  int64_t length_ = 0;
};

}  // namespace

bool fuse_scanned_cell(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (&graph.node(id).op() != &scan_def()) continue;
    auto parts = read_loop(graph, id, [&](Graph& body) {
      eliminate_identity(body, context);
      fold_constants(body, context);
      common_subexpressions(body, context);
      dead_code(body, context);
    });
    if (parts) changed = ScannedCell(graph, id, std::move(*parts), context).fuse() || changed;
  }
  if (changed) infer_types(graph);
  return changed;
}

}  // namespace autograph
