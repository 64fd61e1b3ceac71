// Streams and events of a CUDA device.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/device.h"
#include "backends/cuda/capture.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

/// A mark in a stream.
class CudaEvent : public Event {
 public:
  /// Whether the device notes when it came there, which costs a little.
  enum class Clock : uint8_t { off, on };
  CudaEvent(const Machine& machine, Clock clock);
  ~CudaEvent() override;
  CudaEvent(const CudaEvent&) = delete;
  CudaEvent& operator=(const CudaEvent&) = delete;
  CUevent get() const { return event_; }

 private:
  const Machine& machine_;
  CUevent event_ = nullptr;
};

/// A kernel to be enqueued: groups are numbered along one axis.
struct KernelLaunch {
  CUfunction function = nullptr;
  unsigned groups = 0;
  unsigned group_size = 0;
  std::span<const void* const> pointers;  ///< Its parameters.
  std::string_view op;                    ///< For messages.
};

class CudaStream : public Stream {
 public:
  explicit CudaStream(const Machine& machine);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  const Machine& machine() const { return machine_; }
  /// For calls of libraries, which note_op() goes with.
  CUstream get() const { return stream_; }
  const Memory* memory() const override { return &machine_.memory(); }
  void record(Event& event) override;
  void wait_for(const Event& event) override;
  /// Throws ValueError, too, where a kernel has found a fault since the last wait.
  void wait() override;
  std::unique_ptr<CapturedWork> capture(const std::function<void()>& enqueue) override;
  /// By the clock of the device, between two events. A kernel that does nothing for a while comes first, so that what
  /// is enqueued is there when the device comes to it, and its launches do not count.
  double time_us(const std::function<void()>& enqueue) override;

  void launch(const KernelLaunch& kernel);
  /// A captured graph, whose faults wait() looks at.
  void launch_graph(CUgraphExec graph, std::shared_ptr<FaultArea> faults, std::shared_ptr<const OpNames> ops);
  void write(CUdeviceptr to, const void* from_host, size_t bytes);
  void read(void* to_host, CUdeviceptr from, size_t bytes);
  void copy(CUdeviceptr to, CUdeviceptr from, size_t bytes);
  /// The address of two i64 that are 0: a kernel that is enqueued next sets the first to 1 where this has happened, the
  /// second to the number that the message ends with. May wait.
  const void* expect_fault(const std::string& message);
  /// What is enqueued next is for this op.
  void note_op(std::string_view op);
  /// cuDNN's handle for this stream, made when first asked for. Only where cuDNN is there.
  cudnnHandle_t dnn();

 private:
  // A copy that has come as far as page-locked memory.
  struct Landing {
    void* to;
    const void* from;
    size_t bytes;
  };
  struct Replay {
    std::shared_ptr<FaultArea> faults;
    std::shared_ptr<const OpNames> ops;
  };

  void refuse_while_capturing(std::string_view what) const;
  void end_wait(CUresult code);
  void check(CUresult code, std::string_view what) const;
  std::string ops_in_flight(const std::vector<Replay>& replays) const;
  void hold();

  const Machine& machine_;
  CUstream stream_;
  Staging staging_;
  std::vector<Landing> landings_;
  std::unique_ptr<FaultArea> faults_;  // made when first needed
  std::vector<Replay> replays_;        // since the last wait
  OpNames ops_;                        // likewise
  std::unique_ptr<CudaEvent> begin_, end_;
  std::shared_ptr<const Module> holder_;  // made when first needed
  cudnnHandle_t dnn_ = nullptr;
};

}  // namespace autograph::cuda
