// The epilogue of an anchored call as oneDNN post-ops.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/anchored_call.h"
#include "backends/cpu/onednn/primitive_kernel.h"

namespace autograph::onednn {

/// Post-ops with what they read.
struct PostOps {
  dnnl::post_ops ops;
  std::vector<Argument> arguments;  ///< Tensors that the post-ops read.
  int accumulated_input = -1;       ///< Input of the call that the output must hold beforehand; see PrimitiveKernel.
};

/// "" when make_post_ops() can express the epilogue from its op `first` on, else the reason. `channel_axis` is the axis
/// of the output along which vectors may be broadcast.
std::string why_not_post_ops(const AnchoredCall& call, size_t channel_axis, size_t first = 0);

/// The post-ops. A tensor of the output's dims is read in `layout`, that of the output. `dims` are those of the output
/// as the primitive sees it.
PostOps make_post_ops(const AnchoredCall& call, size_t channel_axis, Layout layout, const dnnl::memory::dims& dims,
                      size_t first = 0);

}  // namespace autograph::onednn
