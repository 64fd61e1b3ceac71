// The only place where texts compute positions: from the number of an element to where it lies in a tensor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "autograph/shape.h"

namespace autograph::gpu {

/// Elements as a row-major walk over `extents` meets them in a tensor that has these `strides` (in elements; 0 where it
/// broadcasts, negative where it is walked backwards), from `offset` on.
struct Walk {
  Dims extents;
  Dims strides;
  int64_t offset = 0;
};

/// Strides of a row-major tensor.
Dims row_major_strides(const Dims& dims);

/// How a tensor of `dims` is walked when it is broadcast to `to`.
Walk broadcast_walk(const Dims& dims, const Dims& to);

/// Product of extents.
int64_t num_elements(const Dims& dims);

/// The type of positions: 32 bits where all positions fit, else 64.
class IndexType {
 public:
  /// Positions below `count` will occur.
  void cover(int64_t count) { is_wide_ = is_wide_ || count > kLargest; }
  std::string_view name() const { return is_wide_ ? "i64" : "i32"; }
  /// `value` as a number of this type.
  std::string literal(int64_t value) const;

 private:
  // Groups are rounded up, and loops step beyond their end.
  static constexpr int64_t kLargest = (int64_t{1} << 31) - (int64_t{1} << 20);
  bool is_wide_ = false;
};

/// The position of element `i` of a walk, as an expression. Extents of 1 and axes that are walked as one are left out.
std::string position(const IndexType& index, std::string_view i, const Walk& walk);

/// Do any four elements of a walk that begin at a multiple of 4 lie behind each other?
bool walks_in_fours(const Walk& walk);

/// Do they lie in the same place?
bool repeats_in_fours(const Walk& walk);

/// The coordinate of element `i` along `axis` of a row-major tensor of `dims`.
std::string coordinate(const IndexType& index, std::string_view i, const Dims& dims, size_t axis);

}  // namespace autograph::gpu
