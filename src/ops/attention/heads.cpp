#include "ops/attention/heads.h"

#include <fmt/core.h>

#include "ops/extents.h"

namespace autograph {

HeadDims infer_heads(const InferContext& context, size_t slot, const int64_t* num_heads) {
  const Shape& shape = context.shape(slot);
  if (num_heads && *num_heads < 1) {
    context.fail<ValueError>("number of heads", fmt::format("expected 1 or more, got {}", *num_heads));
  }
  if (!shape.has_rank()) return {};
  if (shape.rank() == 4) {
    if (num_heads) same_extent(context, shape[1], Dim(*num_heads), "number of heads");
    return {shape[0], shape[1], shape[2], shape[3]};
  }
  if (shape.rank() != 3) {
    context.fail<ShapeError>("rank", fmt::format("expected 3 or 4, got {}", to_string(shape)));
  }
  context.require<ValueError>(num_heads != nullptr, "number of heads", "required when inputs have rank 3");
  const Dim& packed = shape[2];
  if (packed.is_known() && packed.value() % *num_heads != 0) {
    context.fail<ShapeError>("number of heads",
                             fmt::format("expected a divisor of {}, got {}", packed.value(), *num_heads));
  }
  return {shape[0], Dim(*num_heads), shape[1], floor_div(packed, *num_heads)};
}

Shape pack_heads(const InferContext& context, size_t slot, const HeadDims& dims) {
  const Shape& like = context.shape(slot);
  if (!like.has_rank()) return Shape::unknown();
  if (like.rank() == 4) return {dims.batch, dims.heads, dims.length, dims.size};
  const bool known = !dims.heads.is_unknown() && !dims.size.is_unknown();
  return {dims.batch, dims.length, known ? dims.heads * dims.size : Dim::unknown()};
}

Heads::Heads(const TensorView& view, int64_t num_heads) : values_(real_values(view)) {
  batch_ = view.dim(0);
  if (view.rank() == 4) {
    heads_ = view.dim(1);
    length_ = view.dim(2);
    size_ = view.dim(3);
    head_stride_ = length_ * size_;
    position_stride_ = size_;
  } else {
    heads_ = num_heads;
    length_ = view.dim(1);
    size_ = view.dim(2) / num_heads;
    head_stride_ = size_;
    position_stride_ = heads_ * size_;
  }
}

Heads::Heads(int64_t batch, int64_t heads, int64_t length, int64_t size)
    : batch_(batch),
      heads_(heads),
      length_(length),
      size_(size),
      head_stride_(length * size),
      position_stride_(size),
      values_(static_cast<size_t>(batch * heads * length * size), 0.0) {}

}  // namespace autograph
