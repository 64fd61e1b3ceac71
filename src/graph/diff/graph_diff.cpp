#include "autograph/graph_diff.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "autograph/compare_values.h"
#include "autograph/op_def.h"
#include "base/join.h"
#include "base/printable.h"
#include "graph/diff/match_nodes.h"
#include "graph/diff/without_copies.h"

namespace autograph {
namespace {

std::string name_of(const Node& node) {
  return node.provenance().empty() ? std::string(node.op().name) : node.provenance().to_string();
}

std::string name_of(const Graph& graph, ValueId id) {
  if (!id.is_valid()) return "none";
  const Value& value = graph.value(id);
  if (!value.name().empty()) return value.name();
  if (value.producer().is_valid()) {
    const std::string slot = value.slot() > 0 ? fmt::format(":{}", value.slot()) : "";
    return name_of(graph.node(value.producer())) + slot;
  }
  if (value.is_constant()) return to_string(value.constant());
  return fmt::format("input {}", value.slot());
}

struct AttributeText {
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(float value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return quoted(value); }
  std::string operator()(DType value) const { return std::string(to_string(value)); }
  std::string operator()(const Tensor& value) const { return to_string(value); }
  std::string operator()(const GraphRef& value) const { return fmt::format("a graph of {} nodes", value->num_nodes()); }
  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    std::vector<std::string> texts;
    for (const T& item : list) texts.push_back((*this)(item));
    return fmt::format("[{}]", join(texts, ", "));
  }
};

std::string text_of(const AttributeValue* value) { return value ? std::visit(AttributeText(), *value) : "none"; }

class Differ {
 public:
  Differ(const Graph& a, const Graph& b, double tolerance)
      : a_(a), b_(b), tolerance_(tolerance), pairs_(match_nodes(a, b)) {}

  GraphDiff run() {
    diff_inputs(a_.inputs(), b_.inputs(), GraphPart::input);
    diff_inputs(a_.states(), b_.states(), GraphPart::state);
    for (const NodeId id : a_.topological_order()) {
      const NodeId other = pairs_.of_a(id);
      const Node& node = a_.node(id);
      if (!other.is_valid()) {
        diff_.changes.push_back({ChangeKind::removed, GraphPart::node, name_of(node), std::string(node.op().name)});
      } else {
        diff_nodes(node, b_.node(other));
      }
    }
    for (const NodeId id : b_.topological_order()) {
      if (pairs_.of_b(id).is_valid()) continue;
      const Node& node = b_.node(id);
      diff_.changes.push_back({ChangeKind::added, GraphPart::node, name_of(node), std::string(node.op().name)});
    }
    diff_.changes.insert(diff_.changes.end(), weights_.begin(), weights_.end());
    diff_outputs();
    diff_.num_matched = pairs_.size();
    return std::move(diff_);
  }

 private:
  void add_changed(GraphPart part, std::string name, std::string op, std::vector<std::string> details) {
    if (details.empty()) return;
    diff_.changes.push_back({ChangeKind::changed, part, std::move(name), std::move(op), std::move(details)});
  }

  void diff_inputs(const std::vector<ValueId>& in_a, const std::vector<ValueId>& in_b, GraphPart part) {
    std::set<ValueId> seen;
    for (const ValueId id : in_a) {
      const ValueId other = pairs_.counterpart(id);
      if (!other.is_valid()) {
        diff_.changes.push_back({ChangeKind::removed, part, name_of(a_, id), "", {to_string(a_.type(id))}});
        continue;
      }
      seen.insert(other);
      std::vector<std::string> details = type_details(a_.type(id), b_.type(other), "type");
      if (a_.value(id).name() != b_.value(other).name()) {
        details.push_back(fmt::format("name: {} -> {}", name_of(a_, id), name_of(b_, other)));
      }
      if (a_.value(id).is_state() && details.empty()) {
        details = element_details(a_.value(id).initial(), b_.value(other).initial());
      }
      add_changed(part, name_of(a_, id), "", std::move(details));
    }
    for (const ValueId id : in_b) {
      if (seen.contains(id)) continue;
      diff_.changes.push_back({ChangeKind::added, part, name_of(b_, id), "", {to_string(b_.type(id))}});
    }
  }

  // By name where both have it, else by place.
  void diff_outputs() {
    std::set<size_t> seen;
    const auto find = [&](size_t k) {
      for (size_t other = 0; other < b_.outputs().size(); ++other) {
        if (b_.output_name(other) == a_.output_name(k) && !seen.contains(other)) return other;
      }
      return b_.outputs().size();
    };
    for (size_t k = 0; k < a_.outputs().size(); ++k) {
      const size_t other = find(k);
      if (other == b_.outputs().size()) {
        const std::string type = to_string(a_.type(a_.outputs()[k]));
        diff_.changes.push_back({ChangeKind::removed, GraphPart::output, a_.output_name(k), "", {type}});
        continue;
      }
      seen.insert(other);
      const ValueId in_a = a_.outputs()[k], in_b = b_.outputs()[other];
      std::vector<std::string> details = type_details(a_.type(in_a), b_.type(in_b), "type");
      if (!stands_for(in_a, in_b)) {
        details.push_back(fmt::format("value: {} -> {}", name_of(a_, in_a), name_of(b_, in_b)));
      }
      if (other != k) details.push_back(fmt::format("place: {} -> {}", k, other));
      add_changed(GraphPart::output, a_.output_name(k), "", std::move(details));
    }
    for (size_t k = 0; k < b_.outputs().size(); ++k) {
      if (seen.contains(k)) continue;
      const std::string type = to_string(b_.type(b_.outputs()[k]));
      diff_.changes.push_back({ChangeKind::added, GraphPart::output, b_.output_name(k), "", {type}});
    }
  }

