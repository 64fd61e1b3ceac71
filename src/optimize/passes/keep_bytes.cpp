// keep_bytes: what only moves or selects elements works on bytes, without their being dequantized before and quantized
// behind.
//
//   quantize(max_pool(dequantize(x)))    becomes    max_pool(x)         both with one and the same scale and zero point
//   quantize(dequantize(x))              becomes    x
//
// With one scale s > 0, dequantizing keeps the order of the elements, and quantizing again gives back the same byte:
// (q - zero) * s / s is off by far less than half a step, unless (q - zero) * s overflows. Values in between are read
// once; a dequantization may have other readers, for whom it stays.
#include <limits>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// Does each element of the output equal one of the input, with nothing added (such as padding)?
bool keeps_elements(const Node& node) {
  const bool selects = is_one_of(node.op(), {&max_pool_def(), &transpose_def()});
  return (selects || node.op().traits.view) && node.outputs().size() == 1;
}

// Parameter `slot` of both, the same constant of one element; a zero point may be missing in both.
bool same_constant(const Graph& graph, const Node& a, const Node& b, size_t slot) {
  const auto value = [&](const Node& node) { return slot < node.inputs().size() ? node.inputs()[slot] : ValueId{}; };
  if (!value(a).is_valid() || !value(b).is_valid()) return !value(a).is_valid() && !value(b).is_valid();
  const Value& left = graph.value(value(a));
  const Value& right = graph.value(value(b));
  if (!left.is_constant() || !right.is_constant()) return false;
  return left.constant().num_elements() == 1 && left.constant().dtype() == right.constant().dtype() &&
         right.constant().num_elements() == 1 && left.constant().to_f64() == right.constant().to_f64();
}

// Does `forward` undo `back`, byte for byte?
bool undoes(const Graph& graph, const Node& forward, const Node& back) {
  const Type& bytes = graph.type(back.inputs()[0]);
  if (bytes.dtype() != DType::u8 && bytes.dtype() != DType::i8) return false;
  if (graph.type(forward.output(0)).dtype() != bytes.dtype()) return false;
  if (graph.type(back.output(0)).dtype() != DType::f32 || !same_constant(graph, forward, back, 1)) return false;
  const auto scale = scalar_constant(graph, back.inputs()[1]);
  constexpr double kLargestDifference = 255;  // of a byte and a zero point
  constexpr double kLargestScale = std::numeric_limits<float>::max() / kLargestDifference;
  if (!scale || !(*scale > 0 && *scale <= kLargestScale) || !same_constant(graph, forward, back, 2)) return false;
  const DType precision = forward.attributes().get_or("precision", DType::undefined);
  return precision == DType::undefined || precision == DType::f32;
}

// `mover` on bytes; invalid when the op does not take them.
ValueId move_bytes(Graph& graph, const Node& mover, ValueId bytes) {
  std::vector<ValueId> inputs = mover.inputs();
  inputs[0] = bytes;
  try {
    const NodeId moved = graph.add_node(mover.op(), std::move(inputs), mover.attributes(), {mover.provenance(), 1});
    return graph.node(moved).output(0);
  } catch (const TypeError&) {
    return {};
  }
}

bool keep(Graph& graph, NodeId id) {
  const Node& forward = graph.node(id);
  ValueId v = forward.inputs()[0];
  if (const Node* back = made_by(graph, v, dequantize_linear_def())) {
    if (!undoes(graph, forward, *back)) return false;
    replace_node(graph, id, {back->inputs()[0]});
    return true;
  }
  const NodeId producer = graph.value(v).producer();
  if (!producer.is_valid() || !keeps_elements(graph.node(producer)) || num_reads(graph, v) != 1) return false;
  // By value: adding a node may move the others.
  const Node mover = graph.node(producer);
  const Node* back = made_by(graph, mover.inputs()[0], dequantize_linear_def());
  if (!back || !undoes(graph, forward, *back)) return false;
  const ValueId moved = move_bytes(graph, mover, back->inputs()[0]);
  if (!moved.is_valid()) return false;
  replace_node(graph, id, {moved});
  return true;
}

}  // namespace

bool keep_bytes(Graph& graph, PassContext&) {
  return rewrite_nodes(graph,
                       [&](NodeId id) { return &graph.node(id).op() == &quantize_linear_def() && keep(graph, id); });
}

}  // namespace autograph
