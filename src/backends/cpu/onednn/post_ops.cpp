// Each elementwise op that oneDNN has a formula for is one line of a table. A residual is a sum post-op: the output
// starts as a copy of it, which costs nothing when the memory plan gives both the same place.
//
// oneDNN 2.6 keeps the code of formulas by their kind (jit_uni_postops_injector): of two of a kind in one primitive the
// second is computed with the numbers of the first. So neighbours of a kind become one formula where that is the same,
// and a chain with two of a kind and different numbers ends before the second.
//
// oneDNN's relu and clip give a number where the value is NaN; a network that makes NaN is better debugged with
// --check-nan, which runs every node by itself.
#include "backends/cpu/onednn/post_ops.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "autograph/op_def.h"
#include "base/check.h"
#include "ops/defs.h"

namespace autograph {
namespace onednn {
namespace {

using dnnl::algorithm;

// A formula of oneDNN: kind(alpha, beta).
struct Eltwise {
  algorithm kind;
  float alpha = 0;
  float beta = 0;

  bool operator==(const Eltwise&) const = default;
};

// A post-op: a formula, or what `op` does with a tensor.
struct Step {
  enum class Kind : uint8_t { formula, sum, binary };
  Kind kind = Kind::formula;
  Eltwise formula = {algorithm::undef};
  const EpilogueOp* op = nullptr;
};

std::vector<Eltwise> clip(const EpilogueOp& op) {
  const auto low = known_number(op, 1, -INFINITY);
  const auto high = known_number(op, 2, INFINITY);
  if (!low || !high || !(*low <= *high)) return {};
  return {{algorithm::eltwise_clip, *low, *high}};
}

// One operand, the chain: the formulas that compute the op, none when there are none.
std::vector<Eltwise> unary_formulas(const EpilogueOp& op) {
  const Attributes& a = *op.attributes;
  if (op.op == &relu_def()) return {{algorithm::eltwise_relu}};
  if (op.op == &leaky_relu_def()) return {{algorithm::eltwise_relu, a.real("alpha")}};
  if (op.op == &sigmoid_def()) return {{algorithm::eltwise_logistic}};
  if (op.op == &tanh_def()) return {{algorithm::eltwise_tanh}};
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

// oneDNN's formulas of these have a division in them; of elu it forms exp(y) - 1, of which nothing is left where y is
// small.
simd::ActivationPass activation_pass(const EpilogueOp& op) {
  using Kind = simd::ActivationPass::Kind;
  if (op.op == &swish_def()) return {Kind::swish, op.attributes->real("alpha")};
  if (op.op == &elu_def()) return {Kind::elu, op.attributes->real("alpha")};
  if (op.op != &gelu_def()) return {};
  return {op.attributes->text("approximate") == "tanh" ? Kind::gelu_tanh : Kind::gelu};
}

bool is_full(const AnchoredCall& call, const Operand& operand) { return operand.type == call.output(); }

// Is a linear formula one that another may be merged with? Factors and sums far from 1 overflow, vanish or round off
// digits on the way (x + 2^23 - 2^23 does so on purpose), which one formula for both would not.
bool is_tame(const Eltwise& f) {
  constexpr float kMaxFactor = 1 << 20;
  constexpr float kMaxTerm = 1 << 12;
  const float factor = std::fabs(f.alpha);
  return (factor == 0 || factor >= 1 / kMaxFactor) && factor <= kMaxFactor && std::fabs(f.beta) <= kMaxTerm;
}

// f, then g, as one formula.
std::optional<Eltwise> merged(const Eltwise& f, const Eltwise& g) {
  if (f.kind != g.kind) return std::nullopt;
  switch (f.kind) {
    case algorithm::eltwise_linear: {
      const Eltwise both{f.kind, f.alpha * g.alpha, f.beta * g.alpha + g.beta};
      return is_tame(f) && is_tame(g) && is_tame(both) ? std::optional(both) : std::nullopt;
    }
    case algorithm::eltwise_clip:
      return Eltwise{f.kind, std::clamp(f.alpha, g.alpha, g.beta), std::clamp(f.beta, g.alpha, g.beta)};
    case algorithm::eltwise_relu: {
      // A negative slope turns its half round, to which the other slope then does not apply.
      const bool stays = f.alpha >= 0 && std::isfinite(f.alpha * g.alpha);
      return stays ? std::optional(Eltwise{f.kind, f.alpha * g.alpha}) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

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

// Reads an epilogue as post-ops.
class StepReader {
 public:
  StepReader(const AnchoredCall& call, std::optional<size_t> channel_axis, size_t first)
      : call_(call), channel_axis_(channel_axis) {
    size_t end = call.epilogue().size();
    if (end > first) last_ = activation_pass(call.epilogue()[end - 1]);
    if (last_.kind != simd::ActivationPass::Kind::none) --end;
    for (size_t i = first; i < end && refusal_.empty(); ++i) read(call.epilogue()[i]);
    if (refusal_.empty()) refuse_two_of_a_kind();
  }

  const std::vector<Step>& steps() const { return steps_; }
  const simd::ActivationPass& last() const { return last_; }
  /// Why the epilogue cannot be post-ops, or "".
  const std::string& refusal() const { return refusal_; }

 private:
  void read(const EpilogueOp& op) {
    const std::vector<Eltwise> list = formulas(op);
    for (const Eltwise& formula : list) append(formula);
    if (!list.empty()) return;
    const std::string name(op.op->name);
    if (!is_binary(op)) {
      refusal_ = "no post-op for " + name;
    } else if (other_operand(op).input < 0) {
      refusal_ = name + " with a constant tensor inside the body";
    } else {
      read_tensor(op, name);
    }
  }

  void append(const Eltwise& formula) {
    if (!steps_.empty() && steps_.back().kind == Step::Kind::formula) {
      if (const auto both = merged(steps_.back().formula, formula)) {
        steps_.back().formula = *both;
        return;
      }
    }
    steps_.push_back({Step::Kind::formula, formula, nullptr});
  }

  void read_tensor(const EpilogueOp& op, const std::string& name) {
    const Operand& other = other_operand(op);
    if (op.op == &add_def() && is_full(call_, other) && !other.constant.is_present() && !has_sum_) {
      has_sum_ = true;
      steps_.push_back({Step::Kind::sum, {algorithm::undef}, &op});
    } else if (!channel_axis_ || !vector_dims(call_, other, *channel_axis_)) {
      refusal_ = name + " with a tensor that is neither a vector over channels nor a residual";
    } else if (call_.output().shape()[static_cast<int64_t>(*channel_axis_)].value() % 16 != 0) {
      refusal_ = name + " with a vector of channels that does not fill its last block";
    } else {
      steps_.push_back({Step::Kind::binary, {algorithm::undef}, &op});
    }
  }

  void refuse_two_of_a_kind() {
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const Eltwise &f = steps_[k].formula, &g = steps_[i].formula;
        const bool formulas = steps_[k].kind == Step::Kind::formula && steps_[i].kind == Step::Kind::formula;
        if (!formulas || f.kind != g.kind || f == g) continue;
        refusal_ = fmt::format(
            "two post-ops of one kind with different numbers, ({}, {}) and ({}, {}): oneDNN computes both with the "
            "first ones",
            f.alpha, f.beta, g.alpha, g.beta);
        return;
      }
    }
  }

  const AnchoredCall& call_;
  std::optional<size_t> channel_axis_;
  std::vector<Step> steps_;
  simd::ActivationPass last_;
  std::string refusal_;
  bool has_sum_ = false;
};

}  // namespace

std::string why_not_post_ops(const AnchoredCall& call, std::optional<size_t> channel_axis, size_t first) {
  return StepReader(call, channel_axis, first).refusal();
}

PostOps make_post_ops(const AnchoredCall& call, std::optional<size_t> channel_axis, const OutputForm& form,
                      size_t first) {
  const StepReader reader(call, channel_axis, first);
  AG_CHECK(reader.refusal().empty(), "post-ops that were refused: {}", reader.refusal());
  PostOps result;
  result.last = reader.last();
  for (const Step& step : reader.steps()) {
    if (step.kind == Step::Kind::formula) {
      result.ops.append_eltwise(1.0F, step.formula.kind, step.formula.alpha, step.formula.beta);
      continue;
    }
    const Operand& other = other_operand(*step.op);
    if (step.kind == Step::Kind::sum) {
      result.accumulated_input = other.input;
      result.ops.append_sum(1.0F);
      continue;
    }
    dnnl::memory::dims vector(form.dims.size(), 1);
    vector[form.channel_axis] = form.dims[form.channel_axis];
    const auto kind = step.op->op == &add_def() ? algorithm::binary_add : algorithm::binary_mul;
    const int id = DNNL_ARG_ATTR_MULTIPLE_POST_OP(result.ops.len()) | DNNL_ARG_SRC_1;
    result.ops.append_binary(kind, row_major(vector));
    result.arguments.push_back(
        {id, false, static_cast<size_t>(other.input), row_major(vector), row_major(vector), other.constant});
  }
  return result;
}

}  // namespace onednn
}  // namespace autograph
