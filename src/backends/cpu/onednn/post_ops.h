// The epilogue of an anchored call as oneDNN post-ops.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backends/cpu/anchored_call.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/simd/elementwise/activation_pass.h"

namespace autograph::onednn {

/// Post-ops with what they read.
struct PostOps {
  dnnl::post_ops ops;
  std::vector<Argument> arguments;  ///< Tensors that the post-ops read.
  int accumulated_input = -1;       ///< Input of the call that the output must hold beforehand; see PrimitiveKernel.
  simd::ActivationPass last;        ///< What remains to be done behind the primitive,
  int added_last = -1;              ///< and the input that is added then.
};

/// "" when make_post_ops() can express the epilogue from its op `first` on, else the reason. `channel_axis` is the axis
/// of the output along which vectors may be broadcast, if there is one.
std::string why_not_post_ops(const AnchoredCall& call, std::optional<size_t> channel_axis, size_t first = 0);

/// How a primitive sees the output of a call.
struct OutputForm {
  dnnl::memory::dims dims;
  size_t channel_axis = 1;  ///< Of `dims`.
};

/// The post-ops of the epilogue from its op `first` on, but for what a pass does at its end: an activation that is
/// faster there, and a residual that oneDNN would not add. why_not_post_ops() must have given "" for the same call and
/// axis.
PostOps make_post_ops(const AnchoredCall& call, std::optional<size_t> channel_axis, const OutputForm& form,
                      size_t first = 0);

}  // namespace autograph::onednn
