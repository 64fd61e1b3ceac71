#include "optimize/rules/families/conv/conv_form.h"

#include <algorithm>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/acting_attribute.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

std::vector<int64_t> acting_list(const Graph& graph, const Node& node, std::string_view name) {
  const AttributeSpec& spec = *find_attribute(node.op(), name);
  return std::get<std::vector<int64_t>>(*acting_attribute(graph, node, spec, attribute_role(node.op(), spec)));
}

// [M, rest...] as [group, M / group, rest...].
ValueId by_group(RuleBuilder& builder, ValueId value, int64_t group) {
  Dims dims = builder.dims(value);
  dims[0] /= group;
  dims.insert(dims.begin(), group);
  return builder.reshape(value, dims);
}

// The values one after the other along axis 0, group by group.
ValueId interleaved(RuleBuilder& builder, std::vector<ValueId> values, int64_t group) {
  if (group == 1) return builder.concat(std::move(values), 0);
  for (ValueId& value : values) value = by_group(builder, value, group);
  const ValueId joined = builder.concat(std::move(values), 1);
  Dims dims = builder.dims(joined);
  dims[1] *= dims[0];
  dims.erase(dims.begin());
  return builder.reshape(joined, dims);
}

}  // namespace

bool ConvForm::same_steps(const ConvForm& other) const {
  return strides == other.strides && dilations == other.dilations;
}

bool ConvForm::same_window(const ConvForm& other) const {
  return same_steps(other) && pads == other.pads && kernel == other.kernel;
}

ConvForm conv_form(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  ConvForm form;
  form.node = id;
  form.x = node.input(0);
  form.w = node.input(1);
  form.b = node.input(2);
  form.strides = acting_list(graph, node, "strides");
  form.pads = acting_list(graph, node, "pads");
  form.dilations = acting_list(graph, node, "dilations");
  form.group = node.attributes().integer("group");
  const Dims weights = dims_of(graph, form.w);
  form.kernel.assign(weights.begin() + 2, weights.end());
  form.out_channels = weights[0];
  return form;
}

ConvForm conv_form(const RuleMatch& match, size_t statement) {
  return conv_form(match.graph(), match.nodes()[statement]);
}

std::optional<ConvForm> weighted_conv(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId bias = node.input(2);
  if (!graph.type(node.output(0)).is_static() || !graph.type(node.input(0)).is_static()) return std::nullopt;
  if (!is_weight(graph, node.input(1)) || (bias.is_valid() && !is_weight(graph, bias))) return std::nullopt;
  return conv_form(graph, id);
}

bool are_groups(const Graph& graph, const ConvForm& a, const ConvForm& b) {
  return a.same_window(b) && graph.type(a.x).dtype() == graph.type(b.x).dtype() &&
         same_dims_but(dims_of(graph, a.x), dims_of(graph, b.x), 1) &&
         dims_of(graph, a.w)[1] == dims_of(graph, b.w)[1] && a.out_channels * b.group == b.out_channels * a.group;
}

bool is_pointwise(const Dims& weights) {
  return std::all_of(weights.begin() + 2, weights.end(), [](int64_t extent) { return extent == 1; });
}

Attributes attributes_of(const ConvForm& form) {
  return {{"strides", form.strides}, {"pads", form.pads}, {"dilations", form.dilations}, {"group", form.group}};
}

std::optional<ConvForm> common_window(const Graph& graph, const ConvForm& a, const ConvForm& b) {
  if (!a.same_steps(b) || a.kernel.size() != b.kernel.size()) return std::nullopt;
  const Dims y = dims_of(graph, graph.node(a.node).output(0));
  if (!same_dims_but(y, dims_of(graph, graph.node(b.node).output(0)), 1)) return std::nullopt;
  const size_t rank = a.kernel.size();
  ConvForm window = a;
  for (size_t axis = 0; axis < rank; ++axis) {
    // Taps lie at k * dilation - begin; what is read behind the last one follows from the extents.
    const int64_t step = a.dilations[axis];
    const int64_t begin = std::max(a.pads[axis], b.pads[axis]);
    if ((a.pads[axis] - b.pads[axis]) % step != 0) return std::nullopt;
    const int64_t last =
        std::max((a.kernel[axis] - 1) * step - a.pads[axis], (b.kernel[axis] - 1) * step - b.pads[axis]);
    const int64_t span = last + begin;
    const int64_t in = dims_of(graph, a.x)[axis + 2];
    // Just as much at the end as the last window needs, or nothing.
    const int64_t end = (y[axis + 2] - 1) * a.strides[axis] + span + 1 - in - begin;
    window.pads[axis] = begin;
    window.pads[axis + rank] = std::max<int64_t>(end, 0);
    window.kernel[axis] = span / step + 1;
    if (end < 1 - a.strides[axis]) return std::nullopt;  // one more window would fit
  }
  return window;
}

