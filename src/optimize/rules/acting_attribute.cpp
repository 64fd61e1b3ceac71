#include "optimize/rules/acting_attribute.h"

#include <algorithm>
#include <numeric>

#include "ops/defs.h"
#include "ops/window/window_geometry.h"
#include "optimize/rules/siblings.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

bool has_attribute(const OpDef& op, std::string_view name) { return find_attribute(op, name) != nullptr; }

// Strides, pads and auto_pad that mean what window_geometry.h says.
bool is_window_op(const OpDef& op) {
  return has_attribute(op, "auto_pad") && has_attribute(op, "kernel_shape") && !has_attribute(op, "output_padding");
}

Dims input_dims(const Graph& graph, const Node& node, size_t slot) {
  return graph.type(node.input(slot)).shape().static_dims();
}

size_t spatial_rank(const Graph& graph, const Node& node) {
  return static_cast<size_t>(graph.type(node.input(0)).shape().rank()) - 2;
}

Dims kernel_of(const Graph& graph, const Node& node) {
  if (const auto* given = node.attributes().find_as<std::vector<int64_t>>("kernel_shape")) return *given;
  const Dims weights = input_dims(graph, node, 1);
  return {weights.begin() + 2, weights.end()};
}

std::vector<int64_t> worked_out_pads(const Graph& graph, const Node& node) {
  const Dims x = input_dims(graph, node, 0);
  const WindowSpec spec = window_spec(node.attributes(), kernel_of(graph, node));
  const std::vector<WindowAxis> axes = resolve_windows(spec, std::span<const int64_t>(x).subspan(2));
  std::vector<int64_t> pads;
  for (const WindowAxis& axis : axes) pads.push_back(axis.pad_begin);
  for (const WindowAxis& axis : axes) pads.push_back(axis.pad_end);
  return pads;
}

}  // namespace

AttributeRole attribute_role(const OpDef& op, const AttributeSpec& spec) {
  const bool is_list = spec.type == AttributeType::integers;
  if (is_window_op(op)) {
    if (spec.name == "strides" || spec.name == "dilations") return AttributeRole::ones;
    if (spec.name == "pads") return AttributeRole::pads;
    if (spec.name == "auto_pad") return AttributeRole::auto_pad;
    if (spec.name == "kernel_shape" && !spec.required) return AttributeRole::ignored;
  }
  if (spec.name == "axis" && spec.type == AttributeType::integer) return AttributeRole::axis;
  if (spec.name == "perm" && is_list && &op == &transpose_def()) return AttributeRole::perm;
  if (spec.name == "num_outputs" && &op == &split_def()) return AttributeRole::ignored;
  if (spec.name == "hidden_size") return AttributeRole::ignored;  // must agree with the weights
  return AttributeRole::plain;
}

std::optional<AttributeValue> acting_attribute(const Graph& graph, const Node& node, const AttributeSpec& spec,
                                               AttributeRole role) {
  const AttributeValue* given = node.attributes().find(spec.name);
  switch (role) {
    case AttributeRole::plain: break;
    case AttributeRole::ignored: return std::nullopt;
    case AttributeRole::auto_pad: return std::string("NOTSET");
    case AttributeRole::ones:
      if (!given) return std::vector<int64_t>(spatial_rank(graph, node), 1);
      break;
    case AttributeRole::pads: {
      const std::string* mode = node.attributes().find_as<std::string>("auto_pad");
      if (mode && *mode != "NOTSET") return worked_out_pads(graph, node);
      if (!given) return std::vector<int64_t>(2 * spatial_rank(graph, node), 0);
      break;
    }
    case AttributeRole::axis: {
      if (!given) break;
      const int64_t axis = std::get<int64_t>(*given);
      return front_axis(axis, graph.type(node.input(0)).shape().rank());
    }
    case AttributeRole::perm: {
      if (given) break;
      std::vector<int64_t> reversed(static_cast<size_t>(graph.type(node.input(0)).shape().rank()));
      std::iota(reversed.rbegin(), reversed.rend(), 0);
      return reversed;
    }
  }
  return given ? std::optional(*given) : std::nullopt;
}

bool acts_as_default(const Graph& graph, const Node& node, const AttributeSpec& spec, AttributeRole role) {
  if (role == AttributeRole::ignored || role == AttributeRole::auto_pad) return true;
  const AttributeValue* given = node.attributes().find(spec.name);
  if (role == AttributeRole::ones) return !given || all_are(std::get<std::vector<int64_t>>(*given), 1);
  if (role == AttributeRole::pads) {
    return all_are(std::get<std::vector<int64_t>>(*acting_attribute(graph, node, spec, role)), 0);
  }
  if (!given) return true;
  if (!spec.default_value) return false;
  if (role == AttributeRole::axis) {
    const int64_t rank = graph.type(node.input(0)).shape().rank();
    const int64_t usual = std::get<int64_t>(*spec.default_value);
    return std::get<int64_t>(*acting_attribute(graph, node, spec, role)) == front_axis(usual, rank);
  }
  return equal(*given, *spec.default_value);
}

bool acts_as(const Graph& graph, const Node& node, const AttributeSpec& spec, AttributeRole role,
             const AttributeValue& literal) {
  const auto value = acting_attribute(graph, node, spec, role);
  if (!value)
    return acts_as_default(graph, node, spec, role) && spec.default_value && equal(literal, *spec.default_value);
  const auto* list = std::get_if<std::vector<int64_t>>(&*value);
  const auto* number = std::get_if<int64_t>(&literal);
  if (list && number) return all_are(*list, *number);
  if (role == AttributeRole::axis && number && *number < 0) {
    return std::get<int64_t>(*value) == *number + graph.type(node.input(0)).shape().rank();
  }
  return equal(*value, literal);
}

}  // namespace autograph
