#include "backends/cpu/quantize/quantized_call.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "autograph/op_def.h"
#include "backends/cpu/quantize/is_byte.h"
#include "ops/defs.h"
#include "tensor/front_axis.h"

namespace autograph {

namespace {

std::optional<std::vector<float>> floats(const Tensor& tensor) {
  if (!tensor.is_present() || tensor.dtype() != DType::f32 || tensor.num_elements() == 0) return std::nullopt;
  return std::vector<float>(tensor.data<float>(), tensor.data<float>() + tensor.num_elements());
}

std::optional<std::vector<int32_t>> integers(const Tensor& tensor) {
  if (!tensor.is_present() || tensor.num_elements() == 0) return std::nullopt;
  if (!is_byte(tensor.dtype()) && tensor.dtype() != DType::i32) return std::nullopt;
  std::vector<int32_t> values;
  for (const double value : tensor.to_f64()) values.push_back(static_cast<int32_t>(value));
  return values;
}

bool all_positive(const std::vector<float>& scales) {
  return std::all_of(scales.begin(), scales.end(), [](float s) { return s > 0 && std::isfinite(s); });
}

// Reads the body of a fused node backwards from its output.
class BodyReader {
 public:
  BodyReader(const KernelCall& call, QuantizedCall& result)
      : call_(call), body_(*call.attributes.get<GraphRef>("body")), result_(result) {}

  // "" or why the body is something else.
  std::string read() {
    if (body_.outputs().size() != 1 || body_.inputs().size() != call_.inputs.size()) return kNotQuantized;
    ValueId v = body_.outputs()[0];
    std::string reason = read_output(v);
    if (reason.empty()) reason = read_epilogue(v);
    if (reason.empty()) reason = read_product(v);
    if (reason.empty() && visited_.size() != body_.num_nodes()) reason = kNotQuantized;
    if (reason.empty() && bias_is_row_ && result_.is_conv()) reason = "a sum along another axis than the channels";
    return reason;
  }

 private:
  static constexpr const char* kNotQuantized = "not a product of dequantized tensors";

  // The node that makes `v`; null for inputs and constants.
  const Node* maker(ValueId v) const {
    if (!v.is_valid()) return nullptr;
    const NodeId id = body_.value(v).producer();
    return id.is_valid() && body_.node(id).outputs().size() == 1 ? &body_.node(id) : nullptr;
  }

  Tensor constant(ValueId v) const {
    if (!v.is_valid()) return {};
    const Value& value = body_.value(v);
    if (value.is_constant()) return value.constant();
    if (value.is_input() && call_.constant(value.slot())) return *call_.constant(value.slot());
    return {};
  }

  // quantize_linear with one scale, at the end.
  std::string read_output(ValueId& v) {
    const Node* node = maker(v);
    result_.y.dtype = body_.type(v).dtype();
    if (!node || &node->op() != &quantize_linear_def()) return result_.y.dtype == DType::f32 ? "" : kNotQuantized;
    const auto scale = floats(constant(node->inputs()[1]));
    const auto zero = zero_points(*node);
    if (!scale || scale->size() != 1 || !all_positive(*scale) || zero.size() != 1) {
      return "a quantized output with more than one scale, or with one that is not known";
    }
    if (!is_byte(result_.y.dtype)) return "an output of other than 8 bits";
    const DType precision = node->attributes().get_or("precision", DType::undefined);
    if (precision != DType::undefined && precision != DType::f32) return "a division in other than f32";
    result_.y.scale = (*scale)[0];
    result_.y.zero = zero[0];
    v = node->inputs()[0];
    visited_.insert(node);
    return "";
  }

  // Zero when not given, nothing when not known.
  std::vector<int32_t> zero_points(const Node& node) const {
    if (node.inputs().size() < 3 || !node.inputs()[2].is_valid()) return {0};
    return integers(constant(node.inputs()[2])).value_or(std::vector<int32_t>());
  }

  std::string read_epilogue(ValueId& v) {
    const Node* node = maker(v);
    if (node && (&node->op() == &relu_def() || &node->op() == &clip_def())) {
      if (!read_bounds(*node)) return "a clip whose bounds are not known";
      visited_.insert(node);
      v = node->inputs()[0];
      node = maker(v);
    }
    for (int i = 0; i < 2 && node && &node->op() == &add_def(); ++i) {
      std::string reason = read_sum(*node, v);
      if (!reason.empty()) return reason;
      visited_.insert(node);
      node = maker(v);
    }
    return "";
  }

