// The windows of a convolution as oneDNN takes them.
#pragma once

#include <dnnl.hpp>
#include <string_view>

#include "autograph/op_def.h"

namespace autograph::onednn {

/// One entry per spatial axis.
struct ConvWindows {
  dnnl::memory::dims strides, dilates, pads_begin, pads_end;
  bool has_empty = false;  ///< Does a window lie in the padding alone?

  /// For the attributes and dims of a convolution.
  ConvWindows(const Attributes& attributes, const Dims& x, const Dims& w);
  /// Are input `x`, weights `w` and output `y`, all of their dims, one column of two spatial axes, without padding
  /// beside it?
  bool is_column(const dnnl::memory::dims& x, const dnnl::memory::dims& w, const dnnl::memory::dims& y) const;
  /// Exchanges the two spatial axes.
  void swap_axes();
  /// May an implementation be used? oneDNN 2.6 crashes in "brgconv" where post-ops are applied to an empty window.
  bool allow(std::string_view implementation) const { return !has_empty || !implementation.starts_with("brgconv"); }
};

}  // namespace autograph::onednn
