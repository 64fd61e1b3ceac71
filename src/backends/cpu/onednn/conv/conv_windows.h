// The windows of a convolution as oneDNN takes them.
#pragma once

#include <dnnl.hpp>
#include <string_view>

#include "autograph/op_def.h"
#include "backends/cpu/onednn/implementation_lists.h"
#include "ops/window/window_geometry.h"

namespace autograph::onednn {

/// One entry per spatial axis.
struct WindowLists {
  dnnl::memory::dims strides, dilates, pads_begin, pads_end;

  /// One more axis; what a transposed convolution cuts off stands for the padding at the end.
  void add(const WindowAxis& axis, int64_t pad_end);
  void add_to(ProblemKind& kind) const;
};

/// Weights [M, C / groups, kernel...] as [groups, M / groups, C / groups, kernel...] where there are several groups:
/// the same elements in the same order.
dnnl::memory::dims grouped_weights(dnnl::memory::dims dims, int64_t groups);

struct ConvWindows : WindowLists {
  bool has_empty = false;  ///< Does a window lie in the padding alone?

  /// For the attributes and dims of a convolution.
  ConvWindows(const Attributes& attributes, const Dims& x, const Dims& w);
  /// Are input `x`, weights `w` and output `y`, all of their dims, one column of two spatial axes, without padding
  /// beside it?
  bool is_column(const dnnl::memory::dims& x, const dnnl::memory::dims& w, const dnnl::memory::dims& y) const;
  /// Adds to `kind` what direct implementations look at of the extents of input, weights and output, all of their dims.
  /// On how large an image is their list does not depend, but on whether windows of a stride reach its end.
  void add_extents(ProblemKind& kind, const dnnl::memory::dims& x, const dnnl::memory::dims& w,
                   const dnnl::memory::dims& y) const;
  /// Exchanges the two spatial axes.
  void swap_axes();
  /// May an implementation be used? oneDNN 2.6 crashes in "brgconv" where post-ops are applied to an empty window.
  bool allow(std::string_view implementation) const { return !has_empty || !implementation.starts_with("brgconv"); }
};

}  // namespace autograph::onednn
