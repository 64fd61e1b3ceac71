#include "ops/index/nd_index.h"

#include "ops/index/index_check.h"
#include "ops/shape/copy_elements.h"

namespace autograph {

NdSlices resolve_nd(std::string_view op, const TensorView& data, const TensorView& indices, int64_t batch_dims) {
  const auto batch_rank = static_cast<size_t>(batch_dims);
  const auto depth = static_cast<size_t>(indices.dims().back());
  const std::vector<int64_t> strides = dense_strides(data.dims());
  NdSlices slices;
  for (size_t a = batch_rank + depth; a < data.dims().size(); ++a) slices.length *= data.dims()[a];
  int64_t batches = 1;
  for (size_t a = 0; a < batch_rank; ++a) batches *= data.dims()[a];
  int64_t batch_stride = 1;
  for (size_t a = batch_rank; a < data.dims().size(); ++a) batch_stride *= data.dims()[a];
  int64_t tuples = 1;
  for (size_t a = 0; a + 1 < indices.dims().size(); ++a) tuples *= indices.dims()[a];
  const int64_t per_batch = batches == 0 ? 0 : tuples / batches;
  slices.starts.reserve(static_cast<size_t>(tuples));
  const int64_t* index = indices.data<int64_t>();
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t start = per_batch == 0 ? 0 : t / per_batch * batch_stride;
    for (size_t k = 0; k < depth; ++k) {
      start += checked_index(op, *index++, data.dims()[batch_rank + k]) * strides[batch_rank + k];
    }
    slices.starts.push_back(start);
  }
  return slices;
}

}  // namespace autograph
