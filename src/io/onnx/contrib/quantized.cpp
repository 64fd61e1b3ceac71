// Contrib ops on 8-bit tensors that a scale and a zero point explain: dequantize, compute, quantize again. Passes and
// kernels make byte tables and integer arithmetic of it.
#include "autograph/ops/quantize.h"

#include <algorithm>

#include "autograph/ops/activation.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/window.h"
#include "io/onnx/contrib/body.h"

namespace autograph::io {
namespace {

Var real(const ContribCall& call, Var x, Var scale, Var zero) {
  return dequantize_linear(x, as_scalar(call, scale), as_scalar(call, zero));
}

// Without a zero point the result is u8 by default, so that i8 needs one of 0.
Var bytes(const ContribCall& call, Var x, Var scale, Var zero, DType dtype) {
  if (!zero.is_valid() && dtype == DType::i8) zero = call.constant(Tensor::scalar<int8_t>(0));
  return quantize_linear(x, as_scalar(call, scale), as_scalar(call, zero));
}

Var real(const ContribCall& call, const std::string& name, const std::string& prefix) {
  return real(call, call[name], call[prefix + "_scale"], call[prefix + "_zero_point"]);
}

std::vector<Var> quantized_sum(ContribCall& call) {
  const Var y = add(real(call, "A", "A"), real(call, "B", "B"));
  return {bytes(call, y, call["C_scale"], call["C_zero_point"], call["A"].dtype())};
}

std::vector<Var> quantized_mul(ContribCall& call) {
  const Var y = mul(real(call, "A", "A"), real(call, "B", "B"));
  return {bytes(call, y, call["C_scale"], call["C_zero_point"], call["A"].dtype())};
}

// Ops with an x of scale x_scale and a y of scale y_scale.
Var real_x(const ContribCall& call) { return real(call, "x", "x"); }

std::vector<Var> bytes_y(const ContribCall& call, Var y) {
  return {bytes(call, y, call["y_scale"], call["y_zero_point"], call["x"].dtype())};
}

std::vector<Var> quantized_leaky_relu(ContribCall& call) {
  return bytes_y(call, leaky_relu(real_x(call), call.attributes().real("alpha")));
}

std::vector<Var> quantized_sigmoid(ContribCall& call) { return bytes_y(call, sigmoid(real_x(call))); }

// Before opset 13 softmax ran over all dims from `axis` on.
std::vector<Var> quantized_softmax(ContribCall& call) {
  const Var x = real_x(call);
  const int64_t rank = call.rank(x);
  int64_t axis = call.attributes().integer("axis");
  if (axis < 0) axis += rank;
  if (call.attributes().integer("opset") >= 13 || axis == rank - 1) return bytes_y(call, softmax(x, axis));
  return bytes_y(call, reshape(softmax(flatten(x, axis), -1), shape(x)));
}

std::vector<Var> quantized_reduce_mean(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  return bytes_y(call, reduce_mean(real_x(call), attributes.integers("axes"), attributes.flag("keepdims")));
}

Var in_channels_first(const ContribCall& call, Var x, Var (*pool)(const ContribCall&, Var)) {
  if (!call.attributes().flag("channels_last")) return pool(call, x);
  return channels_last(call, pool(call, channels_first(call, x)));
}

// Windows that hang over the end count in full here, where average_pool leaves out what is beyond the padding: pads
// that make room for them instead of rounding up.
Attributes with_whole_windows(const ContribCall& call, Var x, Attributes attributes) {
  if (!attributes.flag("ceil_mode") || !attributes.flag("count_include_pad")) return attributes;
  const auto kernel = attributes.integers("kernel_shape");
  const size_t axes = kernel.size();
  auto pads = attributes.get_or<std::vector<int64_t>>("pads", std::vector<int64_t>(2 * axes, 0));
  const auto strides = attributes.get_or<std::vector<int64_t>>("strides", std::vector<int64_t>(axes, 1));
  const auto is_sane = [](const std::vector<int64_t>& list, int64_t least) {
    return std::all_of(list.begin(), list.end(), [&](int64_t v) { return v >= least && v < (int64_t{1} << 31); });
  };
  const bool fit = pads.size() == 2 * axes && strides.size() == axes;
  if (!fit || !is_sane(pads, 0) || !is_sane(strides, 1) || !is_sane(kernel, 1)) return attributes;  // the pool says so
  for (size_t a = 0; a < axes; ++a) {
    int64_t& end = pads[a + axes];
    if (kernel[a] >= end + strides[a]) {  // every window begins in front of the padding at the end
      end += strides[a] - 1;
      continue;
    }
    const int64_t padded = call.extent(x, static_cast<int64_t>(a) + 2) + pads[a] + end;
    const int64_t left_over = (padded - kernel[a]) % strides[a];
    const int64_t missing = left_over > 0 ? strides[a] - left_over : 0;
    if (padded + missing - kernel[a] < padded - end) end += missing;
  }
  attributes.set("pads", pads);
  attributes.set("ceil_mode", int64_t{0});
  return attributes;
}

std::vector<Var> quantized_average_pool(ContribCall& call) {
  return bytes_y(call, in_channels_first(call, real_x(call), [](const ContribCall& c, Var x) {
                   const Attributes attributes = with_whole_windows(c, x, shared_attributes(c, "average_pool"));
                   return apply(get_op("average_pool"), {x}, attributes);
                 }));
}

std::vector<Var> quantized_global_average_pool(ContribCall& call) {
  return bytes_y(
      call, in_channels_first(call, real_x(call), [](const ContribCall&, Var x) { return global_average_pool(x); }));
}

// Are both the same constant element?
bool same_constant(const ContribCall& call, Var a, Var b) {
  const auto left = call.known(a);
  const auto right = call.known(b);
  return left && right && left->num_elements() == 1 && right->num_elements() == 1 && left->dtype() == right->dtype() &&
         left->to_f64() == right->to_f64();
}

// Pieces with the scale and zero point of the result are joined as they are.
std::vector<Var> quantized_concat(ContribCall& call) {
  const std::vector<Var> pieces = call.all("pieces");
  if (pieces.empty() || pieces.size() % 3 != 0)
    call.refuse("inputs", "expected a tensor, a scale and a zero point each");
  const Var scale = call["y_scale"], zero = call["y_zero_point"];
  std::vector<Var> joined;
  for (size_t i = 0; i < pieces.size(); i += 3) {
    const bool is_same = same_constant(call, pieces[i + 1], scale) && same_constant(call, pieces[i + 2], zero);
    joined.push_back(is_same
                         ? pieces[i]
                         : bytes(call, real(call, pieces[i], pieces[i + 1], pieces[i + 2]), scale, zero, zero.dtype()));
  }
  return {concat(joined, call.attributes().integer("axis"))};
}

std::vector<Var> quantized_where(ContribCall& call) {
  const Var z = where(as_dtype(call["condition"], DType::boolean), real(call, "X", "x"), real(call, "Y", "y"));
  return {bytes(call, z, call["z_scale"], call["z_zero_point"], call["X"].dtype())};
}

std::vector<Var> quantized_conv(ContribCall& call) {
  const bool is_last = call.attributes().flag("channels_last");
  const Var x = is_last ? channels_first(call, call["x"]) : call["x"];
  const Var y =
      apply(get_op("qlinear_conv"),
            {x, as_scalar(call, call["x_scale"]), as_scalar(call, call["x_zero_point"]), call["w"], call["w_scale"],
             call["w_zero_point"], as_scalar(call, call["y_scale"]), as_scalar(call, call["y_zero_point"]), call["B"]},
            shared_attributes(call, "qlinear_conv"));
  return {is_last ? channels_last(call, y) : y};
}

// An axis that is not given means one scale for all.
Attributes granularity(const ContribCall& call, Var scale) {
  const int64_t* axis = call.attributes().find_as<int64_t>("axis");
  if (!axis && scale.shape().is_static() && *scale.shape().num_elements() != 1) {
    call.refuse("attribute 'axis'", "missing, with scales " + to_string(scale.type()));
  }
  return {{"axis", axis ? *axis : int64_t{0}}};
}

std::vector<Var> dequantized(ContribCall& call) {
  const Var scale = call["x_scale"];
  return {apply(get_op("dequantize_linear"), {call["x"], scale, call["x_zero_point"]}, granularity(call, scale))};
}

std::vector<Var> quantized(ContribCall& call) {
  const Var scale = call["y_scale"];
  return {apply(get_op("quantize_linear"), {call["x"], scale, call["y_zero_point"]}, granularity(call, scale))};
}

std::vector<Var> mul_integer(ContribCall& call) {
  const auto shifted = [&](const char* name, const char* zero_name) {
    const Var x = as_dtype(call[name], DType::i32);
    return call.has(zero_name) ? sub(x, as_dtype(as_scalar(call, call[zero_name]), DType::i32)) : x;
  };
  return {mul(shifted("A", "A_zero_point"), shifted("B", "B_zero_point"))};
}

std::vector<Var> reduce_sum_integer(ContribCall& call) {
  const Attributes& attributes = call.attributes();
  const DType wide = call["data"].dtype() == DType::u8 ? DType::u32 : DType::i32;
  return {reduce_sum(cast(call["data"], wide), attributes.integers("axes"), attributes.flag("keepdims"))};
}

}  // namespace

std::vector<ContribOp> contrib_quantized() {
  constexpr std::string_view kBinary = "A, A_scale, A_zero_point?, B, B_scale, B_zero_point?, C_scale, C_zero_point?";
  constexpr std::string_view kUnary = "x, x_scale, x_zero_point?, y_scale, y_zero_point?";
  const AttributeSpec channels_last_spec = with_default("channels_last", int64_t{0});
  const std::vector<AttributeSpec> reduced{required_attribute("axes", AttributeType::integers),
                                           with_default("keepdims", int64_t{1})};
  const AttributeSpec axis = optional_attribute("axis", AttributeType::integer);
  return {
      contrib_op("QLinearAdd", kBinary, "C", "dequantize_linear, add, quantize_linear", quantized_sum),
      contrib_op("QLinearMul", kBinary, "C", "dequantize_linear, mul, quantize_linear", quantized_mul),
      contrib_op("QLinearLeakyRelu", kUnary, "y", "dequantize_linear, leaky_relu, quantize_linear",
                 quantized_leaky_relu, {with_default("alpha", 0.01F)}),
      contrib_op("QLinearSigmoid", kUnary, "y", "dequantize_linear, sigmoid, quantize_linear", quantized_sigmoid),
      contrib_op("QLinearSoftmax", kUnary, "y", "dequantize_linear, softmax, quantize_linear", quantized_softmax,
                 {with_default("axis", int64_t{-1}), required_attribute("opset")}),
      contrib_op("QLinearReduceMean", kUnary, "y", "dequantize_linear, reduce_mean, quantize_linear",
                 quantized_reduce_mean, reduced),
      contrib_op("QLinearAveragePool", kUnary, "y", "dequantize_linear, average_pool, quantize_linear",
                 quantized_average_pool, attributes_of("average_pool", {channels_last_spec})),
      contrib_op("QLinearGlobalAveragePool", kUnary, "y", "dequantize_linear, global_average_pool, quantize_linear",
                 quantized_global_average_pool, {channels_last_spec}),
      contrib_op("QLinearConcat", "y_scale, y_zero_point, pieces*", "y", "dequantize_linear, concat, quantize_linear",
                 quantized_concat, {required_attribute("axis")}),
      contrib_op("QLinearWhere", "condition, X, x_scale, x_zero_point, Y, y_scale, y_zero_point, z_scale, z_zero_point",
                 "z", "dequantize_linear, where, quantize_linear", quantized_where),
      contrib_op("QLinearConv", "x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, B?", "y",
                 "qlinear_conv", quantized_conv, attributes_of("qlinear_conv", {channels_last_spec})),
      contrib_op("DequantizeLinear", "x, x_scale, x_zero_point?", "y", "dequantize_linear", dequantized, {axis}),
      contrib_op("QuantizeLinear", "x, y_scale, y_zero_point?", "y", "quantize_linear", quantized, {axis}),
      contrib_op("MulInteger", "A, A_zero_point?, B, B_zero_point?", "C", "sub, mul", mul_integer),
      contrib_op("ReduceSumInteger", "data", "reduced", "reduce_sum", reduce_sum_integer, reduced),
  };
}

}  // namespace autograph::io
