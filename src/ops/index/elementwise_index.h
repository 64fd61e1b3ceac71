// What gather_elements and scatter_elements share: an index per element, replacing its position along one axis.
#pragma once

#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Throws unless inputs 0 (data) and 1 (indices) fit together along the attribute `axis`.
void check_elementwise_index(const InferContext& context);

/// For each element of `indices`, the position in `data` that it names; throws ValueError when out of range.
std::vector<int64_t> elementwise_positions(std::string_view op, const TensorView& data, const TensorView& indices,
                                           int64_t axis);

/// Legal random inputs; the indices are different from each other along the axis.
struct ElementwiseIndexSample {
  Tensor data;
  Tensor indices;
  int64_t axis = 0;
};
ElementwiseIndexSample draw_elementwise_index(Random& random);

}  // namespace autograph
