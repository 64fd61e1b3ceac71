#include "ops/index/elementwise_index.h"

#include "ops/index/index_check.h"
#include "ops/sample.h"
#include "ops/shape/copy_elements.h"

namespace autograph {

void check_elementwise_index(const InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& indices = context.shape(1);
  if (x.has_rank() && x.rank() < 1) context.fail<ShapeError>("data", "expected rank 1 or more, got a scalar");
  if (!x.has_rank()) return;
  const int64_t axis = context.normalized_axis(context.attributes().integer("axis"), x.rank());
  context.require_rank(1, x.rank());
  for (int64_t a = 0; indices.has_rank() && a < x.rank(); ++a) {
    if (a == axis || !x[a].is_known() || !indices[a].is_known() || indices[a].value() <= x[a].value()) continue;
    context.fail<ShapeError>(
        "indices", fmt::format("expected at most {} at axis {}, got {}", x[a].value(), a, to_string(indices)));
  }
}

std::vector<int64_t> elementwise_positions(std::string_view op, const TensorView& data, const TensorView& indices,
                                           int64_t axis) {
  const auto along = static_cast<size_t>(front_axis(axis, data.rank()));
  const std::vector<int64_t> strides = dense_strides(data.dims());
  std::vector<int64_t> positions = checked_indices(op, indices, data.dims()[along]);
  std::vector<int64_t> index(strides.size(), 0);
  for (int64_t& position : positions) {
    position *= strides[along];
    for (size_t a = 0; a < index.size(); ++a) {
      if (a != along) position += index[a] * strides[a];
    }
    for (size_t a = index.size(); a-- > 0;) {
      if (++index[a] < indices.dims()[a]) break;
      index[a] = 0;
    }
  }
  return positions;
}

ElementwiseIndexSample draw_elementwise_index(Random& random) {
  const Dims dims = draw_dims(random, 1, 3);
  const auto rank = static_cast<int64_t>(dims.size());
  const int64_t axis = draw(random, -rank, rank - 1);
  const auto along = static_cast<size_t>(front_axis(axis, rank));
  Dims index_dims = dims;
  for (int64_t& d : index_dims) d = draw(random, 1, d);
  Tensor indices = Tensor::zeros(DType::i64, index_dims);
  // (offset + position) mod extent never names an element twice along the axis.
  const int64_t stride = dense_strides(index_dims)[along];
  const int64_t offset = draw(random, 0, dims[along] - 1);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t index = (offset + i / stride % index_dims[along]) % dims[along];
    indices.mutable_data<int64_t>()[i] = draw_bool(random) ? index : index - dims[along];
  }
  return {draw_tensor(random, DType::f32, dims), indices, axis};
}

}  // namespace autograph
