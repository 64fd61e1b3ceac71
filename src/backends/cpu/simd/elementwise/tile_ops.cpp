#include "backends/cpu/simd/elementwise/tile_ops.h"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/elementwise/tile_ops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/elementwise/lanes-inl.h"
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Elements of an operand, one vector at a time.
template <bool kIsScalar>
struct Reader {
  explicit Reader(const TileOperand& operand) : data(operand.data), value(hn::Set(D(), *operand.data)) {}
  HWY_INLINE V load(size_t at) const {
    if constexpr (kIsScalar) return value;
    return hn::LoadU(D(), data + at);
  }
  // The last `count` elements, padded with a 1, which no function dislikes.
  HWY_INLINE V load_some(size_t at, size_t count) const {
    if constexpr (kIsScalar) return value;
    return HWY_NAMESPACE::load_some(D(), data + at, count, hn::Set(D(), 1.0F));
  }

  const float* data;
  V value;
};

HWY_INLINE V vector_of(Lanes x) { return x.v; }
HWY_INLINE V vector_of(Answers x) { return hn::IfThenElseZero(x.mask, hn::Set(D(), 1.0F)); }

// Integers, whose bits are those of a vector.
using DI = hn::RebindToSigned<D>;
using VI = hn::Vec<DI>;
HWY_INLINE V of_integers(IntegerSum, VI a, VI b) { return hn::BitCast(D(), hn::Add(a, b)); }
HWY_INLINE V of_integers(IntegerDifference, VI a, VI b) { return hn::BitCast(D(), hn::Sub(a, b)); }
HWY_INLINE V of_integers(IntegerProduct, VI a, VI b) { return hn::BitCast(D(), hn::Mul(a, b)); }
HWY_INLINE V of_integers(FloatOfInteger, VI a) { return hn::ConvertTo(D(), a); }

template <class F, class... Vs>
concept OfIntegers = requires(Vs... x) {
  of_integers(F(), hn::BitCast(DI(), x)...);
};

// F of these operands and the parameters of the call.
template <class F, class... Vs>
HWY_INLINE V apply(Lanes p, Lanes q, Vs... x) {
  constexpr size_t kParameters = F::kInfo.num_parameters();
  if constexpr (OfIntegers<F, Vs...>) {
    return of_integers(F(), hn::BitCast(DI(), x)...);
  } else if constexpr (kParameters == 2) {
    return vector_of(formulas::fast<F>(Lanes(x)..., p, q));
  } else if constexpr (kParameters == 1) {
    return vector_of(formulas::fast<F>(Lanes(x)..., p));
  } else {
    return vector_of(formulas::fast<F>(Lanes(x)...));
  }
}

template <class F, class... Readers>
HWY_INLINE void loop(const TileCall& call, const Readers&... in) {
  const D d;
  const Lanes p(call.p), q(call.q);
  const size_t lanes = hn::Lanes(d);
  const auto count = static_cast<size_t>(call.count);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(apply<F>(p, q, in.load(i)...), d, call.y + i);
  if (i == count) return;
  store_some(d, apply<F>(p, q, in.load_some(i, count - i)...), call.y + i, count - i);
}

template <class F>
void unary(const TileCall& call) {
  if (call.operands[0].step != 0) return loop<F>(call, Reader<false>(call.operands[0]));
  loop<F>(call, Reader<true>(call.operands[0]));
}

template <class F>
void binary(const TileCall& call) {
  const auto& [a, b, c] = call.operands;
  if (a.step != 0 && b.step != 0) return loop<F>(call, Reader<false>(a), Reader<false>(b));
  if (a.step != 0) return loop<F>(call, Reader<false>(a), Reader<true>(b));
  if (b.step != 0) return loop<F>(call, Reader<true>(a), Reader<false>(b));
  loop<F>(call, Reader<true>(a), Reader<true>(b));
}

template <class F>
void ternary(const TileCall& call) {
  const auto &a = call.operands[0], &b = call.operands[1], &c = call.operands[2];
  const auto with_c = [&](const auto& first, const auto& second) HWY_ATTR {
    if (c.step != 0) return loop<F>(call, first, second, Reader<false>(c));
    loop<F>(call, first, second, Reader<true>(c));
  };
  if (a.step != 0 && b.step != 0) return with_c(Reader<false>(a), Reader<false>(b));
  if (a.step != 0) return with_c(Reader<false>(a), Reader<true>(b));
  if (b.step != 0) return with_c(Reader<true>(a), Reader<false>(b));
  with_c(Reader<true>(a), Reader<true>(b));
}

template <class F>
constexpr TileFunction function_of() {
  if constexpr (F::kInfo.operands == 1) return unary<F>;
  if constexpr (F::kInfo.operands == 2) return binary<F>;
  if constexpr (F::kInfo.operands == 3) return ternary<F>;
}

template <class... Fs, class... Is>
constexpr std::array<TileFunction, kTileOpCount> functions_of(FormulaList<Fs...>, FormulaList<Is...>) {
  return {function_of<Fs>()..., function_of<Is>()...};
}

const std::array<TileFunction, kTileOpCount>* functions() {
  static constexpr std::array<TileFunction, kTileOpCount> kFunctions =
      functions_of(formulas::Formulas(), TilesOfIntegers());
  return &kFunctions;
}

void widen(const uint8_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

void widen_signed(const int8_t* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]);
}

// NaN compares as false and so becomes the lower end.
template <class Byte>
void saturate(const float* from, Byte* to, int64_t count) {
  constexpr auto kLow = static_cast<float>(std::numeric_limits<Byte>::min());
  constexpr auto kHigh = static_cast<float>(std::numeric_limits<Byte>::max());
  for (int64_t i = 0; i < count; ++i) {
    const float low = from[i] > kLow ? from[i] : kLow;
    to[i] = static_cast<Byte>(static_cast<int32_t>(low < kHigh ? low : kHigh));
  }
}

void narrow_unsigned(const float* from, uint8_t* to, int64_t count) { saturate(from, to, count); }

void narrow_signed(const float* from, int8_t* to, int64_t count) { saturate(from, to, count); }

void narrow(const float* from, uint8_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] != 0 ? 1 : 0;
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(functions);
HWY_EXPORT(widen);
HWY_EXPORT(widen_signed);
HWY_EXPORT(narrow);
HWY_EXPORT(narrow_unsigned);
HWY_EXPORT(narrow_signed);

const std::array<TileFunction, kTileOpCount>& tile_functions() { return *HWY_DYNAMIC_DISPATCH(functions)(); }

void widen_bytes(const uint8_t* from, float* to, int64_t count) { HWY_DYNAMIC_DISPATCH(widen)(from, to, count); }

void widen_signed_bytes(const int8_t* from, float* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(widen_signed)(from, to, count);
}

void narrow_to_bytes(const float* from, uint8_t* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_unsigned)(from, to, count);
}

void narrow_to_signed_bytes(const float* from, int8_t* to, int64_t count) {
  HWY_DYNAMIC_DISPATCH(narrow_signed)(from, to, count);
}

void narrow_to_bool(const float* from, uint8_t* to, int64_t count) { HWY_DYNAMIC_DISPATCH(narrow)(from, to, count); }

}  // namespace autograph::simd
#endif  // HWY_ONCE
