// What the SIMD convolutions do with an output after its sum is complete.
#pragma once

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
};

/// The epilogue of a convolution in steps.
struct ConvSteps {
  std::vector<ConvStep> list;
  int residual = -1;    ///< Which input of the call is added in it, or multiplied.
  std::string refusal;  ///< Why it cannot be written in steps.
};

/// The step that an activation function is. `number` tells what operand `slot` holds: `otherwise` when it is not given,
/// nothing when it is not known.
std::optional<ConvStep> activation_step(const OpDef& op, const Attributes& attributes,
                                        FunctionRef<std::optional<float>(size_t slot, float otherwise)> number);

/// Reads the epilogue of `conv`, or of another call whose epilogue is of this kind, from its op `first` on.
ConvSteps read_conv_steps(const AnchoredCall& conv, size_t first = 0);

/// "" when the input is given on every run and weights and bias, where there is one, are known; else the reason.
std::string why_not_known_weights(const AnchoredCall& conv);

/// A convolution in each of `layouts`, the residual of its steps in the same one, for `us` microseconds.
std::vector<KernelVariant> conv_variants(const KernelCall& call, const AnchoredCall& conv, const ConvSteps& steps,
                                         std::span<const Layout> layouts, double us);

}  // namespace autograph::simd
