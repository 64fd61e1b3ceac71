// A nested graph's plan and a launchable of it, for many runs on memory of the caller's choice.
#pragma once

#include <memory>

#include "engine/executable.h"
#include "graph/nested/planned_body.h"

namespace autograph {

class PlanSession : public PlannedSession {
 public:
  /// On an arena of the executable's, given back in the end.
  static std::unique_ptr<PlanSession> on_own_arena(const Executable::Impl& impl, std::shared_ptr<PlanEntry> entry);
  /// On an arena that bind_memory() tells.
  static std::unique_ptr<PlannedSession> on_given_arena(const Executable::Impl& impl, std::shared_ptr<PlanEntry> entry);

  PlanSession(const Executable::Impl& impl, std::shared_ptr<PlanEntry> entry, std::shared_ptr<Launchable> launchable,
              bool is_lent);
  ~PlanSession() override;
  PlanSession(const PlanSession&) = delete;
  PlanSession& operator=(const PlanSession&) = delete;

  const Type& output_type(size_t k) const override;
  bool hands_on(size_t k, size_t i) const override;
  void bind_input(size_t i, const Datum& datum) { launchable_->bind_input(i, datum); }
  void bind_input(size_t i, const void* data) override { launchable_->bind_input(i, data); }
  void bind_output(size_t k, void* data) override { launchable_->bind_output(k, data); }
  void bind_memory(void* memory) override;
  void run() override;

 private:
  const Plan& plan() const { return entry_->compiled()->plan; }

  const Executable::Impl& impl_;
  std::shared_ptr<PlanEntry> entry_;
  std::shared_ptr<Launchable> launchable_;
  bool is_lent_;  // does it go back to the entry?
};

/// Can runs of this plan be sessions: does it take no memory but its arena, and are its outputs tensors whose extents
/// are known?
bool is_all_planned(const CompiledPlan& compiled);

}  // namespace autograph
