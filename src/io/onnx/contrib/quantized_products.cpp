// Contrib products of 8-bit numbers: with scales given or found while running.
#include "autograph/ops/linear.h"
#include "autograph/ops/quantize.h"
#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

std::vector<Var> matmul_integer_to_float(ContribCall& call) {
  return {quantized_product(call, {call["A"], call["a_scale"], call["a_zero_point"], call["B"], call["b_scale"],
                                   call["b_zero_point"], call["bias"]})};
}

std::vector<Var> dynamic_quantize_matmul(ContribCall& call) {
  const std::vector<Var> a = apply_all(get_op("dynamic_quantize_linear"), {call["A"]});
  return {quantized_product(call, {a[0], a[1], a[2], call["B"], call["b_scale"], call["b_zero_point"], call["bias"]})};
}

// alpha * a b + c: c counts in units of alpha * a_scale * b_scale.
std::vector<Var> quantized_gemm(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const float alpha = attributes.real("alpha");
  const bool is_transposed = attributes.flag("transB");
  const Var a_scale = as_scalar(call, call["a_scale"]);
  const Var b_scale = call["b_scale"];
  const Var a = dequantize_linear(call["A"], a_scale, as_scalar(call, call["a_zero_point"]));
  const Var b = dequantize_linear(call["B"], b_scale, call["b_zero_point"], is_transposed ? 0 : 1);
  Var c;
  if (call.has("C")) {
    const Var unit = mul(a_scale, b_scale);
    c = mul(cast(call["C"], DType::f32), alpha == 1 ? unit : mul(unit, scalar_like(unit, alpha)));
  }
  const Var y = gemm(a, b, c, {alpha, 1.0F, attributes.flag("transA"), is_transposed});
  if (!call.has("y_scale")) return {y};
  Var zero = as_scalar(call, call["y_zero_point"]);
  if (!zero.is_valid() && call["A"].dtype() == DType::i8) zero = call.constant(Tensor::scalar<int8_t>(0));
  return {quantize_linear(y, as_scalar(call, call["y_scale"]), zero)};
}

}  // namespace

std::vector<ContribOp> contrib_quantized_products() {
  return {
      contrib_op("MatMulIntegerToFloat", "A, B, a_scale, b_scale, a_zero_point?, b_zero_point?, bias?", "Y",
                 "matmul_integer, reduce_sum, mul, add", matmul_integer_to_float),
      contrib_op("DynamicQuantizeMatMul", "A, B, b_scale, b_zero_point?, bias?", "Y",
                 "dynamic_quantize_linear, matmul_integer, reduce_sum, mul, add", dynamic_quantize_matmul),
      contrib_op("QGemm", "A, a_scale, a_zero_point, B, b_scale, b_zero_point, C?, y_scale?, y_zero_point?", "Y",
                 "dequantize_linear, gemm, quantize_linear", quantized_gemm,
                 {with_default("alpha", 1.0F), with_default("transA", int64_t{0}), with_default("transB", int64_t{0})}),
  };
}

}  // namespace autograph::io
