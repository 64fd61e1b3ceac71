#include "optimize/rules/joint.h"

#include <algorithm>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using Kind = Joint::Kind;

constexpr int kMaxDepth = 6;

// The makers of the values when nothing else reads these, and all are of one op with one result.
std::vector<NodeId> makers_alike(const Graph& graph, const std::vector<ValueId>& values) {
  const NodeId first = graph.value(values.front()).producer();
  return makers_of(graph, values, [&](const Node& node) {
    return node.outputs().size() == 1 && &node.op() == &graph.node(first).op();
  });
}

bool all_weights(const Graph& graph, const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId value) { return graph.type(value).is_static() && is_weight(graph, value); });
}

bool all_same(const std::vector<ValueId>& values) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) { return value == values.front(); });
}

// Elementwise ops whose operands all have the shape of the result.
bool are_elementwise(const Graph& graph, const std::vector<NodeId>& makers, const std::vector<ValueId>& values) {
  const Node& model = graph.node(makers.front());
  if (!is_in_class(OpClass::unary, model) && !is_in_class(OpClass::binary, model)) return false;
  for (size_t k = 0; k < makers.size(); ++k) {
    const Node& node = graph.node(makers[k]);
    if (!same_op(model, node) || num_given_inputs(node) != num_given_inputs(model)) return false;
    for (size_t slot = 0; slot < num_given_inputs(node); ++slot) {
      const Type& type = graph.type(node.input(slot));
      if (type != graph.type(values[k]) || is_weight(graph, node.input(slot))) return false;
    }
  }
  return true;
}

// Products of one left side with weight matrices.
bool are_products(const Graph& graph, const std::vector<NodeId>& makers, int64_t axis) {
  if (&graph.node(makers[0]).op() != &matmul_def() || !all_same(inputs_of(graph, makers, 0))) return false;
  const std::vector<ValueId> weights = inputs_of(graph, makers, 1);
  if (!all_weights(graph, weights)) return false;
  if (graph.type(graph.node(makers[0]).output(0)).shape().rank() != axis + 1) return false;
  return std::all_of(weights.begin(), weights.end(),
                     [&](ValueId weight) { return graph.type(weight).shape().rank() == 2; });
}

// Convolutions of one input in one group with weights and the same window.
bool are_convolutions(const Graph& graph, const std::vector<NodeId>& makers, int64_t axis) {
  if (&graph.node(makers[0]).op() != &conv_def() || axis != 1) return false;
  if (!all_same(inputs_of(graph, makers, 0)) || !graph.type(graph.node(makers[0]).input(0)).is_static()) return false;
  if (!all_weights(graph, inputs_of(graph, makers, 1))) return false;
  const ConvForm model = conv_form(graph, makers[0]);
  return std::all_of(makers.begin(), makers.end(), [&](NodeId maker) {
    const ConvForm form = conv_form(graph, maker);
    return form.group == 1 && form.same_window(model) && (!form.b.is_valid() || is_weight(graph, form.b));
  });
}

bool are_all_pieces(const Graph& graph, const std::vector<ValueId>& values, int64_t axis) {
  const NodeId producer = graph.value(values.front()).producer();
  if (!producer.is_valid() || &graph.node(producer).op() != &split_def()) return false;
  return graph.node(producer).outputs() == values && axis_of(graph, producer) == axis;
}

Joint plan(const Graph& graph, const std::vector<ValueId>& values, int64_t axis, int depth) {
  Joint joint{.axis = axis, .values = values};
  if (are_all_pieces(graph, values, axis)) {
    joint.kind = Kind::split_input;
    return joint;
  }
  joint.makers = depth > 0 ? makers_alike(graph, values) : std::vector<NodeId>{};
  if (joint.makers.empty()) return joint;
  if (are_elementwise(graph, joint.makers, values)) {
    joint.kind = Kind::elementwise;
    for (size_t slot = 0; slot < num_given_inputs(graph.node(joint.makers[0])); ++slot) {
      joint.operands.push_back(plan(graph, inputs_of(graph, joint.makers, slot), axis, depth - 1));
    }
  } else if (are_products(graph, joint.makers, axis)) {
    joint.kind = Kind::product;
  } else if (are_convolutions(graph, joint.makers, axis)) {
    joint.kind = Kind::convolution;
  } else {
    joint.makers.clear();
  }
  return joint;
}

// Is any concat of values left that would have been there without taking makers along, too?
size_t num_concats(const Joint& joint) {
  if (joint.kind == Kind::concat) return 1;
  size_t count = 0;
  for (const Joint& operand : joint.operands) count += num_concats(operand);
  return count;
}

// Taking ops along that leave more to be joined than they make moves more: those stay in front of the concat.
void leave_what_moves_more(Joint& joint) {
  for (Joint& operand : joint.operands) leave_what_moves_more(operand);
  if (joint.kind == Kind::elementwise && num_concats(joint) > 1) {
    joint.kind = Kind::concat;
    joint.makers.clear();
    joint.operands.clear();
  }
}

}  // namespace

Joint plan_joint(const Graph& graph, const std::vector<ValueId>& values, int64_t axis) {
  Joint joint = plan(graph, values, axis, kMaxDepth);
  leave_what_moves_more(joint);
  return joint;
}

void include(RuleBuilder& builder, const Joint& joint) {
  builder.include(joint.makers);
  for (const Joint& operand : joint.operands) include(builder, operand);
}

ValueId make(RuleBuilder& builder, const Joint& joint) {
  const Graph& graph = builder.graph();
  switch (joint.kind) {
    case Kind::concat: return builder.concat(joint.values, joint.axis);
    case Kind::split_input: return graph.node(graph.value(joint.values[0]).producer()).input(0);
    case Kind::elementwise: {
      std::vector<ValueId> operands;
      for (const Joint& operand : joint.operands) operands.push_back(make(builder, operand));
      return builder.add_like(graph.node(joint.makers[0]), operands);
    }
    case Kind::product: {
      const ValueId x = graph.node(joint.makers[0]).input(0);
      const ValueId weights = builder.concat(inputs_of(graph, joint.makers, 1), 1);
      return builder.add(matmul_def(), {x, weights});
    }
    case Kind::convolution: {
      std::vector<ConvForm> forms;
      for (const NodeId maker : joint.makers) forms.push_back(conv_form(graph, maker));
      return merged_conv(builder, forms, inputs_of(graph, joint.makers, 1), forms[0]);
    }
  }
  return {};
}

}  // namespace autograph