  static std::vector<std::string> type_details(const Type& a, const Type& b, const std::string& what) {
    if (to_string(a) == to_string(b)) return {};
    return {fmt::format("{}: {} -> {}", what, to_string(a), to_string(b))};
  }

  std::vector<std::string> element_details(const Tensor& a, const Tensor& b) const {
    if (a.bitwise_equal(b)) return {};
    const Difference difference = compare_values(Datum(b), Datum(a), {.rtol = 0, .atol = 0});
    if (tolerance_ > 0 && difference.max_rel <= tolerance_) return {};
    if (difference.ok) return {"elements: other bits of the same values (signs of 0, or of NaN)"};
    return {fmt::format("elements: {} of {} differ, by {:.3g} at most, {:.3g} of the largest", difference.num_bad,
                        a.num_elements(), difference.max_abs, difference.max_rel)};
  }

  void diff_nodes(const Node& a, const Node& b) {
    std::vector<std::string> details;
    if (a.op().name != b.op().name) details.push_back(fmt::format("op: {} -> {}", a.op().name, b.op().name));
    diff_attributes(a.attributes(), b.attributes(), details);
    for (size_t slot = 0; slot < std::max(a.inputs().size(), b.inputs().size()); ++slot) {
      diff_operand(slot, a.input(slot), b.input(slot), details);
    }
    for (size_t k = 0; k < std::max(a.outputs().size(), b.outputs().size()); ++k) {
      const std::string in_a = k < a.outputs().size() ? to_string(a_.type(a.output(k))) : "none";
      const std::string in_b = k < b.outputs().size() ? to_string(b_.type(b.output(k))) : "none";
      if (in_a != in_b) details.push_back(fmt::format("output {}: {} -> {}", k, in_a, in_b));
    }
    add_changed(GraphPart::node, name_of(a), std::string(a.op().name), std::move(details));
  }

  void diff_attributes(const Attributes& a, const Attributes& b, std::vector<std::string>& details) const {
    std::set<std::string> names;
    for (const auto* attributes : {&a, &b}) {
      for (const auto& [name, value] : *attributes) names.insert(name);
    }
    for (const std::string& name : names) {
      const AttributeValue* in_a = a.find(name);
      const AttributeValue* in_b = b.find(name);
      if (in_a && in_b && equal(*in_a, *in_b)) continue;
      const auto* body_a = in_a ? std::get_if<GraphRef>(in_a) : nullptr;
      const auto* body_b = in_b ? std::get_if<GraphRef>(in_b) : nullptr;
      if (body_a && body_b) {
        for (const GraphChange& change : diff_graphs(**body_a, **body_b, tolerance_).changes) {
          details.push_back(fmt::format("{}: {}", name, to_string(change)));
        }
        continue;
      }
      details.push_back(fmt::format("attribute {}: {} -> {}", name, text_of(in_a), text_of(in_b)));
    }
  }

  // Two constants in the same place are one weight.
  bool are_weights(ValueId a, ValueId b) const {
    return a.is_valid() && b.is_valid() && a_.value(a).is_constant() && b_.value(b).is_constant();
  }

  bool stands_for(ValueId a, ValueId b) const {
    return a.is_valid() ? b.is_valid() && pairs_.counterpart(a) == b : !b.is_valid();
  }

  void diff_operand(size_t slot, ValueId a, ValueId b, std::vector<std::string>& details) {
    if (are_weights(a, b)) {
      diff_weights(a, b);
    } else if (!stands_for(a, b)) {
      details.push_back(fmt::format("input {}: {} -> {}", slot, name_of(a_, a), name_of(b_, b)));
    }
  }

  void diff_weights(ValueId a, ValueId b) {
    if (!seen_weights_.insert({a, b}).second) return;
    const Tensor& in_a = a_.value(a).constant();
    const Tensor& in_b = b_.value(b).constant();
    std::vector<std::string> details = type_details(in_a.type(), in_b.type(), "type");
    if (details.empty()) details = element_details(in_a, in_b);
    if (details.empty()) return;
    weights_.push_back({ChangeKind::changed, GraphPart::weight, name_of(a_, a), "", std::move(details)});
  }

  const Graph& a_;
  const Graph& b_;
  const double tolerance_;
  const NodePairs pairs_;
  GraphDiff diff_;
  std::vector<GraphChange> weights_;
  std::set<std::pair<ValueId, ValueId>> seen_weights_;
};

}  // namespace

std::string_view to_string(GraphPart part) {
  switch (part) {
    case GraphPart::node: return "node";
    case GraphPart::weight: return "weight";
    case GraphPart::input: return "input";
    case GraphPart::output: return "output";
    case GraphPart::state: return "state";
  }
  return "?";
}

std::string_view to_string(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::added: return "added";
    case ChangeKind::removed: return "removed";
    case ChangeKind::changed: return "changed";
  }
  return "?";
}

std::string to_string(const GraphChange& change) {
  std::string text = fmt::format("{} {}", to_string(change.part), change.name);
  if (!change.op.empty()) text += fmt::format(" ({})", change.op);
  text += fmt::format(" {}", to_string(change.kind));
  return change.details.empty() ? text : text + ": " + join(change.details, "; ");
}

GraphDiff diff_graphs(const Graph& a, const Graph& b, double tolerance) {
  const Graph in_a = without_copies(a), in_b = without_copies(b);
  return Differ(in_a, in_b, tolerance).run();
}

}  // namespace autograph
