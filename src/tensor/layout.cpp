#include "autograph/layout.h"

namespace autograph {
namespace {

constexpr size_t kChannelAxis = 1;

int64_t spatial_size(const Dims& dims) {
  int64_t size = 1;
  for (size_t a = kChannelAxis + 1; a < dims.size(); ++a) size *= dims[a];
  return size;
}

// Is the layout the row-major one for these dims?
bool is_row_major(Layout layout, const Dims& dims) {
  if (layout == Layout::row_major) return true;
  if (layout == Layout::channels_last) return dims[kChannelAxis] == 1 || spatial_size(dims) == 1;
  return dims[kChannelAxis] % channel_block(layout) == 0 && spatial_size(dims) == 1;
}

}  // namespace

std::string_view to_string(Layout layout) {
  switch (layout) {
    case Layout::row_major: return "row_major";
    case Layout::channels_last: return "channels_last";
    case Layout::blocked8: return "blocked8";
    case Layout::blocked16: return "blocked16";
  }
  return "?";
}

int64_t channel_block(Layout layout) {
  if (layout == Layout::blocked8) return 8;
  return layout == Layout::blocked16 ? 16 : 1;
}

bool fits_rank(Layout layout, size_t rank) { return layout == Layout::row_major || (rank >= 3 && rank <= 5); }

Dims padded_dims(Layout layout, const Dims& dims) {
  Dims padded = dims;
  const int64_t block = channel_block(layout);
  if (block > 1) padded[kChannelAxis] = (dims[kChannelAxis] + block - 1) / block * block;
  return padded;
}

bool is_same_order(Layout a, Layout b, const Dims& dims) {
  if (a == b) return true;
  if (is_row_major(a, dims) && is_row_major(b, dims)) return true;
  // A single block of channels is the channels-last order.
  const bool last = a == Layout::channels_last || b == Layout::channels_last;
  const int64_t block = channel_block(a == Layout::channels_last ? b : a);
  return last && block > 1 && dims[kChannelAxis] == block;
}

}  // namespace autograph
