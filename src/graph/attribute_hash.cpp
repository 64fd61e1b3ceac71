#include "graph/attribute_hash.h"

#include "autograph/graph.h"

namespace autograph {
namespace {

template <class T>
void add_list(Hasher& hasher, const std::vector<T>& list) {
  hasher.add(static_cast<int64_t>(list.size()));
  for (const T& item : list) {
    if constexpr (std::is_same_v<T, std::string>)
      hasher.add(std::string_view(item));
    else
      hasher.add(hash_bytes(&item, sizeof item));
  }
}

}  // namespace

void add_attribute(Hasher& hasher, const AttributeValue& value) {
  hasher.add(static_cast<int64_t>(value.index()));
  std::visit(
      [&hasher]<class T>(const T& v) {
        if constexpr (std::is_same_v<T, int64_t>)
          hasher.add(v);
        else if constexpr (std::is_same_v<T, float>)
          hasher.add(hash_bytes(&v, sizeof v));
        else if constexpr (std::is_same_v<T, std::string>)
          hasher.add(std::string_view(v));
        else if constexpr (std::is_same_v<T, DType>)
          hasher.add(static_cast<int64_t>(v));
        else if constexpr (std::is_same_v<T, Tensor>)
          hasher.add(v.content_hash());
        else if constexpr (std::is_same_v<T, GraphRef>)
          hasher.add(structural_hash(*v));
        else
          add_list(hasher, v);
      },
      value);
}

void add_attributes(Hasher& hasher, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    hasher.add(std::string_view(name));
    add_attribute(hasher, value);
  }
}

}  // namespace autograph
