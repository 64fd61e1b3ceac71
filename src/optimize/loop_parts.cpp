#include "optimize/loop_parts.h"

#include <algorithm>
#include <functional>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "graph/nested/copy_node.h"
#include "graph/nodes_behind.h"
#include "ops/defs.h"
#include "optimize/match.h"

namespace autograph {
namespace {

// M and the first condition; the turn and the condition.
constexpr size_t kLoopInputs = 2;

int64_t listed(const Attributes& attributes, std::string_view name, size_t k) {
  const auto* list = attributes.find_as<std::vector<int64_t>>(name);
  return list && k < list->size() ? (*list)[k] : 0;
}

int64_t from_front(int64_t axis, const Type& type, int64_t added) {
  return axis < 0 && type.is_tensor() && type.shape().has_rank() ? axis + type.shape().rank() + added : axis;
}

// Sorts the inputs and outputs of a node by what they are for.
class LoopReader {
 public:
  LoopReader(const Graph& graph, const Node& node) : graph_(graph), node_(node) {
    parts_.is_scan = &node.op() == &scan_def();
    parts_.body = *node.attributes().get<GraphRef>("body");
  }

  std::optional<LoopParts> read(const std::function<void(Graph&)>& tidy) {
    if (!sort_inputs()) return std::nullopt;
    set_types();
    try {
      infer_types(parts_.body);
      tidy(parts_.body);
    } catch (const UserError&) {
      return std::nullopt;
    }
    sort_outputs();
    return std::move(parts_);
  }

 private:
  bool sort_inputs() {
    const Attributes& attributes = node_.attributes();
    const auto num_captures = static_cast<size_t>(attributes.integer("num_captures"));
    const size_t formal = node_.inputs().size() - num_captures;
    const size_t first = parts_.is_scan ? 0 : kLoopInputs;
    if (formal < first || (parts_.is_scan && (attributes.flag("batched") || attributes.flag("has_sequence_lens"))))
      return false;
    const size_t scans = parts_.is_scan ? static_cast<size_t>(attributes.integer("num_scan_inputs")) : 0;
    if (parts_.body.inputs().size() != node_.inputs().size() || formal < first + scans) return false;
    for (size_t slot = first; slot < node_.inputs().size(); ++slot) {
      const ValueId outer = node_.input(slot), inner = parts_.body.inputs()[slot];
      if (!outer.is_valid()) return false;
      if (slot < formal - scans) {
        const ValueId result = node_.output(parts_.states.size());
        // What an optional leaves behind may be of another kind.
        if (graph_.type(result).kind() != graph_.type(outer).kind()) return false;
        parts_.states.push_back({outer, inner, {}, result});
      } else if (slot < formal) {
        const size_t k = parts_.scan_inputs.size();
        parts_.scan_inputs.push_back({outer, inner,
                                      from_front(listed(attributes, "scan_input_axes", k), graph_.type(outer), 0),
                                      listed(attributes, "scan_input_directions", k) == 1});
        if (parts_.scan_inputs.back().axis < 0) return false;
      } else {
        parts_.captures.push_back({outer, inner});
      }
    }
    if (parts_.is_scan) return true;
    parts_.limit = node_.input(0);
    parts_.first_condition = node_.input(1);
    parts_.turn = parts_.body.inputs()[0];
    parts_.condition = parts_.body.inputs()[1];
    return true;
  }

  void set_types() {
    Graph& body = parts_.body;
    for (const auto& state : parts_.states) body.set_type(state.inner, graph_.type(state.result));
    for (const auto& capture : parts_.captures) body.set_type(capture.inner, graph_.type(capture.outer));
    for (const auto& scan : parts_.scan_inputs) {
      const Type& whole = graph_.type(scan.outer);
      Shape shape = whole.shape();
      if (shape.has_rank()) shape.dims().erase(shape.dims().begin() + scan.axis);
      body.set_type(scan.inner, Type(whole.dtype(), std::move(shape)));
    }
    if (parts_.is_scan) return;
    body.set_type(parts_.turn, Type(DType::i64, {}));
    body.set_type(parts_.condition, Type(DType::boolean, Shape::unknown()));
  }

  void sort_outputs() {
    const std::vector<ValueId>& outputs = parts_.body.outputs();
    size_t slot = 0;
    if (!parts_.is_scan) parts_.next_condition = outputs[slot++];
    for (auto& state : parts_.states) state.next = outputs[slot++];
    for (size_t k = parts_.states.size(); k < node_.outputs().size(); ++k, ++slot) {
      const size_t number = k - parts_.states.size();
      const int64_t axis = listed(node_.attributes(), "scan_output_axes", number);
      parts_.scan_outputs.push_back({outputs[slot], node_.output(k),
                                     from_front(axis, parts_.body.type(outputs[slot]), 1),
                                     listed(node_.attributes(), "scan_output_directions", number) == 1});
    }
  }

  const Graph& graph_;
  const Node& node_;
  LoopParts parts_;
};

// Copies what some values of a graph need into a new one; ids that are handed over become those of the copy.
class BodyCopy {
 public:
  explicit BodyCopy(Graph source)
      : source_(std::move(source)), copy_(source_.name()), copy_of_(source_.value_capacity()) {}

  void add_input(ValueId& v) {
    const ValueId copy = copy_.add_input(source_.type(v), source_.value(v).name());
    copy_of_[v.index] = copy;
    v = copy;
  }

  void add_output(ValueId& v) { outputs_.push_back(&v); }

