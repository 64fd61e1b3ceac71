// simplify_loops: what is the same in every turn leaves a loop or scan.
//
//   states that the body hands on as they are         become captured values, their results the initial values
//   captured constants                                become constants of the body, whose kernels pack them once
//   nodes that read captured values and constants     are computed once, in front of the loop
//   states and scan outputs that nobody needs         go
//
// Where a loop may make no turn at all, only nodes that cannot fail are moved out: of known shapes, and without
// integers from which a position is taken. Loops inside the body are simplified first.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "graph/nested/copy_node.h"
#include "optimize/loop_parts.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool is_float_or_bool(DType dtype) { return dtypes::kFloat.contains(dtype) || dtype == DType::boolean; }

class LoopSimplifier {
 public:
  LoopSimplifier(Graph& graph, LoopParts& parts)
      : graph_(graph), parts_(parts), makes_a_turn_(makes_a_turn(graph, parts)) {}

  bool simplify() {
    bool changed = release_invariant_states();
    changed = merge_captures() || changed;
    changed = take_constants() || changed;
    changed = move_out() || changed;
    changed = drop_unneeded() || changed;
    if (changed) parts_.rebuild();
    return drop_unread_captures() || changed;
  }

 private:
  bool release_invariant_states() {
    const size_t before = parts_.states.size();
    for (const auto& state : parts_.states) {
      if (state.next != state.inner) continue;
      parts_.captures.push_back({state.outer, state.inner});
      replace_value(graph_, state.result, state.outer);
    }
    std::erase_if(parts_.states, [](const auto& state) { return state.next == state.inner; });
    return parts_.states.size() != before;
  }

  bool merge_captures() {
    std::vector<LoopParts::Capture> kept;
    for (const auto& capture : parts_.captures) {
      const auto first =
          std::find_if(kept.begin(), kept.end(), [&](const auto& k) { return k.outer == capture.outer; });
      if (first == kept.end()) {
        kept.push_back(capture);
      } else {
        parts_.replace_inner(capture.inner, first->inner);
      }
    }
    std::swap(kept, parts_.captures);
    return kept.size() != parts_.captures.size();
  }

  bool take_constants() {
    const auto is_constant = [&](const auto& capture) { return graph_.value(capture.outer).is_constant(); };
    for (const auto& capture : parts_.captures) {
      if (!is_constant(capture)) continue;
      const Value& outer = graph_.value(capture.outer);
      parts_.replace_inner(capture.inner, parts_.body.add_constant(outer.constant(), outer.name()));
    }
    return std::erase_if(parts_.captures, is_constant) > 0;
  }

  // ---- Nodes that are the same in every turn ----

  bool can_move(const Node& node) const {
    const OpDef& op = node.op();
    if (!op.traits.pure || op.traits.random || op.evaluate || (!op.reference && !op.scalar && !op.decompose))
      return false;
    const auto is_static = [&](ValueId v) {
      return parts_.body.type(v).is_tensor() && parts_.body.type(v).is_static();
    };
    if (!std::all_of(node.outputs().begin(), node.outputs().end(), is_static)) return false;
    const bool reads_no_positions = op.traits.elementwise || op.traits.view || op.traits.reads_shape_only;
    return std::all_of(node.inputs().begin(), node.inputs().end(), [&](ValueId v) {
      if (!v.is_valid()) return true;
      if (!outer_of_[v.index].is_valid() && !parts_.body.value(v).is_constant()) return false;
      return makes_a_turn_ || reads_no_positions || is_float_or_bool(parts_.body.type(v).dtype());
    });
  }

  // Is there certainly a first turn?
  static bool makes_a_turn(const Graph& graph, const LoopParts& parts) {
    if (parts.is_scan) {
      const auto& scan = parts.scan_inputs.front();
      const Shape& shape = graph.type(scan.outer).shape();
      return shape.has_rank() && shape[scan.axis].value_or(0) > 0;
    }
    const auto limit = parts.limit.is_valid() ? integer_constants(graph, parts.limit) : std::vector<int64_t>{1};
    if (!limit || limit->size() != 1 || limit->front() < 1) return false;
    if (!parts.first_condition.is_valid()) return true;
    const Tensor& condition = graph.value(parts.first_condition).constant();
    return condition.is_present() && condition.num_elements() == 1 && *condition.data<bool>();
  }

