#include "backends/gpu/emit/text/index.h"

#include <fmt/core.h>

#include <limits>

#include "base/check.h"

namespace autograph::gpu {
namespace {

// Without extents of 1; neighbours that are walked as one are one. Never empty.
Walk merged(const Walk& walk) {
  Walk result{{}, {}, walk.offset};
  for (size_t a = 0; a < walk.extents.size(); ++a) {
    if (walk.extents[a] == 1) continue;
    const bool joins = !result.extents.empty() && result.strides.back() == walk.strides[a] * walk.extents[a];
    if (joins) {
      result.extents.back() *= walk.extents[a];
      result.strides.back() = walk.strides[a];
    } else {
      result.extents.push_back(walk.extents[a]);
      result.strides.push_back(walk.strides[a]);
    }
  }
  return result;
}

}  // namespace

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t a = dims.size(); a-- > 0;) {
    strides[a] = stride;
    stride *= dims[a];
  }
  return strides;
}

Walk broadcast_walk(const Dims& dims, const Dims& to) {
  Walk walk{to, Dims(to.size(), 0), 0};
  const Dims strides = row_major_strides(dims);
  AG_CHECK(dims.size() <= to.size(), "a tensor of {} dims does not broadcast to {}", dims.size(), to.size());
  for (size_t a = 0; a < dims.size(); ++a) {
    if (dims[a] != 1) walk.strides[a + to.size() - dims.size()] = strides[a];
  }
  return walk;
}

int64_t num_elements(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t d : dims) count *= d;
  return count;
}

std::string IndexType::literal(int64_t value) const {
  AG_CHECK(
      is_wide_ || (value <= std::numeric_limits<int32_t>::max() && value >= std::numeric_limits<int32_t>::lowest()),
      "position {} does not fit 32 bits", value);
  if (value < 0) return fmt::format("({}{})", value, is_wide_ ? "L" : "");
  return fmt::format("{}{}", value, is_wide_ ? "L" : "");
}

std::string position(const IndexType& index, std::string_view i, const Walk& walk) {
  const Walk axes = merged(walk);
  std::string sum = axes.offset != 0 ? index.literal(axes.offset) : "";
  int64_t inner = 1;  // elements of the axes behind this one
  for (size_t a = axes.extents.size(); a-- > 0;) {
    if (axes.strides[a] != 0) {
      std::string term = inner == 1 ? std::string(i) : fmt::format("{} / {}", i, index.literal(inner));
      if (a > 0) term = fmt::format("{} % {}", inner == 1 ? term : "(" + term + ")", index.literal(axes.extents[a]));
      const bool is_one = axes.strides[a] == 1;
      if (!is_one) term = fmt::format("({}) * {}", term, index.literal(axes.strides[a]));
      sum += (sum.empty() ? "" : " + ") + (is_one && a + 1 != axes.extents.size() ? "(" + term + ")" : term);
    }
    inner *= axes.extents[a];
  }
  return sum.empty() ? "0" : sum;
}

bool walks_in_fours(const Walk& walk) {
  const Walk axes = merged(walk);
  const bool is_one = axes.extents.size() == 1;  // what follows its end is not asked
  return !axes.extents.empty() && axes.strides.back() == 1 && (is_one || axes.extents.back() % 4 == 0);
}

bool repeats_in_fours(const Walk& walk) {
  const Walk axes = merged(walk);
  if (axes.extents.empty()) return true;
  const bool is_one = axes.extents.size() == 1;
  return axes.strides.back() == 0 && (is_one || axes.extents.back() % 4 == 0);
}

std::string coordinate(const IndexType& index, std::string_view i, const Dims& dims, size_t axis) {
  Dims strides(dims.size(), 0);
  strides[axis] = 1;
  return position(index, i, {dims, strides, 0});
}

}  // namespace autograph::gpu
