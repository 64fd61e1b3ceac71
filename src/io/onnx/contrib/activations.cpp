// Contrib activations: gelu in its forms and what it is fused with.
#include "autograph/ops/activation.h"

#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

std::vector<Var> exact_gelu(ContribCall& call) { return {gelu(call["X"])}; }

std::vector<Var> fast_gelu(ContribCall& call) {
  return {gelu(call.has("bias") ? add(call["X"], call["bias"]) : call["X"], true)};
}

std::vector<Var> quick_gelu(ContribCall& call) { return {swish(call["X"], call.attributes().real("alpha"))}; }

// The halves of x + bias along the last axis: the first times gelu of the second.
std::vector<Var> bias_split_gelu(ContribCall& call) {
  const Var x = add(call["X"], call["bias"]);
  const std::vector<Var> halves = split_evenly(x, 2, -1);
  return {mul(halves[0], gelu(halves[1]))};
}

std::vector<Var> bias_add(ContribCall& call) { return {add(add(call["X"], call["bias"]), call["skip"])}; }

}  // namespace

std::vector<ContribOp> contrib_activations() {
  return {
      contrib_op("Gelu", "X", "Y", "gelu", exact_gelu),
      contrib_op("FastGelu", "X, bias?", "Y", "add, gelu", fast_gelu),
      contrib_op("QuickGelu", "X", "Y", "swish", quick_gelu, {with_default("alpha", 1.702F)}),
      contrib_op("BiasSplitGelu", "X, bias", "Y", "add, gelu, mul", bias_split_gelu),
      contrib_op("BiasAdd", "X, bias, skip", "Y", "add", bias_add),
  };
}

}  // namespace autograph::io
