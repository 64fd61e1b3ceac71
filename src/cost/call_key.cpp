#include "cost/call_key.h"

#include <fmt/core.h>

#include "autograph/op_def.h"
#include "base/hash.h"

namespace autograph {
namespace {

std::string describe_types(std::span<const Type> types) {
  std::string text;
  for (const Type& type : types) text += to_string(type) + ";";
  return text;
}

Hash128 hash_attributes(const Attributes& attributes) {
  // A graph with one node has a hash of its own for every value of an attribute; texts are enough for the others.
  Hasher hasher;
  for (const auto& [name, value] : attributes) {
    hasher.add(name);
    if (const auto* graph = std::get_if<GraphRef>(&value)) {
      hasher.add(structural_hash(**graph));
      continue;
    }
    std::visit(
        [&]<class T>(const T& v) {
          if constexpr (std::is_same_v<T, int64_t>) hasher.add(v);
          if constexpr (std::is_same_v<T, float>) hasher.add(fmt::format("{}", v));
          if constexpr (std::is_same_v<T, std::string>) hasher.add(v);
          if constexpr (std::is_same_v<T, DType>) hasher.add(to_string(v));
          if constexpr (std::is_same_v<T, Tensor>) hasher.add(v.content_hash());
          if constexpr (std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<float>> ||
                        std::is_same_v<T, std::vector<std::string>>) {
            for (const auto& element : v) hasher.add(fmt::format("{}", element));
          }
        },
        value);
  }
  return hasher.finish();
}

}  // namespace

std::string call_key(const KernelCall& call) {
  std::string constants;
  for (const Tensor& tensor : call.constants) constants += tensor.is_present() ? 'c' : '-';
  return fmt::format("{} {} {} {} {} t{}", call.op.name, to_string(hash_attributes(call.attributes)),
                     describe_types(call.inputs), describe_types(call.outputs), constants, call.threads);
}

std::string candidate_key(const KernelCandidate& candidate) {
  std::string layouts;
  for (const Layout layout : candidate.variant.inputs) layouts += fmt::format("{},", static_cast<int>(layout));
  return fmt::format("{} {}", candidate.name(), layouts);
}

}  // namespace autograph
