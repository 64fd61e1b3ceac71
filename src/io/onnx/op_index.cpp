#include "io/onnx/op_index.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "autograph/model_io.h"
#include "io/onnx/contrib/contrib.h"
#include "io/onnx/proto.h"

namespace autograph::io {
namespace {

using Index = std::unordered_map<std::string, std::vector<OnnxForm>>;

Index build_index() {
  Index index;
  const auto add = [&](const OpDef& op) {
    for (const OnnxName& name : op.onnx) {
      if (name.name.empty()) continue;
      index[qualified_name(std::string(name.domain), std::string(name.name))].push_back({&op, &name});
    }
  };
  for (const OpDef* op : all_ops()) add(*op);
  for (const ContribOp& op : contrib_ops()) add(op);
  for (auto& [key, forms] : index) {
    std::sort(forms.begin(), forms.end(),
              [](const OnnxForm& a, const OnnxForm& b) { return a.name->since < b.name->since; });
  }
  return index;
}

// Of all ops that there are now: programs may register more.
std::shared_ptr<const Index> current_index() {
  static std::mutex mutex;
  static std::shared_ptr<const Index> index;
  static size_t known = 0;
  const std::lock_guard lock(mutex);
  const size_t ops = all_ops().size();
  if (known != ops) index = std::make_shared<const Index>(build_index());
  known = ops;
  return index;
}

// All spellings of `op` outside the main domain, or all where the table of contrib ops has it.
void add_spellings(const OpDef& op, const ContribOp* contrib, std::vector<OtherDomainOp>& list) {
  for (const OnnxName& name : op.onnx) {
    if (name.name.empty() || (name.domain.empty() && !contrib)) continue;
    list.push_back({.name = name.name,
                    .domain = name.domain.empty() ? "ai.onnx" : name.domain,
                    .since = name.since,
                    .schema = &op,
                    .becomes = contrib ? contrib->becomes : std::vector<std::string_view>{op.name}});
  }
}

}  // namespace

FormSearch find_form(const std::string& domain, const std::string& op_type, int opset) {
  const std::shared_ptr<const Index> index = current_index();
  const auto it = index->find(qualified_name(domain, op_type));
  if (it == index->end()) return {};
  FormSearch search{.form = std::nullopt, .earliest = it->second.front().name->since};
  for (const OnnxForm& form : it->second) {
    if (form.name->since <= opset) search.form = form;
  }
  return search;
}

}  // namespace autograph::io

namespace autograph {

std::vector<OtherDomainOp> other_domain_ops() {
  std::vector<OtherDomainOp> list;
  for (const OpDef* op : all_ops()) io::add_spellings(*op, nullptr, list);
  for (const io::ContribOp& op : io::contrib_ops()) io::add_spellings(op, &op, list);
  std::sort(list.begin(), list.end(), [](const OtherDomainOp& a, const OtherDomainOp& b) {
    return std::tie(a.domain, a.name, a.since) < std::tie(b.domain, b.name, b.since);
  });
  return list;
}

}  // namespace autograph
