#include "io/onnx/contrib/body.h"

#include <algorithm>

#include "autograph/ops/reduction.h"

namespace autograph::io {
namespace {

std::vector<int64_t> iota(int64_t count) {
  std::vector<int64_t> list;
  for (int64_t i = 0; i < count; ++i) list.push_back(i);
  return list;
}

// A zero point of all zeros is none, and one of equal elements is a scalar: kernels take these.
Var simplest_zero_point(const ContribCall& call, Var zero) {
  if (!zero.is_valid()) return zero;
  const auto tensor = call.known(zero);
  if (!tensor || tensor->num_elements() == 0) return zero;
  const std::vector<int64_t> values = tensor->to_i64();
  if (std::any_of(values.begin(), values.end(), [&](int64_t v) { return v != values.front(); })) return zero;
  if (values.front() == 0) return {};
  const auto byte = static_cast<uint8_t>(values.front());
  return call.constant(tensor->dtype() == DType::u8 ? Tensor::scalar<uint8_t>(byte)
                                                    : Tensor::scalar<int8_t>(static_cast<int8_t>(byte)));
}

int64_t image_rank(const ContribCall& call, Var x) {
  const int64_t rank = call.rank(x);
  if (rank < 3) call.refuse("rank of an image", "expected 3 or more, got " + to_string(x.type()));
  return rank;
}

// What contrib ops call activation, and our op.
struct Activation {
  std::string_view name, op;
  std::vector<std::pair<std::string_view, float>> parameters = {};  // in order, with what they are if not given
  bool takes_inputs = false;                                        // parameters are further inputs
};

const std::vector<Activation>& activations() {
  constexpr float kLargest = std::numeric_limits<float>::max();
  static const std::vector<Activation> table = {
      {"Relu", "relu"},
      {"Tanh", "tanh"},
      {"Sigmoid", "sigmoid"},
      {"Softplus", "softplus"},
      {"Softsign", "softsign"},
      {"HardSwish", "hard_swish"},
      {"LeakyRelu", "leaky_relu", {{"alpha", 0.01F}}},
      {"ThresholdedRelu", "thresholded_relu", {{"alpha", 1.0F}}},
      {"Elu", "elu", {{"alpha", 1.0F}}},
      {"Celu", "celu", {{"alpha", 1.0F}}},
      {"HardSigmoid", "hard_sigmoid", {{"alpha", 0.2F}, {"beta", 0.5F}}},
      {"Clip", "clip", {{"min", -kLargest}, {"max", kLargest}}, true},
  };
  return table;
}

bool is_single(Var v) { return v.shape().is_static() && v.shape().num_elements() == 1; }

}  // namespace

Var as_scalar(const ContribCall& call, Var v) {
  if (!v.is_valid() || (v.shape().has_rank() && v.rank() == 0)) return v;
  if (const auto tensor = call.known(v); tensor && tensor->num_elements() == 1)
    return call.constant(tensor->reshaped({}));
  return reshape(v, call.constant(Tensor::vector({})));
}

Var reshape_known(const ContribCall& call, Var v, const std::vector<int64_t>& dims) {
  const auto tensor = call.known(v);
  if (!tensor) return reshape(v, dims);
  int64_t rest = tensor->num_elements();
  for (const int64_t d : dims) rest = d > 0 ? rest / d : rest;
  Dims known = dims;
  std::replace(known.begin(), known.end(), int64_t{-1}, rest);
  return call.constant(tensor->reshaped(known));
}

Var as_dtype(Var v, DType dtype) { return v.dtype() == dtype ? v : cast(v, dtype); }

Var extent_of(Var x, int64_t axis) {
  if (axis < 0) axis += x.rank();
  return slice(shape(x), {axis}, {axis + 1}, {0});
}

Var counted(const ContribCall& call, Var count) {
  return range(call.constant(Tensor::scalar<int64_t>(0)), as_scalar(call, count),
               call.constant(Tensor::scalar<int64_t>(1)));
}

Var swapped(const ContribCall& call, Var x) {
  const int64_t rank = call.rank(x);
  if (rank < 2) return x;
  std::vector<int64_t> perm = iota(rank);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(x, perm);
}

Var channels_first(const ContribCall& call, Var x) {
  const int64_t rank = image_rank(call, x);
  std::vector<int64_t> perm{0, rank - 1};
  for (int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return transpose(x, perm);
}

Var channels_last(const ContribCall& call, Var x) {
  std::vector<int64_t> perm = iota(image_rank(call, x));
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return transpose(x, perm);
}

Var activated(const ContribCall& call, Var x, const std::vector<float>& parameters) {
  const std::string name = call.attributes().get_or<std::string>("activation", "");
  if (name.empty()) return x;
  const std::vector<Activation>& known = activations();
  const auto row = std::find_if(known.begin(), known.end(), [&](const Activation& one) { return one.name == name; });
  if (row == known.end()) call.refuse("attribute 'activation'", "'" + name + "' is not supported");
  std::vector<Var> inputs{x};
  Attributes attributes;
  for (size_t i = 0; i < row->parameters.size(); ++i) {
    const auto& [parameter, otherwise] = row->parameters[i];
    const float value = i < parameters.size() ? parameters[i] : otherwise;
    if (row->takes_inputs) {
      inputs.push_back(scalar_like(x, value));
    } else {
      attributes.set(std::string(parameter), value);
    }
  }
  return apply(get_op(row->op), inputs, std::move(attributes));
}

std::vector<std::string_view> activation_ops() {
  std::vector<std::string_view> ops;
  for (const Activation& row : activations()) ops.push_back(row.op);
  return ops;
}

Var quantized_product(const ContribCall& call, const QuantizedOperands& operands) {
  const auto [a, a_scale, a_zero, b, b_scale, b_zero, bias] = operands;
  const Var a_shift = as_scalar(call, a_zero);
  const Var b_shift = simplest_zero_point(call, b_zero);
  const OpDef& product = get_op("matmul_integer");
  Var sum;
  if (!b_shift.is_valid() || is_single(b_shift)) {
    sum = apply(product, {a, b, a_shift, as_scalar(call, b_shift)});
  } else {
    // sum (a - a0)(b - b0[n]) = sum (a - a0) b - b0[n] sum (a - a0): kernels take no zero point per column.
    Var rows = as_dtype(a, DType::i32);
    if (a_shift.is_valid()) rows = sub(rows, as_dtype(a_shift, DType::i32));
    sum = sub(apply(product, {a, b, a_shift}), mul(reduce_sum(rows, {-1}), as_dtype(b_shift, DType::i32)));
  }
  const Var b_factor = is_single(b_scale) ? as_scalar(call, b_scale) : b_scale;
  const Var y = mul(as_dtype(sum, b_scale.dtype()), mul(as_scalar(call, a_scale), b_factor));
  return bias.is_valid() ? add(y, bias) : y;
}

}  // namespace autograph::io