  Graph finish() {
    std::vector<ValueId> wanted = source_.kept();
    for (const ValueId* v : outputs_) wanted.push_back(*v);
    const auto is_copied = [&](ValueId v) { return copy_of_[v.index].is_valid(); };
    const std::vector<uint8_t> needed = nodes_behind(source_, std::move(wanted), is_copied);
    for (const NodeId id : source_.topological_order()) {
      if (needed[id.index]) copy(source_.node(id));
    }
    for (ValueId* v : outputs_) {
      *v = copy_value(*v);
      copy_.add_output(*v);
    }
    infer_types(copy_);
    return std::move(copy_);
  }

 private:
  ValueId copy_value(ValueId v) {
    if (!v.is_valid()) return v;
    ValueId& copy = copy_of_[v.index];
    if (!copy.is_valid()) copy = copy_.add_constant(source_.value(v).constant(), source_.value(v).name());
    return copy;
  }

  void copy(const Node& node) {
    for (const ValueId v : node.inputs()) copy_value(v);
    copy_node(copy_, node, copy_of_);
    for (const ValueId v : node.outputs()) copy_.set_value_name(copy_of_[v.index], source_.value(v).name());
  }

  Graph source_, copy_;
  std::vector<ValueId> copy_of_;  // by value of the source
  std::vector<ValueId*> outputs_;
};

void set_list(Attributes& attributes, std::string_view name, const std::vector<int64_t>& list) {
  if (std::any_of(list.begin(), list.end(), [](int64_t v) { return v != 0; })) attributes.set(name, list);
}

Attributes attributes_of(const LoopParts& parts) {
  Attributes attributes{{"body", std::make_shared<const Graph>(parts.body)},
                        {"num_captures", static_cast<int64_t>(parts.captures.size())}};
  if (!parts.is_scan) return attributes;
  attributes.set("num_scan_inputs", static_cast<int64_t>(parts.scan_inputs.size()));
  std::vector<int64_t> axes, directions;
  for (const auto& scan : parts.scan_inputs) {
    axes.push_back(scan.axis);
    directions.push_back(static_cast<int64_t>(scan.is_backwards));
  }
  set_list(attributes, "scan_input_axes", axes);
  set_list(attributes, "scan_input_directions", directions);
  axes.clear();
  directions.clear();
  for (const auto& scan : parts.scan_outputs) {
    axes.push_back(scan.axis);
    directions.push_back(static_cast<int64_t>(scan.is_backwards));
  }
  set_list(attributes, "scan_output_axes", axes);
  set_list(attributes, "scan_output_directions", directions);
  return attributes;
}

}  // namespace

void LoopParts::rebuild() {
  BodyCopy copy(std::move(body));
  if (!is_scan) {
    copy.add_input(turn);
    copy.add_input(condition);
  }
  for (State& state : states) copy.add_input(state.inner);
  for (ScanInput& scan : scan_inputs) copy.add_input(scan.inner);
  for (Capture& capture : captures) copy.add_input(capture.inner);
  if (!is_scan) copy.add_output(next_condition);
  for (State& state : states) copy.add_output(state.next);
  for (ScanOutput& scan : scan_outputs) copy.add_output(scan.inner);
  body = copy.finish();
}

void LoopParts::replace_inner(ValueId from, ValueId to) {
  body.replace_uses(from, to);
  for (State& state : states) {
    if (state.next == from) state.next = to;
  }
  for (ScanOutput& scan : scan_outputs) {
    if (scan.inner == from) scan.inner = to;
  }
  if (next_condition == from) next_condition = to;
}

bool LoopParts::leaves_body(ValueId inner) const {
  return next_condition == inner ||
         std::any_of(states.begin(), states.end(), [&](const State& state) { return state.next == inner; }) ||
         std::any_of(scan_outputs.begin(), scan_outputs.end(), [&](const ScanOutput& s) { return s.inner == inner; });
}

std::optional<LoopParts> read_loop(const Graph& graph, NodeId id, const std::function<void(Graph&)>& tidy) {
  const Node& node = graph.node(id);
  if (&node.op() != &loop_def() && &node.op() != &scan_def()) return std::nullopt;
  return LoopReader(graph, node).read(tidy);
}

NodeId write_loop(Graph& graph, NodeId old, LoopParts parts) {
  parts.rebuild();
  const auto is_unread = [&](const LoopParts::Capture& capture) {
    return parts.body.value(capture.inner).uses().empty() && !parts.leaves_body(capture.inner);
  };
  if (std::erase_if(parts.captures, is_unread) > 0) parts.rebuild();
  std::vector<ValueId> inputs;
  if (!parts.is_scan) inputs = {parts.limit, parts.first_condition};
  for (const auto& state : parts.states) inputs.push_back(state.outer);
  for (const auto& scan : parts.scan_inputs) inputs.push_back(scan.outer);
  for (const auto& capture : parts.captures) inputs.push_back(capture.outer);
  const auto num_outputs = static_cast<int>(parts.states.size() + parts.scan_outputs.size());
  const NodeId node = graph.add_node(parts.is_scan ? scan_def() : loop_def(), inputs, attributes_of(parts),
                                     {graph.node(old).provenance(), num_outputs});
  size_t slot = 0;
  for (const auto& state : parts.states) replace_value(graph, state.result, graph.node(node).output(slot++));
  for (const auto& scan : parts.scan_outputs) replace_value(graph, scan.result, graph.node(node).output(slot++));
  graph.erase_node(old);
  return node;
}

}  // namespace autograph
