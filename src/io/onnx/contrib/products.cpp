// Contrib products: convolutions and matrix products with what the optimiser merged into them.
#include "autograph/ops/linear.h"

#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

Var convolved(const ContribCall& call, Var x, Var addend) {
  const Var y = apply(get_op("conv"), {x, call["W"], call["B"]}, shared_attributes(call, "conv"));
  return addend.is_valid() ? add(y, addend) : y;
}

std::vector<float> conv_parameters(const ContribCall& call) {
  return call.attributes().get_or<std::vector<float>>("activation_params", {});
}

std::vector<Var> fused_conv(ContribCall& call) {
  return {activated(call, convolved(call, call["X"], call["Z"]), conv_parameters(call))};
}

std::vector<Var> nhwc_conv(ContribCall& call) {
  return {channels_last(call, convolved(call, channels_first(call, call["X"]), {}))};
}

std::vector<Var> nhwc_fused_conv(ContribCall& call) {
  const Var addend = call.has("Z") ? channels_first(call, call["Z"]) : Var();
  const Var y = convolved(call, channels_first(call, call["X"]), addend);
  return {channels_last(call, activated(call, y, conv_parameters(call)))};
}

// One side of a fused product: with `batch`, the first dim belongs behind the batch dims.
Var side(const ContribCall& call, Var x, bool transposed, bool batch) {
  const int64_t rank = call.rank(x);
  if (batch && rank > 2) {
    std::vector<int64_t> perm;
    for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
    perm.insert(perm.end(), {0, rank - 1});
    x = transpose(x, perm);
  }
  return transposed ? swapped(call, x) : x;
}

std::vector<Var> fused_matmul(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const Var a = side(call, call["A"], attributes.flag("transA"), attributes.flag("transBatchA"));
  const Var b = side(call, call["B"], attributes.flag("transB"), attributes.flag("transBatchB"));
  const Var y = matmul(a, b);
  const float alpha = attributes.real("alpha");
  return {alpha == 1 ? y : mul(y, scalar_like(y, alpha))};
}

std::vector<Var> fused_gemm(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const Var y =
      gemm(call["A"], call["B"], call["C"],
           {attributes.real("alpha"), attributes.real("beta"), attributes.flag("transA"), attributes.flag("transB")});
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (const float* value = attributes.find_as<float>(name)) parameters.push_back(*value);
  }
  return {activated(call, y, parameters)};
}

std::vector<AttributeSpec> conv_specs(bool activation) {
  if (!activation) return attributes_of("conv");
  return attributes_of("conv", {optional_attribute("activation", AttributeType::text),
                                optional_attribute("activation_params", AttributeType::reals)});
}

std::vector<AttributeSpec> matmul_specs(bool batch) {
  std::vector<AttributeSpec> specs{with_default("alpha", 1.0F), with_default("transA", int64_t{0}),
                                   with_default("transB", int64_t{0})};
  if (!batch) return specs;
  specs.push_back(with_default("transBatchA", int64_t{0}));
  specs.push_back(with_default("transBatchB", int64_t{0}));
  return specs;
}

std::vector<AttributeSpec> gemm_specs() {
  std::vector<AttributeSpec> specs = matmul_specs(false);
  specs.push_back(with_default("beta", 1.0F));
  specs.push_back(optional_attribute("activation", AttributeType::text));
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    specs.push_back(optional_attribute(name, AttributeType::real));
  }
  return specs;
}

}  // namespace

std::vector<ContribOp> contrib_products() {
  return {
      contrib_op("FusedConv", "X, W, B?, Z?", "Y", "conv, add, activation", fused_conv, conv_specs(true)),
      contrib_op("NhwcConv", "X, W, B?", "Y", "conv", nhwc_conv, conv_specs(false)),
      contrib_op("NhwcFusedConv", "X, W, B?, Z?", "Y", "conv, add, activation", nhwc_fused_conv, conv_specs(true)),
      contrib_op("FusedMatMul", "A, B", "Y", "matmul, mul", fused_matmul, matmul_specs(true)),
      contrib_op("TransposeMatMul", "A, B", "Y", "matmul, mul", fused_matmul, matmul_specs(false)),
      contrib_op("FusedGemm", "A, B, C?", "Y", "gemm, activation", fused_gemm, gemm_specs()),
  };
}

}  // namespace autograph::io
