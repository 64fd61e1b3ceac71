#include "backends/cpu/vision/grid_pairs.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/multiversion.h"

namespace autograph {
namespace {

constexpr int64_t kGroup = 8;  // positions mixed together, four in each of two vectors
using Pairs = double __attribute__((vector_size(4 * sizeof(double))));
using Floats = float __attribute__((vector_size(8 * sizeof(float))));
using Masks = uint32_t __attribute__((vector_size(8 * sizeof(uint32_t))));

// Where the pair of a position stands in its group: adding up pairs within halves of two vectors gives the sums of
// positions 0, 1, 2, 3 and 4, 5, 6, 7 then.
constexpr std::array<int64_t, kGroup> kSlot{0, 1, 4, 5, 2, 3, 6, 7};

// Two floats as they are.
inline double pair_at(const float* from) {
  double pair;
  std::memcpy(&pair, from, sizeof(pair));
  return pair;
}

template <class V, class T>
inline void load(const T* from, V& v) {
  std::memcpy(&v, from, sizeof(v));
}

#define AG_ALWAYS_INLINE inline __attribute__((always_inline))

// Channels as they lie in memory: `step` elements apart.
struct Channels {
  const float* in;
  int64_t in_step;
  float* out;
  int64_t out_step;
};

// sums += weights * (pairs & masks) for four positions in each of kChannels channels.
template <int kChannels>
AG_ALWAYS_INLINE void add_pairs(const Channels& channels, const int32_t* offset, const float* weights,
                                const uint32_t* masks, Floats* sums) {
  Masks mask;
  Floats weight;
  load(masks, mask);
  load(weights, weight);
  const int64_t at[] = {offset[0], offset[1], offset[2], offset[3]};
  for (int c = 0; c < kChannels; ++c) {
    const float* in = channels.in + c * channels.in_step;
    const Pairs pairs{pair_at(in + at[0]), pair_at(in + at[1]), pair_at(in + at[2]), pair_at(in + at[3])};
    sums[c] += weight * reinterpret_cast<Floats>(reinterpret_cast<Masks>(pairs) & mask);
  }
}

template <int kChannels>
AG_ALWAYS_INLINE void mix_groups(const Channels& channels, size_t rows, const int32_t* offsets, const float* weights,
                                 const uint32_t* masks, int64_t groups) {
  for (int64_t group = 0; group < groups; ++group) {
    Floats first[kChannels] = {}, second[kChannels] = {};
    for (size_t row = 0; row < rows; ++row) {
      const int64_t at = static_cast<int64_t>(row) * GridPairs::kPositions + group * kGroup;
      add_pairs<kChannels>(channels, offsets + at, weights + 2 * at, masks + 2 * at, first);
      add_pairs<kChannels>(channels, offsets + at + 4, weights + 2 * at + kGroup, masks + 2 * at + kGroup, second);
    }
    for (int c = 0; c < kChannels; ++c) {
      const Floats sums = __builtin_shufflevector(first[c], second[c], 0, 2, 8, 10, 4, 6, 12, 14) +
                          __builtin_shufflevector(first[c], second[c], 1, 3, 9, 11, 5, 7, 13, 15);
      std::memcpy(channels.out + c * channels.out_step + group * kGroup, &sums, sizeof(sums));
    }
  }
}

AG_MULTIVERSION void mix_one(const Channels& channels, size_t rows, const int32_t* offsets, const float* weights,
                             const uint32_t* masks, int64_t groups) {
  mix_groups<1>(channels, rows, offsets, weights, masks, groups);
}

// Offsets, weights and masks are read once for both.
AG_MULTIVERSION void mix_two(const Channels& channels, size_t rows, const int32_t* offsets, const float* weights,
                             const uint32_t* masks, int64_t groups) {
  mix_groups<2>(channels, rows, offsets, weights, masks, groups);
}

// A pair along the innermost axis: where it begins, and what counts of it how much.
struct RowPair {
  int64_t begin = 0;
  double weights[2] = {};
  uint32_t masks[2] = {};
};

RowPair pair_of(const GridTap* taps, int64_t extent) {
  RowPair pair;
  pair.begin = extent - 2;
  for (int t = 0; t < 2; ++t) {
    if (taps[t].offset >= 0) pair.begin = std::min(pair.begin, taps[t].offset);
  }
  for (int t = 0; t < 2; ++t) {
    if (taps[t].offset < 0) continue;
    // They are neighbours, but for what reflecting a point far outside may lose.
    const int64_t lane = std::min<int64_t>(taps[t].offset - pair.begin, 1);
    pair.weights[lane] = taps[t].weight;
    pair.masks[lane] = ~uint32_t{0};
  }
  return pair;
}

}  // namespace

bool GridPairs::fit(const GridSampler& sampler, std::span<const int64_t> extents) {
  return sampler.is_linear() && extents.size() <= kMaxAxes && extents.back() >= 2;
}

void GridPairs::set(size_t row, int64_t position, int64_t offset, const float* weights, const uint32_t* masks) {
  const int64_t slot = position / kGroup * kGroup + kSlot[static_cast<size_t>(position % kGroup)];
  const size_t at = row * kPositions + static_cast<size_t>(slot);
  offset_[at] = static_cast<int32_t>(offset);
  std::copy_n(weights, 2, &weight_[2 * at]);
  std::copy_n(masks, 2, &mask_[2 * at]);
}

void GridPairs::clear(int64_t begin, int64_t end) {
  constexpr float kNoWeights[2] = {};
  constexpr uint32_t kNoMasks[2] = {};
  for (size_t row = 0; row < rows_; ++row) {
    for (int64_t i = begin; i < end; ++i) set(row, i, 0, kNoWeights, kNoMasks);
  }
}

void GridPairs::find(const GridSampler& sampler, std::span<const int64_t> extents, const float* grid, int64_t count) {
  const size_t axes = extents.size();
  rows_ = size_t{1} << (axes - 1);
  for (int64_t i = 0; i < count; ++i, grid += axes) {
    GridTap along[kMaxAxes][2];
    for (size_t axis = 0; axis < axes; ++axis) sampler.axis_taps(grid[axes - 1 - axis], extents[axis], along[axis]);
    const RowPair pair = pair_of(along[axes - 1], extents[axes - 1]);
    for (size_t row = 0; row < rows_; ++row) {
      int64_t offset = 0;
      double weight = 1;
      uint32_t mask = ~uint32_t{0};
      for (size_t axis = 0; axis + 1 < axes; ++axis) {
        const GridTap& tap = along[axis][row >> axis & 1];
        if (tap.offset < 0) mask = 0;
        offset = offset * extents[axis] + std::max<int64_t>(tap.offset, 0);
        weight *= tap.weight;
      }
      if (mask == 0) weight = 0;  // of a point that is nowhere it is NaN
      const float weights[] = {static_cast<float>(weight * pair.weights[0]),
                               static_cast<float>(weight * pair.weights[1])};
      const uint32_t masks[] = {mask & pair.masks[0], mask & pair.masks[1]};
      set(row, i, offset * extents[axes - 1] + pair.begin, weights, masks);
    }
  }
  clear(count, (count + kGroup - 1) / kGroup * kGroup);
}

void GridPairs::mix(const float* in, int64_t in_step, int64_t channels, float* out, int64_t out_step,
                    int64_t count) const {
  const int64_t groups = count / kGroup, done = groups * kGroup;
  const auto mix_some = [&](const Channels& both, int64_t number, int64_t at, int64_t size) {
    const auto mix = number == 2 ? mix_two : mix_one;
    mix(both, rows_, offset_.data() + at, weight_.data() + 2 * at, mask_.data() + 2 * at, size);
  };
  for (int64_t c = 0; c < channels; c += 2, in += 2 * in_step, out += 2 * out_step) {
    const int64_t number = std::min<int64_t>(channels - c, 2);
    mix_some({in, in_step, out, out_step}, number, 0, groups);
    if (done == count) continue;
    float rest[2 * kGroup];
    mix_some({in, in_step, rest, kGroup}, number, done, 1);
    for (int64_t k = 0; k < number; ++k) std::copy_n(rest + k * kGroup, count - done, out + k * out_step + done);
  }
}

}  // namespace autograph
