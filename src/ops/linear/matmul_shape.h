// Shapes of stacks of matrices that multiply with NumPy's matmul rules; shared by matmul and its integer relatives.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/op_def.h"
#include "ops/linear/matmul_loops.h"

namespace autograph {

/// Shape of matmul(a, b): one-dimensional operands act as a row (a) or a column (b) that the result drops again.
/// Throws ShapeError through `context` when they do not fit.
Shape infer_matmul_shape(const InferContext& context, const Shape& a, const Shape& b);

/// How a reference walks over matmul(a, b): for every matrix of the result, in order, which matrices it multiplies.
struct MatmulWalk {
  MatmulSize size;
  std::vector<int64_t> a_matrix;  ///< Index of the matrix of a.
  std::vector<int64_t> b_matrix;  ///< Index of the matrix of b.
};

/// The walk for concrete operands whose shapes infer_matmul_shape has accepted.
MatmulWalk walk_matmul(const TensorView& a, const TensorView& b);

/// 2 * rows * inner * columns for every matrix; operands are inputs `a` and `b`.
OpCost matmul_cost(const CostContext& context, size_t a = 0, size_t b = 1);

}  // namespace autograph
