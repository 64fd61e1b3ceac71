// A JSON value to build and print: objects keep the order in which members were added, so that a document reads in the
// order in which it is documented. Strings that are not UTF-8 (names from foreign files) get U+FFFD in place of the bad
// bytes; NaN and infinities, which JSON lacks, print as null.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace autograph {

/// One JSON value.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  /// null
  Json() = default;
  Json(bool value) : value_(value) {}                           // NOLINT: values convert on purpose, here and below
  Json(double value) : value_(value) {}                         // NOLINT
  Json(const char* value) : value_(std::string(value)) {}       // NOLINT
  Json(std::string value) : value_(std::move(value)) {}         // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}  // NOLINT
  template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
  Json(T value) : value_(static_cast<int64_t>(value)) {}  // NOLINT
  /// An array of whatever converts to Json.
  template <class T>
  Json(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}  // NOLINT
  Json(Array values) : value_(std::move(values)) {}                                    // NOLINT
  /// [] and {}.
  static Json array() { return Json(Array()); }
  static Json object() {
    Json json;
    json.value_ = Object();
    return json;
  }
  /// {"key": value, ...}
  static Json object(Object members) {
    Json json;
    json.value_ = std::move(members);
    return json;
  }

  /// Adds a member to an object; keys are not checked for repetition.
  Json& add(std::string key, Json value);
  /// Adds an element to an array.
  Json& push(Json value);
  /// The text; `indent` spaces per level, or one line when it is 0.
  std::string dump(int indent = 2) const;

 private:
  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
};

}  // namespace autograph
