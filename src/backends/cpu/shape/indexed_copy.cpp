#include "backends/cpu/shape/indexed_copy.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/shape/copy_elements.h"

namespace autograph {
namespace {

// Shorter blocks cost more as calls of memcpy than element by element.
constexpr int64_t kMinBlockBytes = 64;

bool is_identity(const std::vector<int64_t>& positions, int64_t extent) {
  if (static_cast<int64_t>(positions.size()) != extent) return false;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

template <size_t N>
void gather_bytes(const char* in, char* out, const int64_t* positions, int64_t count) {
  const auto* from = reinterpret_cast<const ElementBytes<N>*>(in);
  auto* to = reinterpret_cast<ElementBytes<N>*>(out);
  for (int64_t i = 0; i < count; ++i) to[i] = from[positions[i]];
}

// Every element twice, in `rows` rows of the input, each of which is written `copies` times. Eight elements at a time,
// the last of which may be done again: a rest of single ones would take longer than all others of a short row.
AG_MULTIVERSION void double_words(const uint32_t* from, uint32_t* to, int64_t pairs, int64_t rows, int64_t copies) {
  constexpr int64_t kBlock = 8;
  const auto double_block = [&](int64_t i) {
    for (int64_t copy = 0; copy < copies; ++copy) {
#pragma omp simd
      for (int64_t k = i; k < i + kBlock; ++k) to[2 * (copy * pairs + k)] = to[2 * (copy * pairs + k) + 1] = from[k];
    }
  };
  for (int64_t row = 0; row < rows; ++row, from += pairs, to += 2 * copies * pairs) {
    for (int64_t i = 0; i + kBlock <= pairs; i += kBlock) double_block(i);
    if (pairs < kBlock) {
      for (int64_t i = 0; i < copies * 2 * pairs; ++i) to[i] = from[i % (2 * pairs) / 2];
    } else if (pairs % kBlock != 0) {
      double_block(pairs - kBlock);
    }
  }
}

bool is_doubling(const std::vector<int64_t>& positions) {
  for (size_t i = 0; i < positions.size(); ++i) {
    if (positions[i] != static_cast<int64_t>(i / 2)) return false;
  }
  return positions.size() % 2 == 0;
}

bool has_gap(const std::vector<int64_t>& starts) {
  return std::any_of(starts.begin(), starts.end(), [](int64_t start) { return start < 0; });
}

// Rows of `width` units, each of them twice.
bool is_doubling_of_rows(const std::vector<int64_t>& starts, int64_t width) {
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] != static_cast<int64_t>(i / 2) * width) return false;
  }
  return starts.size() % 2 == 0;
}

}  // namespace

IndexedCopy::IndexedCopy(const Dims& in, const std::vector<std::vector<int64_t>>& positions, size_t element_bytes,
                         int threads)
    : element_bytes_(element_bytes), unit_bytes_(static_cast<int64_t>(element_bytes)), row_{0} {
  size_t axis = positions.size();
  for (; axis > 0 && is_identity(positions[axis - 1], in[axis - 1]); --axis) unit_bytes_ *= in[axis - 1];
  if (unit_bytes_ == 0) units_ = 0;
  if (axis > 0) row_ = positions[axis - 1];
  units_ *= static_cast<int64_t>(row_.size());
  int64_t stride = axis > 0 ? in[axis - 1] : 1;
  for (size_t a = axis > 0 ? axis - 1 : 0; a-- > 0; stride *= in[a]) {
    std::vector<int64_t> starts = positions[a];
    for (int64_t& start : starts) start = start < 0 ? -1 : start * stride;
    units_ *= static_cast<int64_t>(starts.size());
    outer_.push_back(std::move(starts));
  }
  std::reverse(outer_.begin(), outer_.end());
  if (outer_.empty()) outer_.push_back({0});
  threads_ = useful_threads(threads, units_ * unit_bytes_ / 4);
  doubles_ = is_doubling(row_) && !row_.empty() && unit_bytes_ == 4;
  doubles_rows_ = doubles_ && is_doubling_of_rows(outer_.back(), static_cast<int64_t>(row_.size()) / 2) &&
                  std::none_of(outer_.begin(), outer_.end(), has_gap);
  find_segments();
}

void IndexedCopy::find_segments() {
  const auto count = static_cast<int64_t>(row_.size());
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    const auto at = [&](int64_t i) { return row_[static_cast<size_t>(i)]; };
    const bool filled = at(begin) < 0;
    for (end = begin + 1; end < count && (filled ? at(end) < 0 : at(end) == at(end - 1) + 1); ++end) {
    }
    const Way way = filled ? Way::filled : (end - begin) * unit_bytes_ >= kMinBlockBytes ? Way::block : Way::gathered;
    if (way == Way::gathered && !segments_.empty() && segments_.back().way == way) {
      segments_.back().end = end;
    } else {
      segments_.push_back({way, begin, end});
    }
  }
}

