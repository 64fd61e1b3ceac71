// Attestation: a kernel is trusted on this machine when one run of it, with the shapes, layouts, weights and threads of
// the plan, gave what the reference gives. Inputs are drawn from a seed, special values among them; of the outputs some
// elements are compared, which the reference computes from no more than they need, so that all of it takes about as
// long as a run. Where kernels may be run by fewer threads than they were made for, they are, too. What was found is
// remembered (see verdicts.h).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "accuracy/scaled_tensor.h"
#include "autograph/device.h"
#include "cost/verdicts.h"
#include "device/kernel_judge.h"

namespace autograph {

class Attester : public KernelJudge {
 public:
  /// Asked before a kernel is run, with a name of it and its call; false: it is trusted, and nothing is remembered.
  using MayRun = std::function<bool(std::string_view kernel)>;

  /// `runs`: is what is not known yet found out? On `device`; null: on the host. `may_run`: null: always.
  Attester(Verdicts& verdicts, const ErrorModel& model, bool runs, const Device* device = nullptr,
           MayRun may_run = nullptr)
      : verdicts_(verdicts), model_(model), runs_(runs), device_(device), may_run_(std::move(may_run)) {}

  std::vector<std::string> known_faults(const KernelCall& call, std::span<const KernelCandidate> candidates) override;
  bool has_to_run(const KernelCall& call, const KernelCandidate& candidate) override;
  std::string judge(const KernelCall& call, const KernelCandidate& candidate, const Kernel& kernel) override;

  /// Kernels that were run.
  size_t num_run() const { return num_run_; }

 private:
  std::string find_fault(const KernelCall& call, const KernelCandidate& candidate, const Kernel& kernel) const;
  std::string find_fault_of_smaller(const KernelCall& call, const KernelCandidate& candidate) const;
  std::optional<std::string> try_draws(const KernelCall& call, const KernelVariant& variant,
                                       const Kernel& kernel) const;

  Verdicts& verdicts_;
  const ErrorModel model_;
  const bool runs_;
  const Device* device_;
  const MayRun may_run_;
  std::atomic<size_t> num_run_ = 0;
};

/// Runs `kernel`, which was prepared for `call` from a candidate of `variant`, and compares: "" when it is right, or
/// when inputs that are drawn are none for it; else what it gave and what is right. Nothing when the reference cannot
/// tell in reasonable time. `device` as for Attester. Each `draw` has inputs of its own.
std::optional<std::string> find_wrong_element(const KernelCall& call, const KernelVariant& variant,
                                              const Kernel& kernel, const ErrorModel& model,
                                              const Device* device = nullptr, int draw = 0);

/// Can the reference compute the whole call in reasonable time?
bool is_small_for_reference(const KernelCall& call);

}  // namespace autograph
