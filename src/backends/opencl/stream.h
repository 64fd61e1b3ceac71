// Streams and events of an OpenCL device: queues in order, and markers in them.
#pragma once

#include <functional>

#include "autograph/device.h"
#include "backends/gpu/faults.h"
#include "backends/opencl/machine.h"

namespace autograph::opencl {

class OpenClEvent : public Event {
 public:
  ~OpenClEvent() override;
  /// Takes a reference from who calls.
  void set(cl_event event);
  cl_event get() const { return event_; }

 private:
  cl_event event_ = nullptr;
};

class OpenClStream : public Stream {
 public:
  explicit OpenClStream(const Machine& machine) : machine_(machine), queue_(machine.new_queue()) {}
  ~OpenClStream() override;

  const Machine& machine() const { return machine_; }
  cl_command_queue queue() const { return queue_; }
  const Memory* memory() const override { return &machine_.memory(); }
  void record(Event& event) override;
  void wait_for(const Event& event) override;
  /// Throws ValueError, too, where a kernel has found a fault since the last wait.
  void wait() override;
  /// The address of two i64 that are 0: a kernel that is enqueued next sets the first to 1 where this has happened, the
  /// second to the number that the message ends with. May wait.
  const void* expect_fault(const std::string& message);
  /// By the clock of the device, between two markers; by the host's where the device has none.
  double time_us(const std::function<void()>& enqueue) override;

 private:
  cl_event mark();
  void throw_faults();

  const Machine& machine_;
  cl_command_queue queue_;
  std::shared_ptr<void> faults_;       // made when first needed
  gpu::FaultMessages fault_messages_;  // of those that are used
};

}  // namespace autograph::opencl
