// A plain number beside a value of a graph: `2 * x + 1`.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <variant>

namespace autograph {

/// A number as exact as it was written: integers of 64 bits do not go through double.
class Number {
 public:
  /// From every built-in number, and what converts to one.
  template <class T>
  requires std::convertible_to<T, double> Number(T value) {  // NOLINT: plain numbers stand beside values on purpose
    if constexpr (std::unsigned_integral<T>)
      value_ = uint64_t{value};
    else if constexpr (std::integral<T>)
      value_ = int64_t{value};
    else
      value_ = static_cast<double>(value);
  }

  /// The number as it was given.
  const std::variant<int64_t, uint64_t, double>& value() const { return value_; }

 private:
  std::variant<int64_t, uint64_t, double> value_;
};

}  // namespace autograph
