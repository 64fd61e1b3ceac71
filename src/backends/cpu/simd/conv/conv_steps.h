// What the SIMD convolutions do with an output after its sum is complete.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/anchored_call.h"
#include "base/function_ref.h"

namespace autograph::simd {

/// One elementwise op behind a convolution, or behind a product of a channel gate.
struct ConvStep {
  enum class Kind : uint8_t {
    add_residual,
    times_residual,  ///< As of a gate: f(x W1) x W2.
    add_number,      ///< x + p
    scale,           ///< p x
    clip,            ///< Between p and q.
    // What ops of these names compute (formulas-inl.h), with p and q as their parameters.
    hard_sigmoid,
    hard_swish,
    swish,
    leaky_relu,
    elu,
    sigmoid,
    tanh,
    gelu,
    gelu_tanh,
  };
  Kind kind = Kind::clip;
  float p = 0;
  float q = 0;
  uint8_t residual = 0;  ///< Which of the residuals is added, or multiplied.

  bool reads_residual() const { return kind == Kind::add_residual || kind == Kind::times_residual; }
};

/// The epilogue of a convolution in steps.
struct ConvSteps {
  std::vector<ConvStep> list;
  std::vector<int> residuals;  ///< Inputs of the call that are added in it, or multiplied.
  std::string refusal;         ///< Why it cannot be written in steps.

  bool reads(size_t slot) const;
};

/// Where residuals lie from some element of the output on, as which each of them is laid out.
class ConvResiduals {
 public:
  /// The sum of three blocks ends in a convolution with two.
  static constexpr size_t kMost = 2;

  ConvResiduals() = default;
  ConvResiduals(const ConvSteps& steps, const KernelArgs& args);
  /// What `step` reads; null when it reads none.
  const float* of(const ConvStep& step) const { return at_[step.residual]; }
  ConvResiduals operator+(int64_t elements) const;

 private:
  std::array<const float*, kMost> at_{};
};

inline ConvResiduals ConvResiduals::operator+(int64_t elements) const {
  ConvResiduals moved = *this;
  for (const float*& at : moved.at_) at = at ? at + elements : nullptr;
  return moved;
}

/// The step that an activation function is. `number` tells what operand `slot` holds: `otherwise` when it is not given,
/// nothing when it is not known.
std::optional<ConvStep> activation_step(const OpDef& op, const Attributes& attributes,
                                        FunctionRef<std::optional<float>(size_t slot, float otherwise)> number);

/// Reads the epilogue of `conv`, or of another call whose epilogue is of this kind, from its op `first` on.
ConvSteps read_conv_steps(const AnchoredCall& conv, size_t first = 0);

/// "" when the input is given on every run and weights and bias, where there is one, are known; else the reason.
std::string why_not_known_weights(const AnchoredCall& conv);

/// A convolution in each of `layouts`, the residuals of its steps in the same one, for `us` microseconds.
std::vector<KernelVariant> conv_variants(const KernelCall& call, const AnchoredCall& conv, const ConvSteps& steps,
                                         std::span<const Layout> layouts, double us);

}  // namespace autograph::simd
