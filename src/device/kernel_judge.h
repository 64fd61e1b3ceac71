// Which kernels are trusted: asked when kernels are chosen, and once more when they have been prepared.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// Cost/attester.h has one that runs kernels. May be asked from several threads at once.
class KernelJudge {
 public:
  virtual ~KernelJudge() = default;
  /// Why candidates must not be taken as far as that is known, parallel to `candidates`; "" for the others.
  virtual std::vector<std::string> known_faults(const KernelCall& call,
                                                std::span<const KernelCandidate> candidates) = 0;
  /// Would judge() have to run the kernel?
  virtual bool has_to_run(const KernelCall& call, const KernelCandidate& candidate) = 0;
  /// Why the kernel, which was prepared from the candidate, must not be taken; "" when it may. A candidate that was
  /// refused is among known_faults() from then on.
  virtual std::string judge(const KernelCall& call, const KernelCandidate& candidate, const Kernel& kernel) = 0;

  /// Makes refusals of the candidates with known faults.
  void drop_wrong(const KernelCall& call, KernelCandidates& candidates);
};

}  // namespace autograph
