// Plain numbers beside values: constants of the other operand's dtype.
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "autograph/builder.h"
#include "base/check.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// Is `number` an integer that T has? Decided before it is cast: casts of others are undefined.
template <class T>
bool is_exact(double number) {
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  return number == std::trunc(number) && number >= static_cast<double>(std::numeric_limits<T>::min()) && number < end;
}
template <class T, std::integral Integer>
bool is_exact(Integer number) {
  return std::in_range<T>(number);
}

template <class T>
Tensor scalar_of(const Number& number) {
  return std::visit(
      [](auto value) {
        if constexpr (kIsFloat<T>) return Tensor::scalar<T>(static_cast<T>(static_cast<double>(value)));
        if constexpr (std::is_same_v<T, bool>) return Tensor::scalar<T>(value != 0);
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          AG_CHECK_USER(
              is_exact<T>(value), ValueError,
              "[scalar] number beside a value of {}: expected an integer from {} to {}, got {} (cast the value "
              "first: cast(x, DType::f32))",
              to_string(kDTypeOf<T>), std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), value);
          return Tensor::scalar<T>(static_cast<T>(value));
        }
      },
      number.value());
}

}  // namespace

Var scalar_like(Var like, Number value) {
  Tensor tensor;
  const bool found = try_dispatch(Concat<NumericTypes, TypeList<bool>>{}, like.dtype(),
                                  [&]<class T>(TypeTag<T>) { tensor = scalar_of<T>(value); });
  AG_CHECK_USER(found, TypeError, "[scalar] value beside a number: expected numbers or bool, got {}",
                to_string(like.type()));
  return constant_like(like, std::move(tensor));
}

}  // namespace autograph
