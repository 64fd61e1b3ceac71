#include "backends/cpu/simd/linear/quantized_finish.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/quantized_finish.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/bytes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

struct NoResidual {};

int64_t lanes_of_target() { return static_cast<int64_t>(hn::Lanes(ByteFloatD())); }

template <class Residual, class Y>
class RowFinisher {
 public:
  explicit RowFinisher(const QuantizedFinish& finish)
      : finish_(finish), low_(hn::Set(d_, finish.low)), high_(hn::Set(d_, finish.high)) {}

  // Sums of columns from `column` on.
  HWY_INLINE void finish_row(const int32_t* sums, int64_t column, int64_t count, const Residual* residual, Y* y) const {
    const int64_t lanes = lanes_of_target();
    const auto value = [&](int64_t i)
                           HWY_ATTR { return value_of(sums + i, column + i, kHasResidual ? residual + i : nullptr); };
    int64_t i = 0;
    for (; i + kByteVectors * lanes <= count; i += kByteVectors * lanes) {
      store({value(i), value(i + lanes), value(i + 2 * lanes), value(i + 3 * lanes)}, y + i);
    }
    for (; i + lanes <= count; i += lanes) store(value(i), y + i);
    if (i == count) return;
    constexpr int64_t kMaxLanes = HWY_MAX_BYTES / sizeof(float);
    const int64_t rest = std::min(count - i, kMaxLanes);
    Residual last_residual[kMaxLanes] = {};
    Y last[kMaxLanes] = {};
    if constexpr (kHasResidual) std::copy_n(residual + i, rest, last_residual);
    store(value_of(sums + i, column + i, last_residual), last);
    std::copy_n(last, rest, y + i);
  }

 private:
  static constexpr bool kHasResidual = !std::is_same_v<Residual, NoResidual>;

  HWY_INLINE ByteFloats value_of(const int32_t* sums, int64_t column, const Residual* residual) const {
    const ByteFloats sum = hn::ConvertTo(d_, hn::LoadU(ByteIntD(), sums));
    ByteFloats v = hn::MulAdd(sum, hn::LoadU(d_, finish_.scale + column), hn::LoadU(d_, finish_.bias + column));
    if constexpr (kHasResidual) {
      const ByteFloats zero = hn::Set(d_, static_cast<float>(finish_.residual_zero));
      v = hn::MulAdd(hn::Sub(load_bytes(residual), zero), hn::Set(d_, finish_.residual_scale), v);
    }
    return hn::Min(hn::Max(v, low_), high_);
  }

  HWY_INLINE void store(ByteFloats v, Y* to) const {
    if constexpr (std::is_same_v<Y, float>) {
      hn::StoreU(v, d_, to);
    } else {
      store_bytes(v, finish_.y_zero, to);
    }
  }
  HWY_INLINE void store(const std::array<ByteFloats, kByteVectors>& v, Y* to) const {
    if constexpr (std::is_same_v<Y, float>) {
      for (size_t i = 0; i < v.size(); ++i) hn::StoreU(v[i], d_, to + i * hn::Lanes(d_));
    } else {
      store_bytes(v, finish_.y_zero, to);
    }
  }

  const ByteFloatD d_{};
  const QuantizedFinish& finish_;
  const ByteFloats low_, high_;
};

template <class Residual, class Y>
void finish_rows(const QuantizedFinish& finish, const QuantizedTile& tile) {
  const auto* residual = static_cast<const Residual*>(tile.residual);
  auto* y = static_cast<Y*>(tile.y);
  const RowFinisher<Residual, Y> finisher(finish);
  for (int64_t row = 0; row < tile.rows; ++row) {
    finisher.finish_row(tile.sums + row * tile.sum_stride, tile.column, tile.columns,
                        residual ? residual + row * tile.y_stride : nullptr, y + row * tile.y_stride);
  }
}

template <class Residual>
void finish_with(const QuantizedFinish& finish, const QuantizedTile& tile) {
  if (finish.y == DType::u8) return finish_rows<Residual, uint8_t>(finish, tile);
  if (finish.y == DType::i8) return finish_rows<Residual, int8_t>(finish, tile);
  finish_rows<Residual, float>(finish, tile);
}

void finish_any(const QuantizedFinish& finish, const QuantizedTile& tile) {
  if (finish.residual == DType::u8) return finish_with<uint8_t>(finish, tile);
  if (finish.residual == DType::i8) return finish_with<int8_t>(finish, tile);
  finish_with<NoResidual>(finish, tile);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(lanes_of_target);
HWY_EXPORT(finish_any);

}  // namespace

int64_t quantized_finish_padding() { return HWY_DYNAMIC_DISPATCH(lanes_of_target)(); }

void finish_quantized(const QuantizedFinish& finish, const QuantizedTile& tile) {
  HWY_DYNAMIC_DISPATCH(finish_any)(finish, tile);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
