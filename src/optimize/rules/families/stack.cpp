// One product or convolution in place of several with inputs and weights of their own: the layers of towers, experts
// and heads. Products of equal shapes become a stack of matrices, convolutions groups of one. Inputs are put one behind
// the other along the outermost axis where that is possible, so that nothing is copied: a layer writes where the next
// one reads, and of one stacked layer behind another the pieces in between fall away.
#include <algorithm>
#include <optional>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/joint.h"
#include "optimize/rules/nearby.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// ---- Products -----------------------------------------------------------------------------------------------------

// x w, perhaps with a row added.
struct Layer {
  NodeId product;
  ValueId x, w, b;  // b is invalid where there is none
};

std::optional<Layer> product_of(const Graph& graph, NodeId node) {
  const Layer layer{node, graph.node(node).input(0), graph.node(node).input(1), {}};
  if (!graph.type(layer.x).is_static() || !graph.type(layer.w).is_static() || is_weight(graph, layer.x)) return {};
  if (graph.type(layer.x).shape().rank() < 2 || graph.type(layer.w).shape().rank() != 2) return {};
  return is_weight(graph, layer.w) ? std::optional(layer) : std::nullopt;
}

// add(x w, b) with one number for each column.
std::optional<Layer> linear_of(const Graph& graph, NodeId node) {
  for (const size_t slot : {0, 1}) {
    const ValueId sum = graph.node(node).input(slot);
    const NodeId product = producer_of_op(graph, sum, matmul_def());
    if (!product.is_valid() || !has_one_reader(graph, sum)) continue;
    auto layer = product_of(graph, product);
    const ValueId b = graph.node(node).input(1 - slot);
    if (!layer || !graph.type(b).is_static() || !is_weight(graph, b)) continue;
    const Dims dims = dims_of(graph, b);
    const int64_t columns = dims_of(graph, layer->w)[1];
    if (dims.empty() || dims.back() != columns || element_count(dims) != columns) continue;
    if (graph.type(graph.node(node).output(0)) != graph.type(sum)) continue;
    layer->b = b;
    return layer;
  }
  return std::nullopt;
}

using ReadLayer = std::optional<Layer> (*)(const Graph&, NodeId);

bool are_alike(const Graph& graph, const Layer& a, const Layer& b) {
  return graph.type(a.x) == graph.type(b.x) && graph.type(a.w) == graph.type(b.w);
}

// The layers that become one stack: each has an input of its own. Those of one input have a rule that needs no stack.
std::vector<NodeId> stackable(const Graph& graph, NodeId first, ReadLayer read) {
  const auto model = read(graph, first);
  if (!model) return {};
  std::vector<ValueId> inputs{model->x};
  std::vector<NodeId> group = group_near(graph, first, [&](NodeId node) {
    const auto layer = read(graph, node);
    return layer && are_alike(graph, *model, *layer) && layer->x != model->x;
  });
  std::erase_if(group, [&](NodeId node) {
    if (node == first) return false;
    const ValueId x = read(graph, node)->x;
    if (std::find(inputs.begin(), inputs.end(), x) != inputs.end()) return true;
    inputs.push_back(x);
    return false;
  });
  return group.size() > 1 ? group : std::vector<NodeId>{};
}

// Of layers whose inputs come out of one split, in its order.
void sort_layers(const Graph& graph, std::vector<NodeId>& nodes, std::vector<Layer>& layers, ReadLayer read) {
  std::vector<NodeId> products;
  for (const NodeId node : nodes) products.push_back(read(graph, node)->product);
  sort_by_origin(graph, products, 0);
  std::vector<NodeId> sorted;
  for (const NodeId product : products) {
    const auto at =
        std::find_if(nodes.begin(), nodes.end(), [&](NodeId node) { return read(graph, node)->product == product; });
    sorted.push_back(*at);
    layers.push_back(*read(graph, *at));
  }
  nodes = std::move(sorted);
}

ValueId in_shape(RuleBuilder& builder, ValueId value, const Dims& dims) {
  return builder.dims(value) == dims ? value : builder.reshape(value, dims);
}

