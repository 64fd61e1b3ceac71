#include "io/onnx/op_index.h"

#include <algorithm>
#include <unordered_map>

#include "io/onnx/proto.h"

namespace autograph::io {
namespace {

using Index = std::unordered_map<std::string, std::vector<OnnxForm>>;

Index build_index() {
  Index index;
  for (const OpDef* op : all_ops()) {
    for (const OnnxName& name : op->onnx) {
      if (!name.name.empty())
        index[qualified_name(std::string(name.domain), std::string(name.name))].push_back({op, &name});
    }
  }
  for (auto& [key, forms] : index) {
    std::sort(forms.begin(), forms.end(),
              [](const OnnxForm& a, const OnnxForm& b) { return a.name->since < b.name->since; });
  }
  return index;
}

}  // namespace

FormSearch find_form(const std::string& domain, const std::string& op_type, int opset) {
  static const Index index = build_index();
  const auto it = index.find(qualified_name(domain, op_type));
  if (it == index.end()) return {};
  FormSearch search{.form = std::nullopt, .earliest = it->second.front().name->since};
  for (const OnnxForm& form : it->second) {
    if (form.name->since <= opset) search.form = form;
  }
  return search;
}

}  // namespace autograph::io
