// What the SIMD convolutions do with an output after its sum is complete.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "backends/cpu/anchored_call.h"

namespace autograph::simd {

/// One elementwise op behind a convolution.
struct ConvStep {
  enum class Kind : uint8_t {
    add_residual,
    add_number,    ///< x + p
    scale,         ///< p x
    clip,          ///< Between p and q.
    hard_sigmoid,  ///< p x + q between 0 and 1
    hard_swish,    ///< x clip(x / 6 + 1/2, 0, 1)
    swish,         ///< x sigmoid(p x)
    leaky_relu,    ///< x, p x below 0
    elu,           ///< x, p (exp(x) - 1) below 0
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
  int residual = -1;    ///< Which input of the call is added in it.
  std::string refusal;  ///< Why it cannot be written in steps.
};

/// Reads the epilogue of `conv`, or of another call whose epilogue is of this kind, from its op `first` on.
ConvSteps read_conv_steps(const AnchoredCall& conv, size_t first = 0);

/// "" when the input is given on every run and weights and bias, where there is one, are known; else the reason.
std::string why_not_known_weights(const AnchoredCall& conv);

/// A convolution in each of `layouts`, a residual in the same one, for `us` microseconds.
std::vector<KernelVariant> conv_variants(const KernelCall& call, const AnchoredCall& conv,
                                         std::span<const Layout> layouts, double us);

}  // namespace autograph::simd
