#include "io/onnx/import/functions.h"

#include <algorithm>

#include "base/check.h"
#include "base/join.h"

namespace autograph::io {
namespace {

constexpr int kMaxCallDepth = 100;

std::string key_of(const std::string& domain, const std::string& name, const std::string& overload) {
  return normal_domain(domain) + "\n" + name + "\n" + overload;
}

}  // namespace

void throw_too_deep() {
  throw FormatError(fmt::format("[onnx] nested graphs: expected at most {} levels", kMaxGraphDepth));
}

Opsets read_opsets(const google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>& imports) {
  Opsets opsets;
  for (const auto& import : imports) {
    const std::string domain = normal_domain(import.domain());
    const std::string shown = domain.empty() ? "ai.onnx" : domain;
    AG_CHECK_USER(import.version() >= 1 && import.version() < 1'000'000, FormatError,
                  "[onnx] opset_import '{}': expected a version of 1 or more, got {}", shown, import.version());
    const auto version = static_cast<int>(import.version());
    const auto [entry, is_new] = opsets.emplace(domain, version);
    AG_CHECK_USER(is_new || entry->second == version, FormatError,
                  "[onnx] opset_import '{}': imported in versions {} and {}", shown, entry->second, version);
  }
  return opsets;
}

FunctionTable::FunctionTable(const onnx::ModelProto& model, const Opsets& model_opsets) {
  for (const auto& proto : model.functions()) {
    Function function{&proto, read_opsets(proto.opset_import()), attribute_defaults(proto)};
    function.opsets.insert(model_opsets.begin(), model_opsets.end());
    const bool is_new =
        functions_.emplace(key_of(proto.domain(), proto.name(), overload_of(proto)), std::move(function)).second;
    AG_CHECK_USER(is_new, FormatError, "[onnx] function '{}': defined twice",
                  qualified_name(proto.domain(), proto.name()));
  }
  if (!functions_.empty()) check_recursion();
}

const Function* FunctionTable::find(const onnx::NodeProto& node) const {
  if (functions_.empty()) return nullptr;
  const auto it = functions_.find(key_of(node.domain(), node.op_type(), overload_of(node)));
  return it == functions_.end() ? nullptr : &it->second;
}

void FunctionTable::check_recursion() const {
  // Longest chain of calls below each function, by depth-first search; depth 0 while unknown, -1 while on the path.
  std::map<const Function*, int> depths;
  const auto measure = [&](const auto& self, const Function& function, int level) -> int {
    const std::string name = qualified_name(function.proto->domain(), function.proto->name());
    AG_CHECK_USER(level <= kMaxCallDepth, BudgetError, "[onnx] function '{}': calls are nested deeper than {}", name,
                  kMaxCallDepth);
    int& known = depths[&function];
    AG_CHECK_USER(known >= 0, FormatError, "[onnx] function '{}': calls itself", name);
    if (known > 0) return known;
    known = -1;
    int deepest = 0;
    for_each_node(function.proto->node(), [&](const onnx::NodeProto& node) {
      if (const Function* callee = find(node)) deepest = std::max(deepest, self(self, *callee, level + 1));
    });
    AG_CHECK_USER(deepest < kMaxCallDepth, BudgetError, "[onnx] function '{}': calls are nested deeper than {}", name,
                  kMaxCallDepth);
    return depths[&function] = deepest + 1;
  };
  for (const auto& [key, function] : functions_) measure(measure, function, 1);
}

}  // namespace autograph::io