std::vector<ValueId> stack_layers(RuleBuilder& builder, NodeId first, ReadLayer read) {
  const Graph& graph = builder.graph();
  std::vector<NodeId> nodes = stackable(graph, first, read);
  std::vector<Layer> layers;
  sort_layers(graph, nodes, layers, read);
  std::vector<ValueId> inputs, weights;
  for (size_t k = 0; k < nodes.size(); ++k) {
    builder.include(nodes[k]);
    builder.include(layers[k].product);
    inputs.push_back(layers[k].x);
    weights.push_back(layers[k].w);
  }
  const Joint joint = plan_joint(graph, inputs, 0);
  include(builder, joint);
  const auto count = static_cast<int64_t>(nodes.size());
  const Dims w = builder.dims(weights[0]);
  Dims result = builder.dims(graph.node(first).output(0));
  const int64_t rows = element_count(builder.dims(inputs[0])) / w[0];
  const ValueId x = in_shape(builder, make(builder, joint), {count, rows, w[0]});
  const ValueId stack = builder.reshape(builder.concat(weights, 0), {count, w[0], w[1]});
  ValueId y = builder.add(matmul_def(), {x, stack});
  if (layers[0].b.is_valid()) {
    std::vector<ValueId> biases;
    for (const Layer& layer : layers) biases.push_back(in_shape(builder, layer.b, {1, 1, w[1]}));
    y = builder.add(add_def(), {y, builder.concat(biases, 0)});
  }
  result[0] *= count;
  return builder.hand_out_pieces(outputs_of(graph, nodes), in_shape(builder, y, result), 0);
}

// ---- Convolutions -------------------------------------------------------------------------------------------------

std::vector<NodeId> groupable(const Graph& graph, NodeId first) {
  const auto model = weighted_conv(graph, first);
  if (!model || is_weight(graph, model->x)) return {};
  std::vector<NodeId> group = group_near(graph, first, [&](NodeId node) {
    const auto form = weighted_conv(graph, node);
    return form && !is_weight(graph, form->x) && form->x != model->x && are_groups(graph, *model, *form);
  });
  std::vector<ValueId> inputs;
  std::erase_if(group, [&](NodeId node) {
    const ValueId x = graph.node(node).input(0);
    if (std::find(inputs.begin(), inputs.end(), x) != inputs.end()) return true;
    inputs.push_back(x);
    return false;
  });
  return group.size() > 1 ? group : std::vector<NodeId>{};
}

std::vector<ValueId> group_convs(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  std::vector<NodeId> nodes = groupable(graph, builder.match().nodes()[0]);
  sort_by_origin(graph, nodes, 0);
  std::vector<ConvForm> forms;
  for (const NodeId node : nodes) forms.push_back(conv_form(graph, node));
  builder.include(nodes);
  const Joint joint = plan_joint(graph, inputs_of(graph, nodes), 1);
  include(builder, joint);
  const ValueId joined = grouped_conv(builder, forms, make(builder, joint));
  return builder.hand_out_pieces(outputs_of(graph, nodes), joined, 1);
}

const Rule kRules[] = {
    // x V, y W, ... -> [x, y, ...] [V, W, ...], matrix by matrix
    {.name = "stack.products",
     .before = "s = matmul(x, $w)",
     .after = "where t = matmul(y, v) is near: u = concat[axis=0](x, y), as a stack; z = concat[axis=0](w, v), as a "
              "stack; m = matmul(u, z); s, t = split[axis=0](m)",
     .guard_doc = "weights are matrices; other products with inputs and weights of their own, of the same types, stand "
                  "near; none of them depends on another, and s is the first",
     .guard = [](const RuleMatch& match) { return !stackable(match.graph(), match.nodes()[0], product_of).empty(); },
     .build = [](RuleBuilder& builder) { return stack_layers(builder, builder.match().nodes()[0], product_of); },
     .looks_around = true},
    // x V + b, y W + c, ... -> [x, y, ...] [V, W, ...] + [b, c, ...], matrix by matrix
    {.name = "stack.layers",
     .before = "m = matmul(x, $w); s = add(m, $b)",
     .after = "where t = add(matmul(y, v), c) is near: the same for both, as a stack, and split[axis=0] behind it",
     .guard_doc = "weights are matrices, b has a number for each column; other such sums with inputs and weights of "
                  "their own, of the same types, stand near; none of them depends on another, and s is the first",
     .guard = [](const RuleMatch& match) { return !stackable(match.graph(), match.nodes()[1], linear_of).empty(); },
     .build = [](RuleBuilder& builder) { return stack_layers(builder, builder.match().nodes()[1], linear_of); },
     .looks_around = true},
    // conv(x, V), conv(y, W), ... -> split(conv([x, y, ...], [V; W; ...])) in groups
    {.name = "stack.convolutions",
     .before = "s = conv[strides=e, pads=p, dilations=d, group=g](x, $w, b...)",
     .after = "where t = conv[strides=e, pads=p, dilations=d, group=h](y, v, c...) is near: u = concat[axis=1](x, y); "
              "z = concat[axis=0](w, v); m = conv(u, z), in g + h groups; s, t = split[axis=1](m)",
     .outputs = {"s"},
     .guard_doc = "other convolutions with weights and inputs of their own stand near, with the same window, and as "
                  "many input and output channels in each group; inputs differ in channels alone; none of them depends "
                  "on another, and s is the first",
     .guard = [](const RuleMatch& match) { return !groupable(match.graph(), match.nodes()[0]).empty(); },
     .build = group_convs,
     .looks_around = true},
};

}  // namespace

std::span<const Rule> stack_rules() { return kRules; }

}  // namespace autograph