void IndexedCopy::run(const void* in, void* out, const void* fill) const {
  if (doubles_rows_) {
    return for_shares(threads_, units_ / static_cast<int64_t>(2 * row_.size()), [&](int64_t begin, int64_t end, int) {
      double_rows(static_cast<const uint32_t*>(in), static_cast<uint32_t*>(out), begin, end);
    });
  }
  for_shares(threads_, units_, [&](int64_t begin, int64_t end, int) {
    copy_share(static_cast<const char*>(in), static_cast<char*>(out), static_cast<const char*>(fill), begin, end);
  });
}

int64_t IndexedCopy::block_start(int64_t block) const {
  int64_t start = 0;
  for (size_t a = outer_.size() - 1; a-- > 0;) {
    const auto extent = static_cast<int64_t>(outer_[a].size());
    const int64_t step = outer_[a][static_cast<size_t>(block % extent)];
    if (step < 0) return -1;
    start += step;
    block /= extent;
  }
  return start;
}

// Rows [begin, end) of the input, counted through all blocks.
void IndexedCopy::double_rows(const uint32_t* in, uint32_t* out, int64_t begin, int64_t end) const {
  const auto width = static_cast<int64_t>(row_.size()) / 2;
  const auto rows = static_cast<int64_t>(outer_.back().size()) / 2;  // of a block
  for (int64_t row = begin; row < end;) {
    const int64_t first = row % rows, count = std::min(rows - first, end - row);
    double_words(in + block_start(row / rows) + first * width, out + row * 4 * width, width, count, 2);
    row += count;
  }
}

void IndexedCopy::copy_share(const char* in, char* out, const char* fill, int64_t begin, int64_t end) const {
  const auto width = static_cast<int64_t>(row_.size());
  const auto row_bytes = static_cast<size_t>(width * unit_bytes_);
  const std::vector<int64_t>& steps = outer_.back();
  const auto rows = static_cast<int64_t>(steps.size());  // of a block
  int64_t row_in_block = begin / width % rows;
  int64_t block = begin / width / rows;
  int64_t origin = block_start(block);
  int64_t before = -1;  // start of the row before this one, when this share wrote all of it
  for (int64_t at = begin; at < end;) {
    const int64_t first = at % width;
    const int64_t last = std::min(width, first + end - at);
    const int64_t step = steps[static_cast<size_t>(row_in_block)];
    const int64_t start = origin < 0 || step < 0 ? -1 : origin + step;
    char* row = out + (at - first) * unit_bytes_;
    if (start < 0) {
      fill_units(row + first * unit_bytes_, fill, last - first);
    } else if (start == before && last == width) {
      std::memcpy(row, row - row_bytes, row_bytes);
    } else {
      copy_row(in + start * unit_bytes_, row, fill, first, last);
    }
    before = first == 0 ? start : -1;
    at += last - first;
    if (++row_in_block == rows) {
      row_in_block = 0;
      origin = block_start(++block);
    }
  }
}

void IndexedCopy::copy_row(const char* in, char* out, const char* fill, int64_t begin, int64_t end) const {
  for (const Segment& segment : segments_) {
    const int64_t first = std::max(segment.begin, begin), last = std::min(segment.end, end);
    if (first >= last) continue;
    char* to = out + first * unit_bytes_;
    switch (segment.way) {
      case Way::block:
        std::memcpy(to, in + row_[static_cast<size_t>(first)] * unit_bytes_,
                    static_cast<size_t>((last - first) * unit_bytes_));
        break;
      case Way::gathered: gather(in, to, first, last); break;
      case Way::filled: fill_units(to, fill, last - first); break;
    }
  }
}

void IndexedCopy::gather(const char* in, char* out, int64_t begin, int64_t end) const {
  const int64_t* positions = row_.data() + begin;
  if (doubles_ && begin == 0 && end == static_cast<int64_t>(row_.size())) {
    return double_words(reinterpret_cast<const uint32_t*>(in), reinterpret_cast<uint32_t*>(out), end / 2, 1, 1);
  }
  switch (unit_bytes_) {
    case 1: return gather_bytes<1>(in, out, positions, end - begin);
    case 2: return gather_bytes<2>(in, out, positions, end - begin);
    case 4: return gather_bytes<4>(in, out, positions, end - begin);
    case 8: return gather_bytes<8>(in, out, positions, end - begin);
    case 16: return gather_bytes<16>(in, out, positions, end - begin);
    default: break;
  }
  for (int64_t i = 0; i < end - begin; ++i) {
    std::memcpy(out + i * unit_bytes_, in + positions[i] * unit_bytes_, static_cast<size_t>(unit_bytes_));
  }
}

void IndexedCopy::fill_units(char* out, const char* fill, int64_t units) const {
  const auto bytes = static_cast<int64_t>(element_bytes_);
  for (int64_t i = 0; i < units * unit_bytes_; i += bytes) std::memcpy(out + i, fill, element_bytes_);
}

}  // namespace autograph
