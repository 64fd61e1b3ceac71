// Taking slices off tensors and joining them again, for loops and sequences.
#pragma once

#include <string_view>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Positions first..first+count-1 of `x` along `axis`; with `drop_axis` (count 1) the axis goes away.
Tensor take_slice(EvaluateContext& context, const Tensor& x, int64_t axis, int64_t first, int64_t count,
                  bool drop_axis);

/// The tensors side by side along a new axis; throws ShapeError naming `op` unless all have the same shape. At least
/// one.
Tensor stack_tensors(EvaluateContext& context, std::string_view op, const std::vector<Tensor>& tensors, int64_t axis);

/// The tensors end to end along `axis`; throws ShapeError naming `op` unless the other extents agree. At least one.
Tensor concat_tensors(EvaluateContext& context, std::string_view op, const std::vector<Tensor>& tensors, int64_t axis);

/// A tensor of no elements with the dtype of `element` and an axis of extent 0 at `axis` of its shape; open extents
/// become 0.
Tensor stack_nothing(EvaluateContext& context, const Type& element, int64_t axis);

/// The one bool in a condition tensor; throws ShapeError naming `op` when it has another number of elements.
bool read_condition(std::string_view op, const Tensor& condition);

}  // namespace autograph
