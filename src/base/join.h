// Joins the elements of a range into one string.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace autograph {

/// "a,b,c" for the elements of `range`, each formatted with fmt.
template <class Range>
std::string join(const Range& range, std::string_view separator = ",") {
  std::string text;
  bool first = true;
  for (const auto& item : range) {
    if (!first) text += separator;
    first = false;
    text += fmt::format("{}", item);
  }
  return text;
}

/// "[a,b,c]".
template <class Range>
std::string bracketed(const Range& range) {
  return fmt::format("[{}]", join(range));
}

}  // namespace autograph
