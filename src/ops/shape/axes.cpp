#include "ops/shape/axes.h"

#include <algorithm>

#include "base/join.h"
#include "tensor/element_types.h"

namespace autograph {

std::vector<int64_t> normalized_axes(const InferContext& context, std::span<const int64_t> axes, int64_t rank) {
  std::vector<int64_t> result;
  for (const int64_t axis : axes) {
    const int64_t front = context.normalized_axis(axis, rank, "axes");
    if (std::find(result.begin(), result.end(), front) != result.end()) {
      context.fail<ValueError>("axes", fmt::format("expected each axis once, got {}", bracketed(axes)));
    }
    result.push_back(front);
  }
  return result;
}

std::vector<int64_t> read_integers(const TensorView& view) {
  std::vector<int64_t> values;
  dispatch<IndexTypes>(view.dtype(), [&]<class T>(TypeTag<T>) {
    const auto elements = view.elements<T>();
    values.assign(elements.begin(), elements.end());
  });
  return values;
}

std::optional<int64_t> list_length(const InferContext& context, size_t slot) {
  context.require_rank(slot, 1);
  const Shape& shape = context.shape(slot);
  if (!shape.has_rank() || !shape[0].is_known()) return std::nullopt;
  return shape[0].value();
}

std::optional<int64_t> extents_length(const InferContext& context, size_t slot) {
  const Shape& shape = context.shape(slot);
  return shape.has_rank() && shape.rank() == 0 ? 1 : list_length(context, slot);
}

Dim merged_dim(const InferContext& context, const Dim& a, const Dim& b, std::string_view what) {
  if (a.is_known() && b.is_known() && a.value() != b.value()) {
    context.fail<ShapeError>(what, fmt::format("expected equal extents, got {} and {}", a.value(), b.value()));
  }
  if (a.is_known()) return a;
  if (b.is_known()) return b;
  return a.is_unknown() ? b : a;
}

}  // namespace autograph
