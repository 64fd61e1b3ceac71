#include "device/kernel_judge.h"

namespace autograph {

void KernelJudge::drop_wrong(const KernelCall& call, KernelCandidates& candidates) {
  const std::vector<std::string> faults = known_faults(call, candidates.candidates);
  std::vector<KernelCandidate> right;
  for (size_t i = 0; i < faults.size(); ++i) {
    if (faults[i].empty()) {
      right.push_back(std::move(candidates.candidates[i]));
    } else {
      candidates.refusals.push_back(candidates.candidates[i].name() + ": " + faults[i]);
    }
  }
  candidates.candidates = std::move(right);
}

}  // namespace autograph
