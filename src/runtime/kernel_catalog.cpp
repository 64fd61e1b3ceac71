#include "runtime/kernel_catalog.h"

#include <fmt/core.h>

namespace autograph {

KernelCatalog::KernelCatalog(std::vector<KernelDef> kernels) : kernels_(std::move(kernels)) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].op.empty())
      generic_.push_back(i);
    else
      by_op_[kernels_[i].op].push_back(i);
  }
}

KernelSelection KernelCatalog::select(const KernelCall& call) const {
  KernelSelection selection;
  const auto ask = [&](const KernelDef& def) {
    std::string reason = def.why_not(call);
    if (reason.empty()) {
      Prepared prepared = def.prepare(call);
      if (prepared.kernel) {
        selection.name = def.name;
        selection.kernel = std::move(prepared.kernel);
        return true;
      }
      reason = std::move(prepared.refusal);
    }
    selection.refusals.push_back(fmt::format("{}: {}", def.name, reason));
    return false;
  };
  if (const auto own = by_op_.find(call.op.name); own != by_op_.end()) {
    for (const size_t i : own->second) {
      if (ask(kernels_[i])) return selection;
    }
  }
  for (const size_t i : generic_) {
    if (ask(kernels_[i])) return selection;
  }
  return selection;
}

}  // namespace autograph