  // What is not captured is a constant of the body.
  void bring_out(ValueId inner) {
    if (!inner.is_valid() || outer_of_[inner.index].is_valid()) return;
    outer_of_[inner.index] = graph_.add_constant(parts_.body.value(inner).constant(), parts_.body.value(inner).name());
  }

  bool move_out() {
    outer_of_.resize(parts_.body.value_capacity());
    for (const auto& capture : parts_.captures) outer_of_[capture.inner.index] = capture.outer;
    std::vector<NodeId> moved;
    for (const NodeId id : parts_.body.topological_order()) {
      const Node& node = parts_.body.node(id);
      if (!can_move(node)) continue;
      for (const ValueId v : node.inputs()) bring_out(v);
      copy_node(graph_, node, outer_of_);
      moved.push_back(id);
    }
    for (const NodeId id : moved) capture_results(id, moved);
    return !moved.empty();
  }

  // What the nodes that stay read of one that moved comes in from outside.
  void capture_results(NodeId id, const std::vector<NodeId>& moved) {
    const std::vector<ValueId> outputs = parts_.body.node(id).outputs();
    for (const ValueId v : outputs) {
      const auto& uses = parts_.body.value(v).uses();
      const bool is_read = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
        return std::find(moved.begin(), moved.end(), use.node) == moved.end();
      });
      if (!is_read && !parts_.leaves_body(v)) continue;
      const ValueId inner = parts_.body.add_input(parts_.body.type(v));
      parts_.captures.push_back({outer_of_[v.index], inner});
      parts_.replace_inner(v, inner);
    }
  }

  // ---- What nobody needs ----

  bool drop_unneeded() {
    std::vector<uint8_t> needed(parts_.body.value_capacity(), 0);
    std::vector<ValueId> open;
    const auto need = [&](ValueId v) {
      if (!v.is_valid() || needed[v.index]) return;
      needed[v.index] = 1;
      open.push_back(v);
    };
    need(parts_.next_condition);
    for (const auto& state : parts_.states) {
      if (num_reads(graph_, state.result) > 0) need(state.next), need(state.inner);
    }
    for (const auto& scan : parts_.scan_outputs) {
      if (num_reads(graph_, scan.result) > 0) need(scan.inner);
    }
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      for (const auto& state : parts_.states) {
        if (state.inner == v) need(state.next);
      }
      const NodeId producer = parts_.body.value(v).producer();
      if (!producer.is_valid()) continue;
      for (const ValueId input : parts_.body.node(producer).inputs()) need(input);
    }
    const auto unneeded_state = [&](const auto& state) { return !needed[state.inner.index]; };
    const auto unneeded_scan = [&](const auto& scan) { return num_reads(graph_, scan.result) == 0; };
    const bool leaves_nothing = std::all_of(parts_.states.begin(), parts_.states.end(), unneeded_state) &&
                                std::all_of(parts_.scan_outputs.begin(), parts_.scan_outputs.end(), unneeded_scan);
    if (leaves_nothing) return false;  // nobody needs the loop at all
    const size_t dropped = std::erase_if(parts_.states, unneeded_state);
    return std::erase_if(parts_.scan_outputs, unneeded_scan) + dropped > 0;
  }

  bool drop_unread_captures() {
    Graph& body = parts_.body;
    return std::erase_if(parts_.captures, [&](const auto& capture) {
             return body.value(capture.inner).uses().empty() && !parts_.leaves_body(capture.inner);
           }) > 0;
  }

  Graph& graph_;
  LoopParts& parts_;
  const bool makes_a_turn_;
  std::vector<ValueId> outer_of_;  // by inner value: what stands for it outside where it does not change
};

}  // namespace

bool simplify_loops(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (!graph.node(id).op().traits.control_flow) continue;
    bool inside_changed = false;
    auto parts = read_loop(graph, id, [&](Graph& body) {
      eliminate_identity(body, context);
      fold_constants(body, context);
      // Exporters of paddle hand a state on as squeeze(unsqueeze(x) + 0).
      simplify_arithmetic(body, context);
      simplify_shapes(body, context);
      inside_changed = simplify_loops(body, context);
      common_subexpressions(body, context);
    });
    if (!parts) continue;
    if (!LoopSimplifier(graph, *parts).simplify() && !inside_changed) continue;
    if (parts->states.empty() && parts->scan_outputs.empty()) {
      graph.erase_node(id);
    } else {
      write_loop(graph, id, std::move(*parts));
    }
    changed = true;
  }
  if (changed) infer_types(graph);
  return changed;
}

}  // namespace autograph
