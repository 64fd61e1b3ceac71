// Lists of axes as ops take them: maybe negative, never twice.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "autograph/op_def.h"
#include "tensor/front_axis.h"

namespace autograph {

/// `axes` counted from the front, in the given order; throws ValueError when one is out of range or occurs twice.
std::vector<int64_t> normalized_axes(const InferContext& context, std::span<const int64_t> axes, int64_t rank);

/// The integers of an index or shape input (i32 or i64) at run time.
std::vector<int64_t> read_integers(const TensorView& view);

/// Number of elements of the 1-D input `slot`, when its shape is known; throws ShapeError for other ranks.
std::optional<int64_t> list_length(const InferContext& context, size_t slot);

/// The same of an input that holds extents: a scalar, which ONNX Runtime takes for a list of one, counts as 1.
std::optional<int64_t> extents_length(const InferContext& context, size_t slot);

/// The dim that two values certainly share: the known one wins; throws ShapeError when both are known and differ.
Dim merged_dim(const InferContext& context, const Dim& a, const Dim& b, std::string_view what);

}  // namespace autograph
