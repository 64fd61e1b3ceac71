// count_turns: a loop whose turns can be counted ahead of time becomes a scan.
//
//   for t in range(n): y[t], h = f(x[t], h)      becomes      y, h = scan(f, h, x)
//
// Counters, conditions and the arithmetic on them (LoopControl) leave the body: what the rest reads of them comes in as
// a table with a row for each turn, and slices of a captured tensor that are taken at positions 0, 1, 2, ... (or
// backwards) become a scan input. The shapes of what is stacked are known then. Untouched: loops whose condition
// depends on what they compute, that carry anything but tensors, or that make no turn.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "graph/nodes_behind.h"
#include "ops/defs.h"
#include "optimize/loop_control.h"
#include "optimize/loop_parts.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// Positions that a turn takes from a captured tensor, all along one axis.
struct Taking {
  ValueId from;  // inner
  int64_t axis = 0;
  std::vector<int64_t> positions;  // by turn
};

class TurnCounter {
 public:
  TurnCounter(Graph& graph, NodeId id, LoopParts parts, const KnownValues& known)
      : graph_(graph), id_(id), parts_(std::move(parts)), control_(graph, known, parts_) {}

  bool convert() {
    const auto is_tensor = [&](const auto& state) { return parts_.body.type(state.inner).is_tensor(); };
    if (!std::all_of(parts_.states.begin(), parts_.states.end(), is_tensor)) return false;
    if (!control_.run() || control_.num_turns() == 0) return false;
    for (const NodeId node : parts_.body.nodes()) take_slices(node);
    release_states();
    release_scan_outputs();
    feed_tables();
    if (parts_.states.empty() && parts_.scan_outputs.empty()) return graph_.erase_node(id_), true;
    if (parts_.scan_inputs.empty()) add_table(parts_.turn, parts_.body.add_input(Type(DType::i64, {})));
    parts_.is_scan = true;
    parts_.limit = parts_.first_condition = parts_.next_condition = {};
    write_loop(graph_, id_, std::move(parts_));
    return true;
  }

 private:
  // ---- Slices of captured tensors ----

  std::vector<int64_t> positions(ValueId inner, int64_t extent) const {
    if (!control_.has(inner)) return {};
    const Tensor table = control_.table(inner);
    if (table.num_elements() != control_.num_turns() || !dtypes::kIndex.contains(table.dtype())) return {};
    std::vector<int64_t> list = table.to_i64();
    for (int64_t& at : list) at = at < 0 ? at + extent : at;
    const bool all_inside = std::all_of(list.begin(), list.end(), [&](int64_t at) { return at >= 0 && at < extent; });
    return all_inside ? list : std::vector<int64_t>();
  }

  std::optional<Taking> read_gather(const Node& node) const {
    const Type& x = parts_.body.type(node.input(0));
    if (&node.op() != &gather_def() || !x.is_static()) return std::nullopt;
    Taking taking{node.input(0), front_axis(node.attributes().integer("axis"), x.shape().rank()), {}};
    taking.positions = positions(node.input(1), x.shape()[taking.axis].value());
    return taking;
  }

  // x[t:t+1] along one axis.
  std::optional<Taking> read_slice(const Node& node) const {
    if (&node.op() != &slice_def() || !parts_.body.type(node.input(0)).is_static()) return std::nullopt;
    const Shape& x = parts_.body.type(node.input(0)).shape();
    const auto axes =
        node.input(3).is_valid() ? integer_constants(parts_.body, node.input(3)) : std::vector{int64_t{0}};
    if (!axes || axes->size() != 1) return std::nullopt;
    if (node.input(4).is_valid() && integer_constants(parts_.body, node.input(4)) != std::vector{int64_t{1}})
      return std::nullopt;
    Taking taking{node.input(0), axes->front() < 0 ? axes->front() + x.rank() : axes->front(), {}};
    taking.positions = positions(node.input(1), x[taking.axis].value());
    if (!control_.has(node.input(2)) || taking.positions.empty()) return std::nullopt;
    const std::vector<int64_t> ends = control_.table(node.input(2)).to_i64();
    for (size_t t = 0; t < ends.size(); ++t) {
      if (ends[t] != taking.positions[t] + 1) return std::nullopt;
    }
    return taking;
  }

  void take_slices(NodeId id) {
    const Node& node = parts_.body.node(id);
    auto taking = read_gather(node);
    if (!taking) taking = read_slice(node);
    if (!taking || taking->positions.empty()) return;
    const auto capture = std::find_if(parts_.captures.begin(), parts_.captures.end(),
                                      [&](const auto& c) { return c.inner == taking->from; });
    if (capture == parts_.captures.end() || !parts_.body.type(node.output(0)).is_tensor()) return;
    const bool is_backwards = control_.num_turns() > 1 && taking->positions[1] < taking->positions[0];
    const auto outer = slices_in_order(*taking, capture->outer, is_backwards);
    if (!outer) return;
    const Type& whole = parts_.body.type(taking->from);
    Shape shape = whole.shape();
    shape.dims().erase(shape.dims().begin() + taking->axis);
    const Type slice(whole.dtype(), shape);
    const Type expected = Type(whole.dtype(), with_one(shape, node, taking->axis));
    const ValueId inner = parts_.body.add_input(slice);
    parts_.scan_inputs.push_back({*outer, inner, taking->axis, is_backwards});
    const bool is_whole = expected == slice;
    const ValueId taken = is_whole ? inner : reshaped(parts_.body, inner, expected.shape().static_dims());
    parts_.replace_inner(parts_.body.node(id).output(0), taken);
    parts_.body.erase_node(id);
  }