  bool read_bounds(const Node& node) {
    result_.low = 0;
    result_.high = std::numeric_limits<float>::infinity();
    if (&node.op() == &relu_def()) return true;
    result_.low = -result_.high;
    const auto read = [&](size_t slot, float& bound) {
      if (node.inputs().size() <= slot || !node.inputs()[slot].is_valid()) return true;
      const auto value = floats(constant(node.inputs()[slot]));
      if (value && value->size() == 1) bound = (*value)[0];
      return value && value->size() == 1;
    };
    return read(1, result_.low) && read(2, result_.high) && result_.low <= result_.high;
  }

  // A bias, or a residual; `v` becomes the other operand.
  std::string read_sum(const Node& node, ValueId& v) {
    for (const size_t k : {1, 0}) {
      const ValueId other = node.inputs()[k];
      if (const Node* maker_of = maker(other); maker_of && &maker_of->op() == &dequantize_linear_def()) {
        if (result_.residual) return "two residuals";
        QuantizedTensor residual;
        if (!read_tensor(*maker_of, residual)) return "a residual with more than one scale";
        if (call_.inputs[static_cast<size_t>(residual.input)].shape() != call_.outputs[0].shape()) {
          return "a residual that is broadcast";
        }
        if (!is_byte(result_.y.dtype)) return "a residual in front of an output of other than 8 bits";
        result_.residual = residual;
      } else if (const Tensor known = constant(other); known.is_present()) {
        if (!result_.bias.empty()) return "two biases";
        const auto bias = floats(known);
        if (!bias || known.rank() == 0 || known.dims().back() != known.num_elements()) return "a sum that is no bias";
        result_.bias = *bias;
        bias_is_row_ = true;
      } else {
        continue;
      }
      v = node.inputs()[1 - k];
      return "";
    }
    return "a sum with a tensor that is not quantized";
  }

  // dequantize_linear of an input of the call, with one scale.
  bool read_tensor(const Node& node, QuantizedTensor& tensor) {
    const Value& value = body_.value(node.inputs()[0]);
    const auto scale = floats(constant(node.inputs()[1]));
    const auto zero = zero_points(node);
    if (!value.is_input() || !is_byte(value.type().dtype()) || !scale || !all_positive(*scale)) return false;
    if (scale->size() != 1 || zero.size() != 1) return false;
    tensor = {static_cast<int>(value.slot()), value.type().dtype(), (*scale)[0], zero[0]};
    visited_.insert(&node);
    return true;
  }

  std::string read_product(ValueId v) {
    const Node* node = maker(v);
    if (!node) return kNotQuantized;
    const bool known = &node->op() == &conv_def() || &node->op() == &matmul_def() || &node->op() == &gemm_def();
    if (!known) return kNotQuantized;
    result_.op = &node->op();
    result_.attributes = &node->attributes();
    visited_.insert(node);
    const Node* x = maker(node->inputs()[0]);
    const Node* w = maker(node->inputs()[1]);
    if (!x || !w || &x->op() != &dequantize_linear_def() || &w->op() != &dequantize_linear_def()) return kNotQuantized;
    if (!read_tensor(*x, result_.x)) return "an input that is not 8-bit with one scale";
    std::string reason = read_weights(*w);
    if (!reason.empty() || node->inputs().size() < 3 || !node->inputs()[2].is_valid()) return reason;
    if (!result_.bias.empty()) return "two biases";
    const auto bias = floats(constant(node->inputs()[2]));
    if (!bias || static_cast<int64_t>(bias->size()) != result_.num_channels()) return "a bias that is not known";
    result_.bias = *bias;
    return "";
  }

  std::string read_weights(const Node& node) {
    const Value& value = body_.value(node.inputs()[0]);
    const auto scale = floats(constant(node.inputs()[1]));
    const auto zero = zero_points(node);
    if (!value.is_input() || !is_byte(value.type().dtype())) return "weights of other than 8 bits";
    if (!scale || !all_positive(*scale) || zero.empty()) return "weights with scales that are not known";
    result_.w = static_cast<int>(value.slot());
    result_.w_dtype = value.type().dtype();
    result_.weights = constant(node.inputs()[0]);
    result_.w_dims = call_.input_dims(value.slot());
    if (scale->size() > 1) {
      const auto rank = static_cast<int64_t>(result_.w_dims.size());
      const int64_t axis = node.attributes().integer("axis");
      if (node.attributes().integer("block_size") > 0) return "weights with a scale per block";
      const bool fits = static_cast<size_t>(front_axis(axis, rank)) == result_.channel_axis_of_weights();
      if (!fits) return "weights with scales along another axis than the output channels";
    }
    result_.scale = *scale;
    for (float& s : result_.scale) s *= result_.x.scale;
    result_.w_zero = zero;
    visited_.insert(&node);
    return "";
  }

