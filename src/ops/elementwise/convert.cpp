#include "ops/elementwise/convert.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "autograph/error.h"

namespace autograph {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// True when from_chars consumed all of `text`; numbers out of range become 0 or infinite, as rounding would have it.
template <class T>
bool read_all(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

template <class T>
std::string format_real(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  return fmt::format("{}", value);
}

}  // namespace

ParsedNumber parse_number_text(const std::string& text) {
  std::string_view digits = trimmed(text);
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') digits.remove_prefix(1);
  ParsedNumber number;
  if (read_all(digits, number.integer)) {
    // "-0" is a float's zero: as an integer it would lose its sign.
    number.whole = number.integer != 0 || digits[0] != '-';
    number.real = -0.0;
    return number;
  }
  if (read_all(digits, number.natural)) {
    number.whole = true;
    number.large = true;
    return number;
  }
  if (!read_all(digits, number.real)) {
    throw ValueError(fmt::format("[cast] element: expected a number, got '{}'", text));
  }
  return number;
}

std::string format_number(float value) { return format_real(value); }
std::string format_number(double value) { return format_real(value); }
std::string format_number(int64_t value) { return fmt::format("{}", value); }
std::string format_number(uint64_t value) { return fmt::format("{}", value); }

}  // namespace autograph
