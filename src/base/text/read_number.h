// A whole text as one number.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

namespace autograph {

/// `text` as a number of this type, in base 10 for integers; nothing where it is something else, has anything before or
/// behind it (blanks, "+"), or does not fit.
template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace autograph
