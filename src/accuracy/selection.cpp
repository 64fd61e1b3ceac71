#include "accuracy/selection.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/check.h"

namespace autograph {
namespace {

// Neighbours on an axis with windows.
constexpr int64_t kNeighbours = 3;
// Channels of a block in the widest layout: the last block may be filled in part.
constexpr int64_t kBlock = 16;

std::vector<int64_t> numbers(int64_t begin, int64_t end) {
  std::vector<int64_t> result(static_cast<size_t>(end - begin));
  std::iota(result.begin(), result.end(), begin);
  return result;
}

int64_t below(int64_t limit, std::mt19937_64& random) {
  return static_cast<int64_t>(random() % static_cast<uint64_t>(limit));
}

// The first, the last, the one before the last block, others at random.
std::vector<int64_t> draw_positions(int64_t extent, int64_t count, std::mt19937_64& random) {
  if (count >= extent) return numbers(0, extent);
  std::vector<int64_t> result{below(extent, random)};
  const int64_t before_last_block = std::max<int64_t>((extent - 1) / kBlock * kBlock - 1, 0);
  for (const int64_t at : {extent - 1, int64_t{0}, before_last_block}) {
    if (static_cast<int64_t>(result.size()) < count) result.push_back(at);
  }
  while (static_cast<int64_t>(result.size()) < count) result.push_back(below(extent, random));
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

// A stretch at one of the ends or anywhere.
std::vector<int64_t> draw_neighbours(int64_t extent, int64_t count, std::mt19937_64& random) {
  if (count >= extent) return numbers(0, extent);
  const int64_t last = extent - count;
  const int64_t begins[] = {0, last, below(last + 1, random)};
  const int64_t begin = begins[random() % 3];
  return numbers(begin, begin + count);
}

}  // namespace

Selection select_all(const Dims& dims) {
  Selection result;
  for (const int64_t extent : dims) result.push_back(numbers(0, extent));
  return result;
}

Dims dims_of(const Selection& selection) {
  Dims dims;
  for (const auto& positions : selection) dims.push_back(static_cast<int64_t>(positions.size()));
  return dims;
}

Tensor select(const Tensor& tensor, const Selection& selection) {
  const Dims dims = dims_of(selection);
  if (dims == tensor.dims() && selection == select_all(dims)) return tensor;
  AG_CHECK(tensor.dtype() != DType::string && selection.size() == tensor.dims().size(), "[select] {} by {} axes",
           to_string(tensor.type()), selection.size());
  Tensor result = Tensor::empty(tensor.dtype(), dims);
  const size_t size = element_size(tensor.dtype());
  const auto* from = static_cast<const char*>(tensor.raw());
  auto* to = static_cast<char*>(result.mutable_raw());
  std::vector<size_t> at(dims.size(), 0);
  for (int64_t n = 0; n < result.num_elements(); ++n, to += size) {
    int64_t offset = 0;
    for (size_t axis = 0; axis < at.size(); ++axis) offset = offset * tensor.dims()[axis] + selection[axis][at[axis]];
    std::memcpy(to, from + static_cast<size_t>(offset) * size, size);
    for (size_t axis = at.size(); axis-- > 0;) {
      if (++at[axis] < selection[axis].size()) break;
      at[axis] = 0;
    }
  }
  return result;
}

Selection positions_in(const Selection& wanted, const Selection& made) {
  Selection result(wanted.size());
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    for (const int64_t at : wanted[axis]) {
      const auto found = std::find(made[axis].begin(), made[axis].end(), at);
      AG_CHECK(found != made[axis].end(), "[select] position {} of axis {} was not made", at, axis);
      result[axis].push_back(found - made[axis].begin());
    }
  }
  return result;
}

Selection broadcast_selection(const Selection& of, const Dims& dims) {
  Selection result;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const auto& positions = of[of.size() - dims.size() + axis];
    result.push_back(dims[axis] == 1 ? std::vector<int64_t>{0} : positions);
  }
  return result;
}

Selection draw_selection(const Dims& dims, int64_t count, size_t first_window, std::mt19937_64& random) {
  Selection result(dims.size());
  double left = static_cast<double>(count);
  for (size_t axis = first_window; axis < dims.size(); ++axis) {
    result[axis] = draw_neighbours(dims[axis], kNeighbours, random);
    left /= static_cast<double>(std::max<size_t>(result[axis].size(), 1));
  }
  // What short axes do not use is there for the long ones.
  std::vector<size_t> order(std::min(first_window, dims.size()));
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return dims[a] < dims[b]; });
  for (size_t n = 0; n < order.size(); ++n) {
    const double share = std::pow(std::max(left, 1.0), 1.0 / static_cast<double>(order.size() - n));
    result[order[n]] = draw_positions(dims[order[n]], std::max<int64_t>(std::llround(share), 1), random);
    left /= static_cast<double>(std::max<size_t>(result[order[n]].size(), 1));
  }
  return result;
}

}  // namespace autograph
