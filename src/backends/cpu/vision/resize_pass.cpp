#include "backends/cpu/vision/resize_pass.h"

#include <algorithm>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/threads/parallel.h"

namespace autograph {
namespace {

// Taps of neighbouring outputs: those of output o are at [t * stride + o].
struct TapTable {
  const int32_t* index;
  const float* weight;
  int64_t taps;
  int64_t stride;
};

// A line of single elements: the loops run over outputs.
AG_MULTIVERSION void mix_elements(const float* in, const TapTable& table, float* out, int64_t count) {
  const int64_t stride = table.stride;
  for (int64_t t = 0; t < table.taps; t += 2) {
    const int32_t *a = table.index + t * stride, *b = a + stride;
    const float *u = table.weight + t * stride, *v = u + stride;
    if (t == 0) {
      for (int64_t o = 0; o < count; ++o) out[o] = u[o] * in[a[o]] + v[o] * in[b[o]];
    } else {
      for (int64_t o = 0; o < count; ++o) out[o] += u[o] * in[a[o]] + v[o] * in[b[o]];
    }
  }
}

// A line of blocks of `inner` elements: the loops run over the elements of a block.
AG_MULTIVERSION void mix_blocks(const float* in, int64_t inner, const TapTable& table, float* out, int64_t count) {
  for (int64_t o = 0; o < count; ++o, out += inner) {
    const auto block = [&](int64_t t) { return in + table.index[t * table.stride + o] * inner; };
    const auto weight = [&](int64_t t) { return table.weight[t * table.stride + o]; };
    const float *a = block(0), *b = block(1);
    const float u = weight(0), v = weight(1);
    if (table.taps == 2) {
      for (int64_t i = 0; i < inner; ++i) out[i] = u * a[i] + v * b[i];
      continue;
    }
    const float *c = block(2), *d = block(3);
    const float w = weight(2), x = weight(3);
    for (int64_t i = 0; i < inner; ++i) out[i] = u * a[i] + v * b[i] + w * c[i] + x * d[i];
    for (int64_t t = 4; t < table.taps; ++t) {
      const float* more = block(t);
      const float factor = weight(t);
      for (int64_t i = 0; i < inner; ++i) out[i] += factor * more[i];
    }
  }
}

}  // namespace

ResizePass::ResizePass(const Attributes& attributes, const ResizeAxis& axis, int64_t rows, int64_t inner)
    : rows_(rows),
      inner_(inner),
      in_extent_(axis.in),
      out_extent_(axis.out),
      outside_(attributes.real("extrapolation_value")) {
  const std::vector<ResizeMix> mixes = resize_mixes(attributes, axis);
  for (const ResizeMix& mix : mixes) taps_ = std::max(taps_, static_cast<int64_t>(mix.taps.size()));
  const auto stride = static_cast<size_t>(out_extent_);
  index_.resize(stride * static_cast<size_t>(taps_));
  weight_.resize(index_.size());
  for (size_t o = 0; o < stride; ++o) {
    if (mixes[o].taps.empty()) extrapolated_.push_back(static_cast<int64_t>(o));
    for (size_t t = 0; t < mixes[o].taps.size(); ++t) {
      index_[t * stride + o] = static_cast<int32_t>(mixes[o].taps[t].first);
      weight_[t * stride + o] = static_cast<float>(mixes[o].taps[t].second);
    }
  }
}

void ResizePass::run(const float* in, float* out, int threads) const {
  // Rows of single elements are shared as a whole, those of blocks block by block.
  const int64_t lines = inner_ == 1 ? rows_ : rows_ * out_extent_;
  for_shares(threads, lines, [&](int64_t begin, int64_t end, int) { run_lines(in, out, begin, end); });
}

void ResizePass::run_lines(const float* in, float* out, int64_t begin, int64_t end) const {
  const int64_t lines_per_row = inner_ == 1 ? 1 : out_extent_;
  for (int64_t line = begin; line < end;) {
    const int64_t row = line / lines_per_row;
    const int64_t first = line % lines_per_row;
    const int64_t count = std::min(lines_per_row - first, end - line);
    const float* from = in + row * in_extent_ * inner_;
    float* to = out + row * out_extent_ * inner_;
    const TapTable table{index_.data() + first, weight_.data() + first, taps_, out_extent_};
    if (inner_ == 1) {
      mix_elements(from, table, to, out_extent_);
    } else {
      mix_blocks(from, inner_, table, to + first * inner_, count);
    }
    for (const int64_t o : extrapolated_) {
      if (inner_ == 1 || (o >= first && o < first + count)) std::fill_n(to + o * inner_, inner_, outside_);
    }
    line += count;
  }
}

}  // namespace autograph
