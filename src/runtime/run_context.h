// The executor of plans on the host: the arena, views into it for every step, kernel states; streams are threads.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/launchable.h"
#include "runtime/observe/finite_check.h"
#include "runtime/threads/stream_sync.h"

namespace autograph {

class RunContext final : public Launchable {
 public:
  explicit RunContext(std::shared_ptr<const CompiledPlan> compiled);

  void bind_arena(Tensor arena) override;
  void bind_input(size_t i, const Tensor& tensor) override;
  void bind_input(size_t i, const Datum& datum) override;
  void bind_input(size_t i, const void* data) override;
  void bind_output(size_t k, Tensor& tensor) override { bind_output(k, tensor.mutable_raw()); }
  void bind_output(size_t k, void* data) override;
  void launch(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) override;
  Datum take_output(size_t k) override;
  void release() override;

 private:
  using Clock = std::chrono::steady_clock;

  void build_views();
  struct PlacedView {
    uint32_t view = 0;  // in views_
    size_t offset = 0;  // in the arena or the caller's tensor
  };
  void patch(const std::vector<PlacedView>& views, void* data);
  void run_range(size_t begin, size_t end, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_in_turn(size_t begin, size_t end, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_stage(const PlanStage& stage, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_stream(const std::vector<uint32_t>& steps, bool may_spin, const RunOptions& options,
                  const std::shared_ptr<MemoryMeter>& meter) noexcept;
  [[noreturn]] void rethrow_from(size_t number);
  void run_step(size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  void run_fixed(size_t number);
  void run_observed(size_t number, const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter);
  Nonfinite find_nonfinite_in(SlotIndex s) const;
  /// The value of a slot in row-major order; borrows where it lies so.
  Datum read_slot(SlotIndex s) const;
  Tensor gathered_rows(SlotIndex s) const;
  void copy_outputs();
  void* address_of(SlotIndex slot) const override;
  Datum datum_of(SlotIndex slot) const override;

  std::vector<PlacedView> arena_views_;
  std::vector<std::vector<PlacedView>> input_views_;   // views that follow input i
  std::vector<std::vector<PlacedView>> output_views_;  // views that follow output k
  std::vector<void*> input_data_;
  std::vector<void*> output_data_;
  std::vector<Tensor> staged_;               // by output; empty where it is not staged
  std::vector<Datum> input_data_as_datums_;  // only with dynamic steps or non-tensor inputs
  std::unique_ptr<StreamSync> sync_;         // null when the plan has no streams
  Clock::time_point run_start_;
  NodeWatch* node_watch_ = nullptr;      // of the thread that launched
  std::unique_ptr<FiniteCheck> finite_;  // null until check_nan asks for it
};

}  // namespace autograph