  // What the node gives of a slice: without the axis, or with extents of 1 in its place.
  Shape with_one(Shape shape, const Node& node, int64_t axis) const {
    const int64_t ones = &node.op() == &slice_def() ? 1 : parts_.body.type(node.input(1)).shape().rank();
    shape.dims().insert(shape.dims().begin() + axis, static_cast<size_t>(ones), Dim(1));
    return shape;
  }

  // The tensor, or the part of it, whose slices are those taken; nothing when they are not neighbours.
  std::optional<ValueId> slices_in_order(const Taking& taking, ValueId outer, bool is_backwards) {
    const std::vector<int64_t>& at = taking.positions;
    for (size_t t = 1; t < at.size(); ++t) {
      if (at[t] - at[t - 1] != (is_backwards ? -1 : 1)) return std::nullopt;
    }
    const int64_t first = is_backwards ? at.back() : at.front();
    const auto count = static_cast<int64_t>(at.size());
    if (count == parts_.body.type(taking.from).shape()[taking.axis].value()) return outer;
    return autograph::slice(Var(graph_, outer), {first}, {first + count}, {taking.axis}).id();
  }

  // ---- Control ----

  void release_states() {
    const auto is_control = [&](const auto& state) { return control_.has(state.inner); };
    for (const auto& state : parts_.states) {
      if (is_control(state)) replace_value(graph_, state.result, graph_.add_constant(control_.last(state)));
    }
    // They stay inputs of the body until it is made anew; what is read of them comes from tables.
    for (const auto& state : parts_.states) {
      if (is_control(state)) released_.push_back(state.inner);
    }
    std::erase_if(parts_.states, is_control);
  }

  void release_scan_outputs() {
    const auto is_control = [&](const auto& scan) { return control_.has(scan.inner); };
    for (const auto& scan : parts_.scan_outputs) {
      if (is_control(scan)) replace_value(graph_, scan.result, graph_.add_constant(control_.table(scan.inner)));
    }
    std::erase_if(parts_.scan_outputs, is_control);
  }

  void add_table(ValueId control, ValueId inner) {
    parts_.scan_inputs.push_back({graph_.add_constant(control_.table(control)), inner, 0, false});
  }

  // What nodes that stay read of the control.
  void feed_tables() {
    Graph& body = parts_.body;
    std::vector<uint8_t> stays = staying_nodes();
    std::vector<ValueId> controls{parts_.turn, parts_.condition};
    controls.insert(controls.end(), released_.begin(), released_.end());
    for (const NodeId id : body.nodes()) {
      const auto& outputs = body.node(id).outputs();
      std::copy_if(outputs.begin(), outputs.end(), std::back_inserter(controls),
                   [&](ValueId v) { return control_.has(v); });
    }
    for (const ValueId v : controls) {
      const auto& uses = body.value(v).uses();
      const bool is_read = std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return stays[use.node.index]; });
      const bool leaves =
          std::any_of(parts_.states.begin(), parts_.states.end(), [&](const auto& state) { return state.next == v; });
      if (!is_read && !leaves) continue;
      const ValueId inner = body.add_input(body.type(v));
      add_table(v, inner);
      parts_.replace_inner(v, inner);
    }
  }

  // Nodes that the states and scan outputs left need, but for those of the control.
  std::vector<uint8_t> staying_nodes() const {
    std::vector<ValueId> needed;
    for (const auto& state : parts_.states) needed.push_back(state.next);
    for (const auto& scan : parts_.scan_outputs) needed.push_back(scan.inner);
    return nodes_behind(parts_.body, std::move(needed), [&](ValueId v) { return control_.has(v); });
  }

  Graph& graph_;
  const NodeId id_;
  LoopParts parts_;
  LoopControl control_;
  std::vector<ValueId> released_;  // inner values of states that are control
};

}  // namespace

namespace {

// What the body reads in the first turn; LoopControl sees to it that it stays so.
Type condition_type(const Graph& graph, ValueId first) {
  return first.is_valid() && graph.type(first).is_static() ? graph.type(first) : Type(DType::boolean, {});
}

}  // namespace

bool count_turns(Graph& graph, PassContext& context) {
  bool changed = false;
  const std::vector<NodeId> nodes = graph.topological_order();
  const auto is_loop = [&](NodeId id) { return &graph.node(id).op() == &loop_def(); };
  if (std::none_of(nodes.begin(), nodes.end(), is_loop)) return false;
  KnownValues known = infer_types(graph);
  for (const NodeId id : nodes) {
    if (!is_loop(id)) continue;
    const Type condition = condition_type(graph, graph.node(id).input(1));
    auto parts = read_loop(graph, id, [&](Graph& body) {
      body.set_type(body.inputs()[1], condition);
      eliminate_identity(body, context);
      fold_constants(body, context);
    });
    if (!parts || !TurnCounter(graph, id, std::move(*parts), known).convert()) continue;
    changed = true;
    // Loops behind this one may count what it stacked.
    known = infer_types(graph);
  }
  return changed;
}

}  // namespace autograph
