// The executor of plans on devices with streams: what record_steps() gives.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "autograph/device.h"
#include "runtime/launchable.h"
#include "runtime/observe/finite_check.h"
#include "runtime/streams/overlapped_copies.h"
#include "runtime/streams/step_pieces.h"

namespace autograph {

/// See executor.h, too.
class StreamRun final : public Launchable {
 public:
  StreamRun(const Device& device, std::shared_ptr<const CompiledPlan> compiled);

  void bind_arena(Tensor arena) override;
  void bind_input(size_t i, const Tensor& tensor) override;
  void bind_input(size_t i, const Datum& datum) override;
  void bind_input(size_t i, const void* data) override;
  void bind_output(size_t k, Tensor& tensor) override;
  void bind_output(size_t k, void* data) override;
  void launch(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) override;
  double time_us(const RunOptions& options, const std::shared_ptr<MemoryMeter>& meter) override;
  Datum take_output(size_t k) override;
  void release() override;

 private:
  // An input or output: what the caller gave, and where kernels find it.
  struct Port {
    const Memory* home = nullptr;  // where steps want it: on the device, but for states that wait on the host
    Buffer given;                  // on the host or on the device
    Buffer copy;                   // of what lies elsewhere; allocated when first needed
    size_t bytes = 0;              // of what the caller gave: the slot knows them only where its shape is known
    bool is_copied = false;
    void* address() const { return is_copied ? copy.data() : given.data(); }
  };

  // Where the arena, the inputs and the outputs lay in launches, and what was captured of one of these.
  struct Placement {
    std::vector<const void*> addresses;
    int num_launches = 0;
    std::vector<StepPiece> pieces;  // all steps; empty: not yet, or nothing could be captured
  };

  // What is the same for all steps of one launch.
  struct Launch {
    const RunOptions& options;
    const std::shared_ptr<MemoryMeter>& meter;
  };

  void build_views();
  void make_streams();
  void bind(Port& port, const Buffer& given, size_t bytes, const char* what, size_t number);
  void* weight(size_t i) const;
  void* address_of(SlotIndex slot) const override;
  Datum datum_of(SlotIndex slot) const override;
  Buffer buffer_of(SlotIndex slot) const;
  Stream& stream_of(size_t step) { return *streams_[stream_of_[step]]; }
  void resolve_views();
  // Copies in, calls `work`, which enqueues the steps, and copies out; returns when all is over, whatever happens.
  // `overlaps`: some of it may be copied beside the steps.
  void run_around(bool overlaps, const std::function<void()>& work);
  void enqueue_inputs(bool overlaps);
  void enqueue_stages(size_t begin, size_t end, const Launch& launch);
  void start_steps(const Launch& launch);
  void enqueue_steps(size_t begin, size_t end, const Launch& launch);
  void enqueue_of_stage(const PlanStage& stage, size_t begin, size_t end, const Launch& launch);
  void join_streams(size_t width);
  void enqueue(size_t step, Stream& stream, const Launch& launch);
  void run_observed(const Launch& launch);
  void enqueue_outputs();
  // `with_copies`: also for those that the first stream may not wait for, as in launches that end early.
  void wait_for_all(bool with_copies = false);
  /// What a slot holds at worst; nothing where there is nothing to look at.
  Nonfinite find_nonfinite_in(SlotIndex slot);
  /// What lies where a slot is, in its layout, padding included, on the host.
  Tensor copy_of(SlotIndex slot);
  /// The value of a slot on the host in row-major order.
  Datum read_slot(SlotIndex slot);

  const Device& device_;
  StepCapture capture_;
  std::vector<Placement> placements_;   // a few, the one of the last launch first
  std::vector<const void*> addresses_;  // of this launch
  std::vector<Port> inputs_;
  std::vector<Port> outputs_;
  std::vector<Datum> datums_;   // inputs as they were given; only with dynamic steps
  std::vector<Buffer> staged_;  // by output; empty where it is not staged
  std::vector<SlotIndex> slot_of_view_;
  // The first one has all steps outside stages; no more than are worth using on the device.
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<std::unique_ptr<Event>> ends_;    // by stream
  std::vector<std::unique_ptr<Event>> events_;  // by step; null where nobody waits for it
  std::vector<uint32_t> stream_of_;             // by step
  std::unique_ptr<OverlappedCopies> copies_;
  std::unique_ptr<FiniteCheck> finite_;  // null until check_nan asks for it
};

}  // namespace autograph
