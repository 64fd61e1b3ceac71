#include "ops/control/slices.h"

#include "base/check.h"
#include "ops/shape/axes.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// Throws unless -rank <= axis < rank.
size_t checked_axis(std::string_view op, int64_t axis, int64_t rank) {
  AG_CHECK_USER(axis >= -rank && axis < rank, ValueError, "[{}] axis: expected {}..{} for rank {}, got {}", op, -rank,
                rank - 1, rank, axis);
  return static_cast<size_t>(front_axis(axis, rank));
}

}  // namespace

Tensor take_slice(EvaluateContext& context, const Tensor& x, int64_t axis, int64_t first, int64_t count,
                  bool drop_axis) {
  const auto along = static_cast<size_t>(axis);
  Dims block = x.dims();
  block[along] = count;
  Dims dims = block;
  if (drop_axis) dims.erase(dims.begin() + axis);
  const Tensor y = context.allocate(x.dtype(), dims);
  Strided source{0, dense_strides(x.dims())};
  source.start = first * source.strides[along];
  copy_strided(x.view(), source, y.view(), {0, dense_strides(block)}, block);
  return y;
}

Tensor stack_tensors(EvaluateContext& context, std::string_view op, const std::vector<Tensor>& tensors, int64_t axis) {
  const Tensor& like = tensors.front();
  for (const Tensor& tensor : tensors) {
    AG_CHECK_USER(tensor.dims() == like.dims() && tensor.dtype() == like.dtype(), ShapeError,
                  "[{}] shapes: expected {} every time, got {}", op, to_string(like.type()), to_string(tensor.type()));
  }
  const size_t along = checked_axis(op, axis, like.rank() + 1);
  Dims dims = like.dims();
  dims.insert(dims.begin() + static_cast<int64_t>(along), static_cast<int64_t>(tensors.size()));
  const Tensor y = context.allocate(like.dtype(), dims);
  Strided target{0, dense_strides(dims)};
  const int64_t step = target.strides[along];
  target.strides.erase(target.strides.begin() + static_cast<int64_t>(along));
  for (const Tensor& tensor : tensors) {
    copy_strided(tensor.view(), {0, dense_strides(tensor.dims())}, y.view(), target, tensor.dims());
    target.start += step;
  }
  return y;
}

Tensor concat_tensors(EvaluateContext& context, std::string_view op, const std::vector<Tensor>& tensors, int64_t axis) {
  const Tensor& like = tensors.front();
  const size_t along = checked_axis(op, axis, like.rank());
  Dims dims = like.dims();
  dims[along] = 0;
  for (const Tensor& tensor : tensors) {
    Dims expected = like.dims();
    if (tensor.rank() == like.rank()) expected[along] = tensor.dims()[along];
    AG_CHECK_USER(tensor.dims() == expected && tensor.dtype() == like.dtype(), ShapeError,
                  "[{}] shapes: expected {} but along axis {}, got {}", op, to_string(like.type()), along,
                  to_string(tensor.type()));
    dims[along] += tensor.dims()[along];
  }
  const Tensor y = context.allocate(like.dtype(), dims);
  Strided target{0, dense_strides(dims)};
  for (const Tensor& tensor : tensors) {
    copy_strided(tensor.view(), {0, dense_strides(tensor.dims())}, y.view(), target, tensor.dims());
    target.start += tensor.dims()[along] * target.strides[along];
  }
  return y;
}

Tensor stack_nothing(EvaluateContext& context, const Type& element, int64_t axis) {
  Dims dims;
  for (const Dim& d : element.shape().dims()) dims.push_back(d.value_or(0));
  const auto rank = static_cast<int64_t>(dims.size()) + 1;
  const int64_t along = front_axis(axis, rank);
  dims.insert(dims.begin() + (along >= 0 && along < rank ? along : 0), 0);
  return context.allocate(element.dtype(), dims);
}

bool read_condition(std::string_view op, const Tensor& condition) {
  AG_CHECK_USER(condition.num_elements() == 1, ShapeError, "[{}] condition: expected one element, got shape {}", op,
                to_string(condition.dims()));
  return *condition.data<bool>();
}

}  // namespace autograph
