// Attention of few queries: keys and values are read where they lie, once, instead of being packed for tiles of rows.
#if defined(AG_SIMD_ATTENTION_FEW_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_ATTENTION_FEW_INL_H
#undef AG_SIMD_ATTENTION_FEW_INL_H
#else
#define AG_SIMD_ATTENTION_FEW_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Queries that are multiplied with a key at a time, and keys: sums of all pairs stay in registers.
constexpr int64_t kRowsAtOnce = 4;
constexpr int64_t kKeysAtOnce = 2;

// Some rows of a matrix that lie `stride` apart.
struct StridedRows {
  const float* at;
  int64_t stride, count;
};

// scores[r * scores_stride + j] = row r of q times key j, over `size` elements.
template <int kRows, int kKeys>
HWY_INLINE void score_few(const StridedRows& q, const float* keys, int64_t key_stride, int64_t size, float* scores,
                          int64_t scores_stride) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kKeys];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kKeys; ++j) sums[r][j] = hn::Zero(d);
  }
  const auto add = [&](const auto& load, int64_t i) HWY_ATTR {
    V key[kKeys];
#pragma GCC unroll 8
    for (int j = 0; j < kKeys; ++j) key[j] = load(keys + j * key_stride + i);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V query = load(q.at + r * q.stride + i);
#pragma GCC unroll 8
      for (int j = 0; j < kKeys; ++j) sums[r][j] = hn::MulAdd(query, key[j], sums[r][j]);
    }
  };
  int64_t i = 0;
  for (; i + lanes <= size; i += lanes) add([&](const float* from) HWY_ATTR { return hn::LoadU(d, from); }, i);
  if (i < size) {
    const auto rest = static_cast<size_t>(size - i);
    add([&](const float* from) HWY_ATTR { return load_some(d, from, rest, hn::Zero(d)); }, i);
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kKeys; ++j) scores[r * scores_stride + j] = hn::GetLane(hn::SumOfLanes(d, sums[r][j]));
  }
}

template <int kRows>
HWY_INLINE void score_rows(const StridedRows& q, const StridedRows& keys, int64_t size, float* scores,
                           int64_t scores_stride) {
  constexpr int kKeys = kRows == 1 ? 4 * kKeysAtOnce : kRows == 2 ? 2 * kKeysAtOnce : kKeysAtOnce;
  int64_t j = 0;
  for (; j + kKeys <= keys.count; j += kKeys) {
    score_few<kRows, kKeys>(q, keys.at + j * keys.stride, keys.stride, size, scores + j, scores_stride);
  }
  for (; j < keys.count; ++j) {
    score_few<kRows, 1>(q, keys.at + j * keys.stride, keys.stride, size, scores + j, scores_stride);
  }
}

// sums[r] += weights of row r times the values, for `kVectors` vectors of their columns from `column` on.
template <int kRows, int kVectors, class Load>
HWY_INLINE void add_columns(const StridedRows& weights, const StridedRows& values, int64_t column, float* sums,
                            int64_t sums_stride, const Load& load) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V total[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) total[r][v] = hn::LoadU(d, sums + r * sums_stride + column + v * lanes);
  }
  for (int64_t j = 0; j < values.count; ++j) {
    V value[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) value[v] = load(values.at + j * values.stride + column + v * lanes);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, weights.at[r * weights.stride + j]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) total[r][v] = hn::MulAdd(weight, value[v], total[r][v]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) hn::StoreU(total[r][v], d, sums + r * sums_stride + column + v * lanes);
  }
}

// Rows of sums are padded to whole vectors.
template <int kRows>
HWY_INLINE void add_rows(const StridedRows& weights, const StridedRows& values, int64_t size, float* sums,
                         int64_t sums_stride) {
  constexpr int kVectors = kRows == 1 ? 8 : kRows == 2 ? 4 : 2;
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto whole = [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); };
  int64_t column = 0;
  for (; column + kVectors * lanes <= size; column += kVectors * lanes) {
    add_columns<kRows, kVectors>(weights, values, column, sums, sums_stride, whole);
  }
  for (; column + lanes <= size; column += lanes) {
    add_columns<kRows, 1>(weights, values, column, sums, sums_stride, whole);
  }
  if (column == size) return;
  const auto rest = static_cast<size_t>(size - column);
  add_columns<kRows, 1>(weights, values, column, sums, sums_stride,
                        [&](const float* from) HWY_ATTR { return load_some(d, from, rest, hn::Zero(d)); });
}

// Calls body.operator()<rows>(first row) for all rows, a few at a time.
template <class Body>
HWY_INLINE void for_few_rows(int64_t count, const Body& body) {
  for (int64_t row = 0; row < count; row += kRowsAtOnce) {
    switch (std::min(kRowsAtOnce, count - row)) {
      case 1: body.template operator()<1>(row); break;
      case 2: body.template operator()<2>(row); break;
      case 3: body.template operator()<3>(row); break;
      default: body.template operator()<kRowsAtOnce>(row);
    }
  }
}

/// scores[r] = row r of q times all keys, over `size` elements.
HWY_INLINE void multiply_keys(const StridedRows& q, const StridedRows& keys, int64_t size, float* scores,
                              int64_t scores_stride) {
  for_few_rows(q.count, [&]<int kRows>(int64_t row) HWY_ATTR {
    score_rows<kRows>({q.at + row * q.stride, q.stride, kRows}, keys, size, scores + row * scores_stride,
                      scores_stride);
  });
}

/// sums[r] += row r of the weights times all values, of `size` elements.
HWY_INLINE void add_values(const StridedRows& weights, const StridedRows& values, int64_t size, float* sums,
                           int64_t sums_stride) {
  for_few_rows(weights.count, [&]<int kRows>(int64_t row) HWY_ATTR {
    add_rows<kRows>({weights.at + row * weights.stride, weights.stride, kRows}, values, size, sums + row * sums_stride,
                    sums_stride);
  });
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target
