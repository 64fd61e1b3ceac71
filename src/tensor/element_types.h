// Maps dtypes to C++ element types and back, and calls a template for the dtype found at run time.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "autograph/dtype_of.h"
#include "base/check.h"

namespace autograph {

/// A list of element types.
template <class... Ts>
struct TypeList {};

/// Tag that carries an element type into a generic lambda: `[&]<class T>(TypeTag<T>) {...}`.
template <class T>
struct TypeTag {
  using type = T;
};

// Type lists that match the sets of autograph/dtype.h.
using FloatTypes = TypeList<float, double, Half, BFloat16>;
using SignedTypes = TypeList<int8_t, int16_t, int32_t, int64_t>;
using UnsignedTypes = TypeList<uint8_t, uint16_t, uint32_t, uint64_t>;
using IndexTypes = TypeList<int32_t, int64_t>;

template <class... Lists>
struct ConcatTypes;
template <class... As>
struct ConcatTypes<TypeList<As...>> {
  using type = TypeList<As...>;
};
template <class... As, class... Bs, class... Rest>
struct ConcatTypes<TypeList<As...>, TypeList<Bs...>, Rest...> : ConcatTypes<TypeList<As..., Bs...>, Rest...> {};
/// One list from several.
template <class... Lists>
using Concat = typename ConcatTypes<Lists...>::type;

using IntegerTypes = Concat<SignedTypes, UnsignedTypes>;
using NumericTypes = Concat<FloatTypes, IntegerTypes>;
using SmallTypes = TypeList<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ, Float8E8M0, Float4E2M1,
                            Float6E2M3, Float6E3M2, Int4, UInt4, Int2, UInt2>;

/// Is T one of our floats narrower than float?
template <class T>
inline constexpr bool kIsSmallFloat = false;
template <class Bits, int E, int M, int B, Specials K>
inline constexpr bool kIsSmallFloat<SmallFloat<Bits, E, M, B, K>> = true;
template <>
inline constexpr bool kIsSmallFloat<BFloat16> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8E8M0> = true;

template <class T>
inline constexpr bool kIsSmallInt = false;
template <int W, bool S>
inline constexpr bool kIsSmallInt<SmallInt<W, S>> = true;

/// Is T a real floating-point element type, whatever its width?
template <class T>
inline constexpr bool kIsFloat = std::is_floating_point_v<T> || kIsSmallFloat<T>;

/// The type in which arithmetic on T is done: float for narrow floats, int for narrow integers, T itself otherwise.
template <class T>
using ComputeType = std::conditional_t<kIsSmallFloat<T>, float, std::conditional_t<kIsSmallInt<T>, int, T>>;

/// The type in which the reference accumulates sums of T: double for real floats, T otherwise.
template <class T>
using AccumulateType = std::conditional_t<kIsFloat<T>, double, T>;

/// Calls `f(TypeTag<T>{})` for the T in the list whose dtype is `dtype`; false when the list has none.
template <class... Ts, class F>
bool try_dispatch(TypeList<Ts...>, DType dtype, F&& f) {
  return ((kDTypeOf<Ts> == dtype ? (f(TypeTag<Ts>{}), true) : false) || ...);
}

/// As try_dispatch, for callers whose op schema already limits the dtype: anything else is a bug.
template <class List, class F>
void dispatch(DType dtype, F&& f) {
  const bool found = try_dispatch(List{}, dtype, f);
  AG_CHECK(found, "dtype {} is not in the dispatched list", to_string(dtype));
}

}  // namespace autograph