  const KernelCall& call_;
  const Graph& body_;
  QuantizedCall& result_;
  std::set<const Node*> visited_;  // what was understood; nothing else may be there
  bool bias_is_row_ = false;
};

Tensor known(const KernelCall& call, size_t slot) { return call.constant(slot) ? *call.constant(slot) : Tensor(); }

// x or w of an op that takes scale and zero point as inputs; `scale` may be beyond the inputs.
bool read_parameters(const KernelCall& call, size_t scale, size_t zero, std::vector<float>& scales,
                     std::vector<int32_t>& zeros) {
  const auto s = floats(known(call, scale));
  const auto z = integers(known(call, zero));
  if (!s || !all_positive(*s) || !z) return false;
  scales = *s;
  zeros = *z;
  return true;
}

// x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero and perhaps a bias in units of the accumulator.
std::string read_qlinear(const KernelCall& call, const OpDef& op, QuantizedCall& result) {
  std::vector<float> x_scale, w_scale, y_scale;
  std::vector<int32_t> x_zero, y_zero;
  if (!read_parameters(call, 1, 2, x_scale, x_zero) || !read_parameters(call, 4, 5, w_scale, result.w_zero) ||
      !read_parameters(call, 6, 7, y_scale, y_zero)) {
    return "scales or zero points that are not known";
  }
  if (x_scale.size() != 1 || x_zero.size() != 1) return "an input with more than one scale";
  result.op = &op;
  result.attributes = &call.attributes;
  result.x = {0, call.inputs[0].dtype(), x_scale[0], x_zero[0]};
  result.w = 3;
  result.scale = w_scale;
  for (float& s : result.scale) s *= x_scale[0];
  result.y = {-1, call.outputs[0].dtype(), y_scale[0], y_zero[0]};
  if (!call.has_input(8)) return "";
  const auto bias = integers(known(call, 8));
  if (!bias) return "a bias that is not known";
  for (size_t c = 0; c < bias->size(); ++c) {
    result.bias.push_back(static_cast<float>((*bias)[c]) * result.scale[result.scale.size() > 1 ? c : 0]);
  }
  return "";
}

// x, w, x_zero, w_zero.
std::string read_conv_integer(const KernelCall& call, QuantizedCall& result) {
  result.op = &conv_def();
  result.attributes = &call.attributes;
  result.x = {0, call.inputs[0].dtype(), 1, 0};
  result.w = 1;
  result.y = {-1, DType::i32, 1, 0};
  if (call.has_input(2)) {
    const auto zero = integers(known(call, 2));
    if (!zero) return "a zero point that is not known";
    result.x.zero = (*zero)[0];
  }
  if (!call.has_input(3)) return "";
  const auto zero = integers(known(call, 3));
  if (!zero) return "a zero point that is not known";
  result.w_zero = *zero;
  return "";
}

std::string read_any(const KernelCall& call, QuantizedCall& result) {
  if (&call.op == &fused_def()) return BodyReader(call, result).read();
  if (&call.op == &qlinear_conv_def()) return read_qlinear(call, conv_def(), result);
  if (&call.op == &qlinear_matmul_def()) return read_qlinear(call, matmul_def(), result);
  if (&call.op == &conv_integer_def()) return read_conv_integer(call, result);
  return "not a product of 8-bit numbers";
}

// Whatever they are, do weights fit i8 once their zero point is subtracted?
bool fit_for_sure(const QuantizedCall& call) {
  constexpr int32_t kMiddle = 128;
  return call.w_dtype == DType::u8 &&
         std::all_of(call.w_zero.begin(), call.w_zero.end(), [](int32_t z) { return z == kMiddle; });
}

// Scales are multiplied and divided here instead of the values that they stand for: the results must neither overflow
// nor vanish, nor must the values.
bool are_tame(const QuantizedCall& call) {
  constexpr float kLargestDifference = 255;  // of a byte and a zero point
  const auto is_normal = [](float value) { return std::isnormal(value); };
  const auto fits_bytes = [&](float scale) { return std::isfinite(scale * kLargestDifference) && is_normal(scale); };
  if (!fits_bytes(call.x.scale) || (is_byte(call.y.dtype) && !fits_bytes(call.y.scale))) return false;
  if (call.residual && (!fits_bytes(call.residual->scale) || !is_normal(call.residual->scale / call.y.scale))) {
    return false;
  }
  for (size_t c = 0; c < call.scale.size(); ++c) {
    if (!is_normal(call.scale[c]) || !is_normal(call.scale[c] / call.y.scale)) return false;
  }
  for (size_t c = 0; c < call.bias.size(); ++c) {
    if (!std::isfinite(call.bias[c] / call.scale[call.scale.size() > 1 ? c : 0])) return false;
  }
  return true;
}

std::string why_not_sizes(const QuantizedCall& call) {
  const auto fits = [&](size_t count) { return count <= 1 || static_cast<int64_t>(count) == call.num_channels(); };
  if (!is_byte(call.x.dtype) || !is_byte(call.w_dtype)) return "tensors of other than 8 bits";
  if (call.w_dims.size() < 2) return "a vector of weights";
  if (!fits(call.scale.size()) || !fits(call.w_zero.size())) return "scales that are not one per output channel";
  if (!call.bias.empty() && static_cast<int64_t>(call.bias.size()) != call.num_channels()) {
    return "a bias that is not one number per output channel";
  }
  if (!are_tame(call)) return "scales whose products leave the normal numbers";
  return "";
}

}  // namespace

std::optional<QuantizedCall> QuantizedCall::read(const KernelCall& call, std::string& why_not) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (!type.is_tensor() || type.shape().num_elements() != 0) continue;
      why_not = "a tensor without elements";
      return std::nullopt;
    }
  }
  QuantizedCall result;
  if (call.outputs.size() != 1) {
    why_not = "more than one output";
    return std::nullopt;
  }
  why_not = read_any(call, result);
  if (!why_not.empty()) return std::nullopt;
  result.x_dims = call.input_dims(static_cast<size_t>(result.x.input));
  result.w_dims = call.input_dims(static_cast<size_t>(result.w));
  result.y_dims = call.output_dims(0);
  result.w_dtype = call.inputs[static_cast<size_t>(result.w)].dtype();
  if (!result.weights.is_present()) result.weights = known(call, static_cast<size_t>(result.w));
  why_not = why_not_sizes(result);
  if (!why_not.empty()) return std::nullopt;
  return result;
}

