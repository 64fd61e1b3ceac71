// use_integers: a convolution or matrix product of dequantized tensors, and what follows it up to the quantization of
// its result, becomes one node that a kernel computes with integers.
//
//   quantize(relu(conv(dequantize(x), dequantize(w), b)))    becomes    fused{...}(x, w)
//
// Scales and zero points must be constant, and become constants of its body, as does the bias. The nodes in between
// have one reader each. A dequantization that has other readers stays for them. Of all chains that begin at a product,
// the longest is taken that the device has a kernel for. The body defines the result; kernels may differ from it by one
// step of the quantized output, since they round the product of the scales.
//
// Runs before constants are folded all the way: afterwards weights are floats. What this pass leaves is folded next.
#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/body_builder.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// A bias, two additions, an activation and the quantization at most.
constexpr size_t kLongestChain = 5;

bool is_constant(const Graph& graph, ValueId v) { return !v.is_valid() || graph.value(v).is_constant(); }

// dequantize_linear with constant parameters.
const Node* dequantization_of(const Graph& graph, ValueId v) {
  const Node* node = v.is_valid() ? made_by(graph, v, dequantize_linear_def()) : nullptr;
  if (!node) return nullptr;
  const auto parameters = std::span<const ValueId>(node->inputs()).subspan(1);
  return std::all_of(parameters.begin(), parameters.end(), [&](ValueId p) { return is_constant(graph, p); }) ? node
                                                                                                             : nullptr;
}

// Does the node, behind a product that made `v`, have no operands but `v`, constants and dequantized tensors?
bool can_follow(const Graph& graph, const Node& node, ValueId v) {
  if (!is_one_of(node.op(), {&add_def(), &relu_def(), &clip_def(), &quantize_linear_def()})) return false;
  return std::all_of(node.inputs().begin(), node.inputs().end(), [&](ValueId input) {
    return input == v || is_constant(graph, input) || dequantization_of(graph, input);
  });
}

bool has_quantized_operands(const Graph& graph, const Node& node) {
  if (node.inputs().size() < 2 || !dequantization_of(graph, node.inputs()[0])) return false;
  if (!dequantization_of(graph, node.inputs()[1])) return false;
  return std::all_of(node.inputs().begin() + 2, node.inputs().end(), [&](ValueId v) { return is_constant(graph, v); });
}

std::vector<NodeId> longest_chain(const Graph& graph, NodeId anchor) {
  std::vector<NodeId> chain{anchor};
  while (chain.size() < kLongestChain) {
    const ValueId v = graph.node(chain.back()).output(0);
    const NodeId next = only_reader(graph, v);
    if (!next.is_valid() || !can_follow(graph, graph.node(next), v)) break;
    chain.push_back(next);
    if (&graph.node(next).op() == &quantize_linear_def()) break;
  }
  return chain;
}

BodyBuilder body_of(const Graph& graph, const std::vector<NodeId>& chain) {
  BodyBuilder builder(graph);
  std::vector<const Node*> dequantized;  // those in the body already
  for (const NodeId id : chain) {
    for (const ValueId v : graph.node(id).inputs()) {
      if (!v.is_valid()) continue;
      if (is_constant(graph, v)) builder.add_constant(v);
      const Node* node = dequantization_of(graph, v);
      if (!node || std::find(dequantized.begin(), dequantized.end(), node) != dequantized.end()) continue;
      dequantized.push_back(node);
      for (const ValueId p : std::span<const ValueId>(node->inputs()).subspan(1)) {
        if (p.is_valid()) builder.add_constant(p);
      }
      builder.add(*node);
    }
    builder.add(graph.node(id));
  }
  return builder;
}

bool fuse_behind(Graph& graph, const PassContext& context, NodeId anchor) {
  if (!has_quantized_operands(graph, graph.node(anchor))) return false;
  for (std::vector<NodeId> chain = longest_chain(graph, anchor); !chain.empty(); chain.pop_back()) {
    const BodyBuilder body = body_of(graph, chain);
    if (!body.expects_kernel(context)) continue;
    body.replace(graph, chain);
    return true;
  }
  return false;
}

}  // namespace

bool use_integers(Graph& graph, PassContext& context) {
  if (!context.expects_kernel) return false;
  return fuse_from_anchors(graph, [&](NodeId anchor) { return fuse_behind(graph, context, anchor); });
}

}  // namespace autograph
