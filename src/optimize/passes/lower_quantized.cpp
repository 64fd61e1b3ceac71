// lower_quantized: convolutions and products of quantized numbers that the device has no kernel for are written with
// dequantized ones.
//
//   qlinear_conv(x, w, y, b)      becomes    quantize(conv(dequantize(x), dequantize(w), dequantize(b)))
//   qlinear_matmul(a, b, y)       becomes    quantize(matmul(dequantize(a), dequantize(b)))
//
// Scales must be constants of one element, or of one for each output channel of the weights. The results are those of
// the definition up to one step, since floats are rounded on the way. use_integers looks at what comes out.
#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/quantize.h"
#include "graph/nested/new_nodes.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// A constant of one element as a number; nothing when it is something else.
Var number(Graph& graph, ValueId v) {
  const Value& value = graph.value(v);
  if (!value.is_constant() || value.constant().num_elements() != 1) return {};
  return constant(graph, value.constant().reshaped({}));
}

// The constant itself, or a number of its one element.
Var number_or_row(Graph& graph, ValueId v, bool may_be_row) {
  const Value& value = graph.value(v);
  if (!value.is_constant()) return {};
  if (value.constant().num_elements() == 1) return number(graph, v);
  return may_be_row && value.constant().rank() == 1 ? Var(graph, v) : Var();
}

// Operand and scales in slots `first` to `first + 2`; invalid when the scales are not known.
Var dequantized(Graph& graph, const std::vector<ValueId>& inputs, size_t first, bool may_be_row, int64_t axis) {
  const Var scale = number_or_row(graph, inputs[first + 1], may_be_row);
  const Var zero = number_or_row(graph, inputs[first + 2], may_be_row);
  if (!scale.is_valid() || !zero.is_valid()) return {};
  // With one of them a row, the other has to be one.
  if ((scale.type().shape().rank() == 0) != (zero.type().shape().rank() == 0)) return {};
  return dequantize_linear(Var(graph, inputs[first]), scale, zero, axis);
}

// The bias of a convolution as floats: its scale is that of the accumulator.
Var real_bias(Graph& graph, const std::vector<ValueId>& inputs) {
  constexpr size_t kXScale = 1, kWScale = 4, kBias = 8;
  if (inputs.size() <= kBias || !inputs[kBias].is_valid()) return {};
  const Tensor& of_weights = graph.value(inputs[kWScale]).constant();
  const float x_scale = *graph.value(inputs[kXScale]).constant().data<float>();
  std::vector<float> scales(of_weights.data<float>(), of_weights.data<float>() + of_weights.num_elements());
  for (float& scale : scales) scale *= x_scale;
  const bool is_row = scales.size() > 1;
  const Tensor scale =
      is_row ? Tensor::of<float>({static_cast<int64_t>(scales.size())}, scales) : Tensor::scalar(scales[0]);
  return dequantize_linear(Var(graph, inputs[kBias]), constant(graph, scale), Var(), 0);
}

bool lower(Graph& graph, NodeId id, const PassContext& context) {
  const OpDef& op = graph.node(id).op();
  const bool is_conv = &op == &qlinear_conv_def();
  if (!is_conv && &op != &qlinear_matmul_def()) return false;
  if (context.expects_kernel && context.expects_kernel(graph, id)) return false;
  // By value: adding a node may move the others.
  const std::vector<ValueId> inputs = graph.node(id).inputs();
  const Attributes attributes = graph.node(id).attributes();
  const Provenance provenance = graph.node(id).provenance();
  const size_t first_new = graph.node_capacity();
  const Var y_scale = number(graph, inputs[6]), y_zero = number(graph, inputs[7]);
  if (!y_scale.is_valid() || !y_zero.is_valid()) return false;
  const Var x = dequantized(graph, inputs, 0, false, 0);
  const Var w = dequantized(graph, inputs, 3, true, is_conv ? 0 : -1);
  if (!x.is_valid() || !w.is_valid()) return false;
  const Var y = is_conv ? apply(conv_def(), {x, w, real_bias(graph, inputs)}, attributes) : apply(matmul_def(), {x, w});
  const Var result = quantize_linear(y, y_scale, y_zero);
  set_provenance_of_new(graph, first_new, provenance);
  replace_node(graph, id, {result.id()});
  return true;
}

}  // namespace

bool lower_quantized(Graph& graph, PassContext& context) {
  return rewrite_nodes(graph, [&](NodeId id) { return lower(graph, id, context); });
}

}  // namespace autograph