bool QuantizedCall::is_conv() const { return op == &conv_def(); }

size_t QuantizedCall::channel_axis_of_weights() const {
  if (is_conv()) return 0;
  if (op == &gemm_def() && attributes->flag("transB")) return 0;
  return w_dims.size() - 1;
}

std::string QuantizedCall::why_not_matmul() const {
  if (op != &gemm_def()) return "";
  if (attributes->flag("transA")) return "a transposed left side";
  if (attributes->real("alpha") != 1.0F) return "alpha other than 1";
  return bias.empty() || attributes->real("beta") == 1.0F ? "" : "beta other than 1";
}

bool QuantizedCall::must_shift_weights() const {
  return w_dtype != DType::i8 || std::any_of(w_zero.begin(), w_zero.end(), [](int32_t z) { return z != 0; });
}

std::string QuantizedCall::why_not_signed_weights() const {
  if (!must_shift_weights()) return "";
  const bool fit = weights.is_present() ? signed_weights().is_present() : fit_for_sure(*this);
  return fit ? "" : "weights that may not fit i8 once their zero point is subtracted";
}

Tensor QuantizedCall::signed_weights() const {
  if (!weights.is_present() || !must_shift_weights()) return weights;
  Tensor result = Tensor::empty(DType::i8, weights.dims());
  int64_t inner = 1;
  for (size_t a = channel_axis_of_weights() + 1; a < w_dims.size(); ++a) inner *= w_dims[a];
  const int64_t channels = num_channels();
  const uint8_t* from = static_cast<const uint8_t*>(weights.raw());
  int8_t* to = result.mutable_data<int8_t>();
  for (int64_t i = 0; i < weights.num_elements(); ++i) {
    const int32_t q = w_dtype == DType::i8 ? static_cast<int8_t>(from[i]) : from[i];
    const int32_t shifted = q - w_zero[w_zero.size() > 1 ? static_cast<size_t>(i / inner % channels) : 0];
    if (shifted < -128 || shifted > 127) return {};
    to[i] = static_cast<int8_t>(shifted);
  }
  return result;
}

}  // namespace autograph
