#include "backends/cpu/simd/conv/conv_steps.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "autograph/op_def.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

// An op of two operands one of which is a known number.
std::optional<ConvStep> step_with_number(const EpilogueOp& op) {
  const bool is_first = op.operands[0].is_chain;
  const auto number = known_number(op, is_first ? 1 : 0, 0);
  if (!number) return std::nullopt;
  if (op.op == &add_def()) return ConvStep{ConvStep::Kind::add_number, *number};
  if (op.op == &mul_def()) return ConvStep{ConvStep::Kind::scale, *number};
  if (op.op == &sub_def() && is_first) return ConvStep{ConvStep::Kind::add_number, -*number};
  const float inverse = 1 / *number;
  if (op.op == &div_def() && is_first && std::isnormal(inverse)) return ConvStep{ConvStep::Kind::scale, inverse};
  return std::nullopt;
}

std::optional<ConvStep> step_of(const AnchoredCall& conv, const EpilogueOp& op) {
  const auto number = [&](size_t slot, float otherwise) { return known_number(op, slot, otherwise); };
  if (const auto step = activation_step(*op.op, *op.attributes, number)) return step;
  if (op.operands.size() != 2) return std::nullopt;
  const Operand& other = other_operand(op);
  if (other.input >= 0 && other.type == conv.output()) {
    if (op.op == &add_def()) return ConvStep{ConvStep::Kind::add_residual};
    if (op.op == &mul_def()) return ConvStep{ConvStep::Kind::times_residual};
  }
  return step_with_number(op);
}

}  // namespace

bool ConvSteps::reads(size_t slot) const {
  return std::find(residuals.begin(), residuals.end(), static_cast<int>(slot)) != residuals.end();
}

ConvResiduals::ConvResiduals(const ConvSteps& steps, const KernelArgs& args) {
  for (size_t i = 0; i < steps.residuals.size(); ++i) {
    at_[i] = args.inputs[static_cast<size_t>(steps.residuals[i])].data<float>();
  }
}

std::optional<ConvStep> activation_step(const OpDef& op, const Attributes& attributes,
                                        FunctionRef<std::optional<float>(size_t slot, float otherwise)> number) {
  using Kind = ConvStep::Kind;
  if (&op == &relu_def()) return ConvStep{Kind::clip, 0, INFINITY};
  if (&op == &hard_sigmoid_def())
    return ConvStep{Kind::hard_sigmoid, attributes.real("alpha"), attributes.real("beta")};
  if (&op == &hard_swish_def()) return ConvStep{Kind::hard_swish};
  if (&op == &swish_def()) return ConvStep{Kind::swish, attributes.real("alpha")};
  if (&op == &leaky_relu_def()) return ConvStep{Kind::leaky_relu, attributes.real("alpha")};
  if (&op == &elu_def()) return ConvStep{Kind::elu, attributes.real("alpha")};
  if (&op == &sigmoid_def()) return ConvStep{Kind::sigmoid};
  if (&op == &tanh_def()) return ConvStep{Kind::tanh};
  if (&op == &gelu_def()) {
    return ConvStep{attributes.text("approximate") == "none" ? Kind::gelu : Kind::gelu_tanh};
  }
  if (&op != &clip_def()) return std::nullopt;
  const auto low = number(1, -INFINITY), high = number(2, INFINITY);
  if (!low || !high || !(*low <= *high)) return std::nullopt;
  return ConvStep{Kind::clip, *low, *high};
}

ConvSteps read_conv_steps(const AnchoredCall& conv, size_t first) {
  ConvSteps steps;
  for (const EpilogueOp& op : std::span(conv.epilogue()).subspan(first)) {
    auto step = step_of(conv, op);
    if (!step || (step->reads_residual() && steps.residuals.size() == ConvResiduals::kMost)) {
      steps.refusal = "no loop for " + std::string(op.op->name) + " behind it";
      return steps;
    }
    if (step->reads_residual()) {
      step->residual = static_cast<uint8_t>(steps.residuals.size());
      steps.residuals.push_back(other_operand(op).input);
    }
    steps.list.push_back(*step);
  }
  return steps;
}

std::string why_not_known_weights(const AnchoredCall& conv) {
  if (conv.operand(kX).input < 0) return "a constant input";
  if (!conv.operand(kW).constant.is_present()) return "unknown weights";
  return conv.has(kB) && !conv.operand(kB).constant.is_present() ? "an unknown bias" : "";
}

std::vector<KernelVariant> conv_variants(const KernelCall& call, const AnchoredCall& conv, const ConvSteps& steps,
                                         std::span<const Layout> layouts, double us) {
  std::vector<KernelVariant> result;
  for (const Layout layout : layouts) {
    std::vector<Layout> inputs(call.inputs.size(), Layout::row_major);
    inputs[static_cast<size_t>(conv.operand(kX).input)] = layout;
    for (const int residual : steps.residuals) inputs[static_cast<size_t>(residual)] = layout;
    result.push_back({.name = "", .inputs = std::move(inputs), .outputs = {layout}, .cost_us = us});
  }
  return result;
}

}  // namespace autograph::simd
