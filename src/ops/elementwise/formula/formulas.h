// The formulas on elements of tensors, where they mean what ops mean: floats as the C library has them, integers that
// wrap around, division by zero that gives 0.
#pragma once

#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "autograph/op_def.h"
#include "ops/elementwise/formula/formula_info.h"
#include "ops/elementwise/formula/number.h"
#include "ops/elementwise/formula/scalar_loops.h"

namespace autograph::formulas {

/// An integer with arithmetic that is defined for every value.
template <std::integral I>
struct Whole {
  Whole() = default;
  template <class N>
  explicit constexpr Whole(N number) : value(static_cast<I>(number)) {}
  explicit constexpr operator I() const { return value; }

  friend Whole operator+(Whole a, Whole b) { return Whole(wrapping_add(a.value, b.value)); }
  friend Whole operator-(Whole a, Whole b) { return Whole(wrapping_sub(a.value, b.value)); }
  friend Whole operator*(Whole a, Whole b) { return Whole(wrapping_mul(a.value, b.value)); }
  friend Whole operator/(Whole a, Whole b) { return Whole(defined_div(a.value, b.value)); }
  friend Whole operator-(Whole a) { return Whole(wrapping_sub(I(0), a.value)); }
  friend bool operator==(Whole a, Whole b) = default;
  friend auto operator<=>(Whole a, Whole b) = default;
  friend Whole abs(Whole a) { return a < Whole(0) ? -a : a; }
  friend Whole erf(Whole a) { return Whole(std::erf(static_cast<double>(a.value))); }

  I value = 0;
};

template <class T>
T select(bool condition, T a, T b) {
  return condition ? a : b;
}
template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(x);
  return false;
}
template <class T>
T at_least(T x, T bound) {
  return x < bound ? bound : x;
}
template <class T>
T at_most(T x, T bound) {
  return x > bound ? bound : x;
}
template <class T>
T max_nan(T a, T b) {
  return is_nan(a) ? a : is_nan(b) ? b : a < b ? b : a;
}
template <class T>
T min_nan(T a, T b) {
  return is_nan(a) ? a : is_nan(b) ? b : b < a ? b : a;
}
template <class T>
T mul_add(T a, T b, T c) {
  return a * b + c;
}
inline bool both(bool a, bool b) { return a && b; }
inline bool either(bool a, bool b) { return a || b; }

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Functions of the C library, under its names.
#define AG_OF_LIBRARY(NAME, FUNCTION) \
  template <std::floating_point T>    \
  T NAME(T x) {                       \
    return std::FUNCTION(x);          \
  }
AG_OF_LIBRARY(abs, fabs)
AG_OF_LIBRARY(sqrt, sqrt)
AG_OF_LIBRARY(exp, exp)
AG_OF_LIBRARY(exp_nonpositive, exp)
AG_OF_LIBRARY(expm1, expm1)
AG_OF_LIBRARY(expm1_nonpositive, expm1)
AG_OF_LIBRARY(log, log)
AG_OF_LIBRARY(log1p_unit, log1p)
AG_OF_LIBRARY(erf, erf)
AG_OF_LIBRARY(erfc, erfc)
AG_OF_LIBRARY(tanh, tanh)
AG_OF_LIBRARY(sin, sin)
AG_OF_LIBRARY(cos, cos)
AG_OF_LIBRARY(floor, floor)
AG_OF_LIBRARY(ceil, ceil)
AG_OF_LIBRARY(round, nearbyint)
#undef AG_OF_LIBRARY
template <std::floating_point T>
T pow(T a, T b) {
  return std::pow(a, b);
}

#include "ops/elementwise/formula/formulas-inl.h"

// The number that a formula computes with for an element.
template <class T>
struct NumberOf {
  using type = T;
};
template <std::integral T>
requires(!std::same_as<T, bool>) struct NumberOf<T> {
  using type = Whole<T>;
};

/// F as a functor for the scalar loops.
template <class F>
class Functor {
 public:
  explicit Functor(const Attributes& attributes) {
    for (size_t i = 0; i < F::kInfo.num_parameters(); ++i) parameters_[i] = attributes.real(F::kInfo.parameters[i]);
  }

  template <class T, class... More>
  auto operator()(const T& x, const More&... more) const {
    using N = typename NumberOf<T>::type;
    constexpr size_t kParameters = F::kInfo.num_parameters();
    if constexpr (kParameters == 2) {
      return F::of(N(x), N(more)..., N(parameters_[0]), N(parameters_[1]));
    } else if constexpr (kParameters == 1) {
      return F::of(N(x), N(more)..., N(parameters_[0]));
    } else {
      return F::of(N(x), N(more)...);
    }
  }

 private:
  float parameters_[2] = {};
};

/// The scalar loops of an op that F defines; all operands and the result have one dtype of `Types`.
template <class F, class Types>
constexpr ScalarLoopFn kLoops = same_type_loop<Functor<F>, F::kInfo.operands, Types>;

/// The same with a result of bool.
template <class F, class Types>
constexpr ScalarLoopFn kPredicateLoops = predicate_loop<Functor<F>, F::kInfo.operands, Types>;

}  // namespace autograph::formulas
