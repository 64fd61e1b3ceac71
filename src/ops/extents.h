// Comparing extents in infer functions: symbolic and unknown ones agree with everything until the run tells.
#pragma once

#include <fmt/core.h>

#include <string_view>

#include "autograph/op_def.h"

namespace autograph {

/// The extent that `a` and `b` must share; throws ShapeError through `context` when both are numbers that differ.
inline Dim same_extent(const InferContext& context, const Dim& a, const Dim& b, std::string_view what) {
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail<ShapeError>(what, fmt::format("expected equal extents, got {} and {}", a.value(), b.value()));
  }
  if (a.is_known()) return a;
  return b.is_unknown() ? a : b;
}

/// Throws ShapeError unless input `slot`, when it is there and its shape is known, has rank 1 and extent `expected`.
inline void require_vector(const InferContext& context, size_t slot, const Dim& expected, std::string_view what) {
  if (!context.has_input(slot)) return;
  context.require_rank(slot, 1);
  if (context.shape(slot).has_rank()) same_extent(context, expected, context.shape(slot)[0], what);
}

}  // namespace autograph
