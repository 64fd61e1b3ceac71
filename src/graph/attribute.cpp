#include "autograph/attribute.h"

#include <algorithm>

#include "autograph/graph.h"
#include "base/check.h"

namespace autograph {
namespace {

struct NameLess {
  bool operator()(const Attributes::Entry& entry, std::string_view name) const { return entry.first < name; }
};

}  // namespace

std::string_view to_string(AttributeType type) {
  switch (type) {
    case AttributeType::integer: return "integer";
    case AttributeType::real: return "real";
    case AttributeType::text: return "text";
    case AttributeType::integers: return "integers";
    case AttributeType::reals: return "reals";
    case AttributeType::texts: return "texts";
    case AttributeType::dtype: return "dtype";
    case AttributeType::tensor: return "tensor";
    case AttributeType::graph: return "graph";
  }
  return "unknown";
}

bool equal(const AttributeValue& a, const AttributeValue& b) {
  if (a.index() != b.index()) return false;
  if (const auto* tensor = std::get_if<Tensor>(&a)) return tensor->bitwise_equal(std::get<Tensor>(b));
  if (const auto* graph = std::get_if<GraphRef>(&a)) {
    const GraphRef& other = std::get<GraphRef>(b);
    return *graph == other || structural_hash(**graph) == structural_hash(*other);
  }
  return std::visit(
      [&b]<class T>(const T& value) {
        if constexpr (std::is_same_v<T, Tensor> || std::is_same_v<T, GraphRef>)
          return false;
        else
          return value == std::get<T>(b);
      },
      a);
}

bool equal(const Attributes& a, const Attributes& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return x.first == y.first && equal(x.second, y.second); });
}

void Attributes::set(std::string_view name, AttributeValue value) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess());
  if (it != entries_.end() && it->first == name)
    it->second = std::move(value);
  else
    entries_.insert(it, {std::string(name), std::move(value)});
}

void Attributes::erase(std::string_view name) {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess());
  if (it != entries_.end() && it->first == name) entries_.erase(it);
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto it = std::lower_bound(entries_.begin(), entries_.end(), name, NameLess());
  return it != entries_.end() && it->first == name ? &it->second : nullptr;
}

void Attributes::throw_missing(std::string_view name) {
  throw AttributeAccessError(fmt::format("[attributes] '{}' is missing", name));
}

void Attributes::throw_wrong_type(std::string_view name, const AttributeValue& value) {
  throw AttributeAccessError(fmt::format("[attributes] '{}' has type {}", name, to_string(type_of(value))));
}

}  // namespace autograph
