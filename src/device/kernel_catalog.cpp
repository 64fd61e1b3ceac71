#include "autograph/kernel.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "device/kernel_judge.h"
#include "device/row_major_operands.h"

namespace autograph {
namespace {

bool all_row_major(const std::vector<Layout>& layouts) {
  return std::all_of(layouts.begin(), layouts.end(), [](Layout layout) { return layout == Layout::row_major; });
}

// Rough time of a kernel that says nothing of its own, in microseconds: a few GB/s and GFLOP/s, as plain loops have.
double plain_cost_us(const KernelCall& call) {
  constexpr double kBytesPerUs = 8e3;
  constexpr double kFlopsPerUs = 8e3;
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  return 1 + cost.bytes / kBytesPerUs + cost.flops / kFlopsPerUs;
}

}  // namespace

bool KernelVariant::is_row_major() const { return all_row_major(inputs) && all_row_major(outputs); }

std::string KernelCandidate::name() const {
  std::string text(kernel->name);
  if (!variant.name.empty()) text += " " + variant.name;
  if (variant.output(0) != Layout::row_major) text += fmt::format(" {}", to_string(variant.output(0)));
  return text;
}

KernelCatalog::KernelCatalog(std::vector<KernelDef> kernels, PrepareReorder reorder)
    : kernels_(std::move(kernels)), reorder_(reorder) {
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].op.empty())
      generic_.push_back(i);
    else
      by_op_[kernels_[i].op].push_back(i);
  }
}

std::vector<size_t> KernelCatalog::kernels_for(std::string_view op) const {
  std::vector<size_t> kernels;
  if (const auto own = by_op_.find(op); own != by_op_.end()) kernels = own->second;
  kernels.insert(kernels.end(), generic_.begin(), generic_.end());
  return kernels;
}

KernelCandidates KernelCatalog::candidates(const KernelCall& asked) const {
  CallReadings readings;
  KernelCall call = asked;
  call.readings = &readings;
  KernelCandidates result;
  bool has_plain = false;
  for (const size_t i : kernels_for(call.op.name)) {
    const KernelDef& def = kernels_[i];
    std::string reason = def.why_not(call);
    if (!reason.empty()) {
      // Why a kernel for any op does not take this one is of interest only where nothing else does.
      const bool is_news = !has_plain && (!def.op.empty() || result.candidates.empty());
      if (is_news) result.refusals.push_back(std::string(def.name) + ": " + reason);
      continue;
    }
    if (!def.variants) {
      KernelVariant plain;
      // What serves every op, plainly, stands behind whatever else there is.
      const bool stands_by = has_plain || (def.op.empty() && !result.candidates.empty());
      if (stands_by)
        plain.cost_us = kLastResortUs * static_cast<double>(result.candidates.size());
      else if (!result.candidates.empty())
        plain.cost_us = plain_cost_us(call);
      has_plain = true;
      result.candidates.push_back({&def, std::move(plain)});
      continue;
    }
    for (KernelVariant& variant : def.variants(call)) {
      if (reorder_ || variant.is_row_major()) result.candidates.push_back({&def, std::move(variant)});
    }
  }
  return result;
}

Prepared KernelCatalog::prepare(KernelCall call, const KernelCandidate& candidate) const {
  call.variant = &candidate.variant;
  return candidate.kernel->prepare(call);
}

KernelSelection KernelCatalog::select(const KernelCall& call, KernelJudge* judge, Reorders reorders) const {
  KernelSelection selection;
  KernelCandidates all = candidates(call);
  if (judge) judge->drop_wrong(call, all);
  selection.refusals = std::move(all.refusals);
  if (reorders == Reorders::none) {
    std::erase_if(all.candidates, [](const KernelCandidate& candidate) { return !candidate.variant.is_row_major(); });
  }
  for (KernelCandidate& candidate : all.candidates) {
    candidate.variant.cost_us += estimated_reorders_us(call, candidate.variant);
  }
  std::stable_sort(
      all.candidates.begin(), all.candidates.end(),
      [](const KernelCandidate& a, const KernelCandidate& b) { return a.variant.cost_us < b.variant.cost_us; });
  for (const KernelCandidate& candidate : all.candidates) {
    Prepared prepared = prepare(call, candidate);
    const std::string fault = judge && prepared.kernel ? judge->judge(call, candidate, *prepared.kernel) : "";
    if (!fault.empty()) prepared = {nullptr, fault};
    if (prepared.kernel) {
      selection.name = candidate.name();
      selection.kernel = with_row_major_operands(*this, call, candidate.variant, std::move(prepared.kernel));
      return selection;
    }
    selection.refusals.push_back(fmt::format("{}: {}", candidate.name(), prepared.refusal));
  }
  return selection;
}

bool KernelCatalog::accepts(const KernelCall& asked) const {
  const auto own = by_op_.find(asked.op.name);
  if (own == by_op_.end()) return false;
  CallReadings readings;
  KernelCall call = asked;
  call.readings = &readings;
  // Passes ask about one convolution after the other, which most kernels of a fused node refuse: the one that took the
  // call before is asked first.
  static thread_local size_t last = std::numeric_limits<size_t>::max();
  const auto takes = [&](size_t i) { return kernels_[i].why_not(call).empty(); };
  if (last < kernels_.size() && kernels_[last].op == call.op.name && takes(last)) return true;
  const auto taker = std::find_if(own->second.begin(), own->second.end(), takes);
  if (taker == own->second.end()) return false;
  last = *taker;
  return true;
}

std::unique_ptr<Kernel> KernelCatalog::prepare_reorder(const ReorderCall& call) const {
  AG_CHECK(reorder_, "this device has no reorder from {} to {}", to_string(call.from), to_string(call.to));
  return reorder_(call);
}

}  // namespace autograph