ValueId enlarged_weights(RuleBuilder& builder, const ConvForm& form, const ConvForm& window) {
  if (form.kernel == window.kernel) return form.w;
  std::vector<int64_t> before{0, 0};
  std::vector<int64_t> after{0, 0};
  for (size_t axis = 0; axis < form.kernel.size(); ++axis) {
    before.push_back((window.pads[axis] - form.pads[axis]) / form.dilations[axis]);
    after.push_back(window.kernel[axis] - form.kernel[axis] - before.back());
  }
  before.insert(before.end(), after.begin(), after.end());
  return builder.add(pad_def(), {form.w, builder.integers(before)});
}

ValueId add_conv(RuleBuilder& builder, const ConvForm& form, ValueId x, ValueId w, ValueId bias, int64_t group) {
  ConvForm with_group = form;
  with_group.group = group;
  std::vector<ValueId> inputs{x, w};
  if (bias.is_valid()) inputs.push_back(bias);
  return builder.add(conv_def(), inputs, attributes_of(with_group));
}

std::vector<ValueId> weights_of(const std::vector<ConvForm>& forms) {
  std::vector<ValueId> weights;
  for (const ConvForm& form : forms) weights.push_back(form.w);
  return weights;
}

ValueId grouped_conv(RuleBuilder& builder, const std::vector<ConvForm>& forms, ValueId x) {
  int64_t groups = 0;
  for (const ConvForm& form : forms) groups += form.group;
  const ValueId bias = joined_biases(builder, forms);
  return add_conv(builder, forms.front(), x, builder.concat(weights_of(forms), 0), bias, groups);
}

void include(RuleBuilder& builder, const std::vector<ConvForm>& forms) {
  for (const ConvForm& form : forms) builder.include(form.node);
}

ValueId sum_of_biases(RuleBuilder& builder, const std::vector<ConvForm>& forms) {
  ValueId sum;
  for (const ConvForm& form : forms) {
    if (!form.b.is_valid()) continue;
    sum = sum.is_valid() ? builder.add(add_def(), {sum, form.b}) : form.b;
  }
  return sum;
}

ValueId joined_biases(RuleBuilder& builder, const std::vector<ConvForm>& forms, int64_t group) {
  if (std::none_of(forms.begin(), forms.end(), [](const ConvForm& form) { return form.b.is_valid(); })) return {};
  std::vector<ValueId> biases;
  for (const ConvForm& form : forms) {
    const DType dtype = builder.type(form.w).dtype();
    biases.push_back(form.b.is_valid() ? form.b : builder.filled(dtype, {form.out_channels}, 0));
  }
  return interleaved(builder, biases, group);
}

ValueId merged_conv(RuleBuilder& builder, const std::vector<ConvForm>& forms, const std::vector<ValueId>& weights,
                    const ConvForm& window) {
  const ValueId w = interleaved(builder, weights, window.group);
  return add_conv(builder, window, window.x, w, joined_biases(builder, forms, window.group), window.group);
}

std::vector<ValueId> merge_outputs(RuleBuilder& builder, const std::vector<ConvForm>& forms,
                                   const std::vector<ValueId>& weights, const ConvForm& window) {
  const int64_t group = window.group;
  const ValueId y = merged_conv(builder, forms, weights, window);
  std::vector<int64_t> sizes;
  for (const ConvForm& form : forms) sizes.push_back(form.out_channels / group);
  if (group == 1) return builder.split(y, sizes, 1);
  const Dims dims = builder.dims(y);
  Dims grouped = dims;
  grouped[1] /= group;
  grouped.insert(grouped.begin() + 1, group);
  std::vector<ValueId> pieces = builder.split(builder.reshape(y, grouped), sizes, 2);
  for (size_t k = 0; k < pieces.size(); ++k) {
    Dims piece = dims;
    piece[1] = forms[k].out_channels;
    pieces[k] = builder.reshape(pieces[k], piece);
  }
  return pieces;
}

}  // namespace autograph
