// Typed attributes of nodes: a small map from names to values, kept sorted so that equal maps print and hash equally.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "autograph/error.h"
#include "autograph/tensor.h"

namespace autograph {

class Graph;

/// A nested graph, shared and immutable.
using GraphRef = std::shared_ptr<const Graph>;

/// The types an attribute can have, in the order of AttributeValue's alternatives.
enum class AttributeType : uint8_t {
  integer,   ///< int64_t
  real,      ///< float
  text,      ///< std::string
  integers,  ///< std::vector<int64_t>
  reals,     ///< std::vector<float>
  texts,     ///< std::vector<std::string>
  dtype,     ///< DType
  tensor,    ///< Tensor
  graph,     ///< GraphRef
};

/// The value of an attribute.
using AttributeValue = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                                    std::vector<std::string>, DType, Tensor, GraphRef>;

/// The type of a value.
inline AttributeType type_of(const AttributeValue& value) { return static_cast<AttributeType>(value.index()); }

/// "integer", "reals", ...
std::string_view to_string(AttributeType type);

/// Same type and same value; tensors by content, graphs by structural hash.
bool equal(const AttributeValue& a, const AttributeValue& b);

/// Reading an attribute that is absent or has another type. Schemas rule it out for nodes of a graph; import functions,
/// which see the attributes of a file, may meet it.
class AttributeAccessError : public InternalError {
 public:
  using InternalError::InternalError;
};

/// A sorted map of attributes.
class Attributes {
 public:
  using Entry = std::pair<std::string, AttributeValue>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) {
    for (const Entry& entry : entries) set(entry.first, entry.second);
  }

  /// Sets or replaces.
  void set(std::string_view name, AttributeValue value);
  /// Removes when present.
  void erase(std::string_view name);
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The value, or null.
  const AttributeValue* find(std::string_view name) const;
  /// The value as T, or null when it is absent; throws AttributeAccessError when it has another type.
  template <class T>
  const T* find_as(std::string_view name) const {
    const AttributeValue* value = find(name);
    if (!value) return nullptr;
    const T* typed = std::get_if<T>(value);
    if (!typed) throw_wrong_type(name, *value);
    return typed;
  }
  /// The value as T; throws AttributeAccessError when it is absent or has another type.
  template <class T>
  const T& get(std::string_view name) const {
    const T* value = find_as<T>(name);
    if (!value) throw_missing(name);
    return *value;
  }
  /// The value as T, or `otherwise` when absent.
  template <class T>
  T get_or(std::string_view name, T otherwise) const {
    const T* value = find_as<T>(name);
    return value ? *value : otherwise;
  }
  /// An integer attribute; throws InternalError when absent.
  int64_t integer(std::string_view name) const { return get<int64_t>(name); }
  /// An integer attribute read as yes or no.
  bool flag(std::string_view name) const { return get_or<int64_t>(name, 0) != 0; }
  /// A real attribute; throws InternalError when absent.
  float real(std::string_view name) const { return get<float>(name); }
  /// A text attribute; throws InternalError when absent.
  const std::string& text(std::string_view name) const { return get<std::string>(name); }
  /// A list of integers; throws InternalError when absent.
  const std::vector<int64_t>& integers(std::string_view name) const { return get<std::vector<int64_t>>(name); }

  size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  [[noreturn]] static void throw_missing(std::string_view name);
  [[noreturn]] static void throw_wrong_type(std::string_view name, const AttributeValue& value);
  std::vector<Entry> entries_;
};

/// The same names with equal values.
bool equal(const Attributes& a, const Attributes& b);

}  // namespace autograph
