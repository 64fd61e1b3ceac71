// What softmax, log_softmax and hardmax share: the walk over rows along an axis, inference, and the older ONNX forms.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "tensor/element_types.h"

namespace autograph {

/// The rows of a tensor along one axis: row r has `extent` elements, `stride` apart, starting at start(r).
struct AxisRows {
  AxisRows(const TensorView& x, int64_t axis);
  int64_t start(int64_t row) const { return row / stride * extent * stride + row % stride; }

  int64_t count;   ///< Number of rows; 0 when the tensor is empty.
  int64_t extent;  ///< Elements in a row.
  int64_t stride;  ///< Distance of neighbours in a row.
};

/// Calls visit(row of input 0, row of output 0, rows) for every row along attribute `axis`; elements are rows.stride
/// apart. All three ops compute row by row.
template <class Visit>
void for_each_row(const OpCall& call, const Visit& visit) {
  const TensorView x = call.input(0);
  const AxisRows rows(x, call.attributes.integer("axis"));
  dispatch<FloatTypes>(x.dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t row = 0; row < rows.count; ++row) {
      visit(x.data<T>() + rows.start(row), call.output(0).mutable_data<T>() + rows.start(row), rows);
    }
  });
}

/// What makes exponentials of a row safe to sum: its largest element (NaN is passed over) and sum(exp(x - largest)).
struct ExponentialSum {
  double largest = -std::numeric_limits<double>::infinity();
  double sum = 0;
};

/// Of one row, in f64.
template <class T>
ExponentialSum exponential_sum(const T* row, const AxisRows& rows) {
  ExponentialSum total;
  for (int64_t i = 0; i < rows.extent; ++i) {
    total.largest = std::fmax(total.largest, static_cast<double>(row[i * rows.stride]));
  }
  for (int64_t i = 0; i < rows.extent; ++i) {
    total.sum += std::exp(static_cast<double>(row[i * rows.stride]) - total.largest);
  }
  return total;
}

/// Checks attribute `axis`; the output is like the input.
void infer_along_axis(InferContext& context);

/// Before opset 13 the input was flattened to [prod(dims before axis), rest], and axis defaulted to 1.
std::vector<ValueId> import_flattened(ForeignNode& node);

/// An f32 tensor of rank 1 or more and an axis.
OpSample sample_along_axis(Random& random);

/// The definition but for name, doc, reference and ONNX name.
OpDef make_along_axis();

}  // namespace autograph
