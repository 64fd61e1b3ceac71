// Each elementwise op that oneDNN has a formula for is one line of a table. A residual is a sum post-op: the output
// starts as a copy of it, which costs nothing when the memory plan gives both the same place.
//
// oneDNN's relu and clip give a number where the value is NaN; a network that makes NaN is better debugged with
// --check-nan, which runs every node by itself.
#include "backends/cpu/onednn/post_ops.h"

#include <cmath>
#include <optional>

#include "autograph/op_def.h"

namespace autograph {

const OpDef& abs_def();
const OpDef& add_def();
const OpDef& clip_def();
const OpDef& elu_def();
const OpDef& exp_def();
const OpDef& gelu_def();
const OpDef& hard_sigmoid_def();
const OpDef& hard_swish_def();
const OpDef& leaky_relu_def();
const OpDef& mul_def();
const OpDef& relu_def();
const OpDef& sigmoid_def();
const OpDef& softplus_def();
const OpDef& sqrt_def();
const OpDef& swish_def();
const OpDef& tanh_def();

namespace onednn {
namespace {

using dnnl::algorithm;

// A formula of oneDNN: kind(alpha, beta).
struct Eltwise {
  algorithm kind;
  float alpha = 0;
  float beta = 0;
};

std::vector<Eltwise> clip(const EpilogueOp& op) {
  const auto low = known_number(op, 1, -INFINITY);
  const auto high = known_number(op, 2, INFINITY);
  if (!low || !high || *low > *high) return {};
  return {{algorithm::eltwise_clip, *low, *high}};
}

// One operand, the chain: the formulas that compute the op, none when there are none.
std::vector<Eltwise> unary_formulas(const EpilogueOp& op) {
  const Attributes& a = *op.attributes;
  if (op.op == &relu_def()) return {{algorithm::eltwise_relu}};
  if (op.op == &leaky_relu_def()) return {{algorithm::eltwise_relu, a.real("alpha")}};
  if (op.op == &sigmoid_def()) return {{algorithm::eltwise_logistic}};
  if (op.op == &tanh_def()) return {{algorithm::eltwise_tanh}};
  if (op.op == &elu_def()) return {{algorithm::eltwise_elu, a.real("alpha")}};
  if (op.op == &hard_swish_def()) return {{algorithm::eltwise_hardswish}};
  if (op.op == &swish_def()) return {{algorithm::eltwise_swish, a.real("alpha")}};
  if (op.op == &softplus_def()) return {{algorithm::eltwise_soft_relu}};
  if (op.op == &abs_def()) return {{algorithm::eltwise_abs}};
  if (op.op == &sqrt_def()) return {{algorithm::eltwise_sqrt}};
  if (op.op == &exp_def()) return {{algorithm::eltwise_exp}};
  if (op.op == &clip_def()) return clip(op);
  if (op.op == &gelu_def()) {
    return {{a.text("approximate") == "tanh" ? algorithm::eltwise_gelu_tanh : algorithm::eltwise_gelu_erf}};
  }
  if (op.op == &hard_sigmoid_def()) {
    return {{algorithm::eltwise_linear, a.real("alpha"), a.real("beta")}, {algorithm::eltwise_clip, 0.0F, 1.0F}};
  }
  return {};
}

// add or mul with a known scalar.
std::vector<Eltwise> scalar_formulas(const EpilogueOp& op) {
  const Tensor& constant = other_operand(op).constant;
  if (!constant.is_present() || constant.num_elements() != 1) return {};
  const float c = constant.data<float>()[0];
  if (op.op == &add_def()) return {{algorithm::eltwise_linear, 1.0F, c}};
  return {{algorithm::eltwise_linear, c, 0.0F}};
}

bool is_binary(const EpilogueOp& op) { return (op.op == &add_def() || op.op == &mul_def()) && op.operands.size() == 2; }

std::vector<Eltwise> formulas(const EpilogueOp& op) { return is_binary(op) ? scalar_formulas(op) : unary_formulas(op); }

// oneDNN's formulas of these have a division in them.
simd::ActivationPass activation_pass(const EpilogueOp& op) {
  using Kind = simd::ActivationPass::Kind;
  if (op.op == &swish_def()) return {Kind::swish, op.attributes->real("alpha")};
  if (op.op != &gelu_def()) return {};
  return {op.attributes->text("approximate") == "tanh" ? Kind::gelu_tanh : Kind::gelu};
}

bool is_full(const AnchoredCall& call, const Operand& operand) { return operand.type == call.output(); }

// The dims of a vector along the channel axis, as [1, C, 1, 1]; nothing for other shapes.
std::optional<dnnl::memory::dims> vector_dims(const AnchoredCall& call, const Operand& operand, size_t channel_axis) {
  const Dims out = call.output().shape().static_dims();
  Dims in = operand.type.shape().static_dims();
  if (in.size() > out.size()) return std::nullopt;
  in.insert(in.begin(), out.size() - in.size(), 1);
  for (size_t a = 0; a < in.size(); ++a) {
    if (in[a] != (a == channel_axis ? out[a] : 1)) return std::nullopt;
  }
  return in;
}

}  // namespace

std::string why_not_post_ops(const AnchoredCall& call, size_t channel_axis, size_t first) {
  bool has_sum = false;
  for (size_t i = first; i < call.epilogue().size(); ++i) {
    const EpilogueOp& op = call.epilogue()[i];
    if (!formulas(op).empty()) continue;
    const std::string name(op.op->name);
    if (!is_binary(op)) return "no post-op for " + name;
    const Operand& other = other_operand(op);
    if (other.input < 0) return name + " with a constant tensor inside the body";
    if (op.op == &add_def() && is_full(call, other) && !other.constant.is_present() && !has_sum) {
      has_sum = true;
    } else if (!vector_dims(call, other, channel_axis)) {
      return name + " with a tensor that is neither a vector over channels nor a residual";
    } else if (call.output().shape()[static_cast<int64_t>(channel_axis)].value() % 16 != 0) {
      return name + " with a vector of channels that does not fill its last block";
    }
  }
  return "";
}

PostOps make_post_ops(const AnchoredCall& call, const OutputForm& form, size_t first) {
  PostOps result;
  size_t end = call.epilogue().size();
  if (end > first) result.last = activation_pass(call.epilogue()[end - 1]);
  if (result.last.kind != simd::ActivationPass::Kind::none) --end;
  for (size_t i = first; i < end; ++i) {
    const EpilogueOp& op = call.epilogue()[i];
    const std::vector<Eltwise> list = formulas(op);
    for (const Eltwise& f : list) result.ops.append_eltwise(1.0F, f.kind, f.alpha, f.beta);
    if (!list.empty()) continue;
    const Operand& other = other_operand(op);
    const auto input = static_cast<size_t>(other.input);
    if (op.op == &add_def() && is_full(call, other) && result.accumulated_input < 0) {
      result.accumulated_input = other.input;
      result.ops.append_sum(1.0F);
      continue;
    }
    dnnl::memory::dims vector(form.dims.size(), 1);
    vector[form.channel_axis] = form.dims[form.channel_axis];
    const auto kind = op.op == &add_def() ? algorithm::binary_add : algorithm::binary_mul;
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(result.ops.len()) | DNNL_ARG_SRC_1;
    result.ops.append_binary(kind, row_major(vector));
    result.arguments.push_back({id, false, input, row_major(vector), row_major(vector), other.constant});
  }
  return result;
}

}  // namespace onednn
}  // namespace autograph
