#include "ops/control/merge_types.h"

#include "base/check.h"

namespace autograph {
namespace {

Shape merged_shape(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return Shape::unknown();
  Shape merged = a;
  for (int64_t axis = 0; axis < a.rank(); ++axis) {
    if (!a[axis].same_as(b[axis])) merged[axis] = Dim::unknown();
  }
  return merged;
}

}  // namespace

Type merged_type(const InferContext& context, const Type& a, const Type& b, std::string_view what) {
  if (a.kind() == Type::Kind::none) return b;
  if (b.kind() == Type::Kind::none) return a;
  if (a.is_optional() && !b.is_optional()) return Type::optional(merged_type(context, a.element(), b, what));
  if (b.is_optional() && !a.is_optional()) return Type::optional(merged_type(context, a, b.element(), what));
  if (a.kind() != b.kind() || a.dtype() != b.dtype()) {
    context.fail<TypeError>(what, fmt::format("expected one type, got {} and {}", to_string(a), to_string(b)));
  }
  if (a.is_tensor()) return Type(a.dtype(), merged_shape(a.shape(), b.shape()));
  Type element = merged_type(context, a.element(), b.element(), what);
  return a.is_sequence() ? Type::sequence(std::move(element)) : Type::optional(std::move(element));
}

}  // namespace autograph
