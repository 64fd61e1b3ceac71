// What softmax, log_softmax and hardmax share: the walk over rows along an axis, inference, and the older ONNX forms.
#pragma once

#include <vector>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"

namespace autograph {

/// The rows of a tensor along one axis: row r has `extent` elements, `stride` apart, starting at start(r).
struct AxisRows {
  AxisRows(const TensorView& x, int64_t axis);
  int64_t start(int64_t row) const { return row / stride * extent * stride + row % stride; }

  int64_t count;   ///< Number of rows; 0 when the tensor is empty.
  int64_t extent;  ///< Elements in a row.
  int64_t stride;  ///< Distance of neighbours in a row.
};

/// Checks attribute `axis`; the output is like the input.
void infer_along_axis(InferContext& context);

/// Before opset 13 the input was flattened to [prod(dims before axis), rest], and axis defaulted to 1.
std::vector<ValueId> import_flattened(ForeignNode& node);

/// An f32 tensor of rank 1 or more and an axis.
OpSample sample_along_axis(Random& random);

/// The definition but for name, doc, reference and ONNX name.
OpDef make_along_axis();

}  // namespace autograph
