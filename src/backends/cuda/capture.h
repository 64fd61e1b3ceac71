// What is being captured to be replayed as one CUDA graph, and the memory in which kernels note faults.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/device.h"
#include "backends/cuda/libraries/abi.h"
#include "backends/gpu/faults.h"

namespace autograph::cuda {

class Machine;

/// Faults of the kernels of a stream between two waits, or of a graph: kernels write them straight into memory of the
/// host, so that looking whether there was one costs nothing.
class FaultArea {
 public:
  explicit FaultArea(const Machine& machine);
  bool is_full() const { return messages_.is_full(); }
  bool empty() const { return messages_.empty(); }
  /// Where the kernel that is enqueued next notes a fault with this message.
  const void* expect(const std::string& message);
  /// When nothing runs that may write: the first fault in words, "" where there is none; noted faults are forgotten.
  std::string take_first();
  /// The messages, too.
  void clear() { messages_.clear(); }

 private:
  std::shared_ptr<void> memory_;
  gpu::FaultMessages messages_;
};

/// Ops whose kernels were enqueued, for messages: names live as long as the program.
using OpNames = std::vector<std::string_view>;

/// While it lives, this thread captures what it enqueues.
class Capture {
 public:
  /// `origin` is the stream that the others are bound to by events.
  Capture(const Machine& machine, CUstream origin);
  /// Drops what was captured, unless finish() took it.
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  /// Null where this thread captures nothing.
  static Capture* of_this_thread();

  /// Ends it: `what` cannot be captured.
  [[noreturn]] void refuse(std::string_view what) const;
  /// As FaultArea::expect().
  const void* expect_fault(const std::string& message);
  void note(std::string_view op) { ops_->push_back(op); }

  /// What was captured, ready to be replayed.
  std::unique_ptr<CapturedWork> finish();

 private:
  const Machine& machine_;
  CUstream origin_;
  std::shared_ptr<FaultArea> faults_;
  std::shared_ptr<OpNames> ops_;
  bool is_open_ = false;
};

}  // namespace autograph::cuda
