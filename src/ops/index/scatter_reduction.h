// How an update meets what is there. The reference and the kernels share it.
#pragma once

#include <cmath>
#include <string_view>
#include <type_traits>

#include "tensor/element_types.h"

namespace autograph {

enum class ScatterReduction { none, add, mul, max, min };

/// Calls `f.template operator()<R>()` with the reduction of that name.
template <class F>
void dispatch_reduction(std::string_view name, F&& f) {
  if (name == "add") return f.template operator()<ScatterReduction::add>();
  if (name == "mul") return f.template operator()<ScatterReduction::mul>();
  if (name == "max") return f.template operator()<ScatterReduction::max>();
  if (name == "min") return f.template operator()<ScatterReduction::min>();
  f.template operator()<ScatterReduction::none>();
}

// NaN wins in max and min, as everywhere.
template <class C>
C larger_update(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return a < b ? b : a;
}

template <class C>
C smaller_update(C a, C b) {
  if constexpr (std::is_floating_point_v<C>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b < a ? b : a;
}

/// What becomes of element `a` when update `b` meets it. Integers wrap: arithmetic on the unsigned type of the same
/// width (widened, so that promotion cannot overflow).
template <ScatterReduction R, class T>
T combine(T a, T b) {
  if constexpr (R == ScatterReduction::none) {
    return b;
  } else if constexpr (std::is_same_v<T, bool>) {
    return R == ScatterReduction::add || R == ScatterReduction::max ? (a || b) : (a && b);
  } else {
    using C = ComputeType<T>;
    if constexpr (R == ScatterReduction::max)
      return static_cast<T>(larger_update<C>(static_cast<C>(a), static_cast<C>(b)));
    if constexpr (R == ScatterReduction::min)
      return static_cast<T>(smaller_update<C>(static_cast<C>(a), static_cast<C>(b)));
    using Ring = std::conditional_t<kIsFloat<T>, C, uint64_t>;
    const auto x = static_cast<Ring>(static_cast<C>(a));
    const auto y = static_cast<Ring>(static_cast<C>(b));
    return static_cast<T>(R == ScatterReduction::add ? static_cast<Ring>(x + y) : static_cast<Ring>(x * y));
  }
}

}  // namespace autograph
