#include "backends/cuda/capture.h"

#include <fmt/core.h>

#include <span>

#include "autograph/error.h"
#include "backends/cuda/machine.h"
#include "backends/cuda/stream.h"

namespace autograph::cuda {
namespace {

thread_local Capture* capture_of_thread = nullptr;

class CapturedGraph : public CapturedWork {
 public:
  CapturedGraph(const Machine& machine, CUgraphExec graph, std::shared_ptr<FaultArea> faults,
                std::shared_ptr<const OpNames> ops)
      : machine_(machine), graph_(graph), faults_(std::move(faults)), ops_(std::move(ops)) {}
  ~CapturedGraph() override {
    machine_.make_current();
    driver().cuGraphExecDestroy(graph_);
  }
  CapturedGraph(const CapturedGraph&) = delete;
  CapturedGraph& operator=(const CapturedGraph&) = delete;

  void replay(Stream& stream) override { static_cast<CudaStream&>(stream).launch_graph(graph_, faults_, ops_); }

 private:
  const Machine& machine_;
  CUgraphExec graph_;
  std::shared_ptr<FaultArea> faults_;
  std::shared_ptr<const OpNames> ops_;
};

}  // namespace

FaultArea::FaultArea(const Machine& machine)
    : memory_(allocate_pinned(machine, gpu::kMaxFaults * sizeof(gpu::Fault))) {}

const void* FaultArea::expect(const std::string& message) {
  return static_cast<const gpu::Fault*>(memory_.get()) + messages_.add(message);
}

std::string FaultArea::take_first() {
  const std::span<gpu::Fault> faults(static_cast<gpu::Fault*>(memory_.get()), messages_.size());
  std::string first = messages_.first(faults);
  if (!first.empty()) std::fill(faults.begin(), faults.end(), gpu::Fault());
  return first;
}

// All memory is there before: nothing can be allocated while a thread captures.
Capture::Capture(const Machine& machine, CUstream origin)
    : machine_(machine),
      origin_(origin),
      faults_(std::make_shared<FaultArea>(machine)),
      ops_(std::make_shared<OpNames>()) {
  machine.check(driver().cuStreamBeginCapture_v2(origin, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  is_open_ = true;
  capture_of_thread = this;
}

Capture::~Capture() {
  if (!is_open_) return;
  capture_of_thread = nullptr;
  CUgraph graph = nullptr;
  driver().cuStreamEndCapture(origin_, &graph);
  if (graph) driver().cuGraphDestroy(graph);
}

Capture* Capture::of_this_thread() { return capture_of_thread; }

void Capture::refuse(std::string_view what) const {
  throw DeviceError(fmt::format("[{}] capture: {} cannot be part of a graph", machine_.name(), what));
}

const void* Capture::expect_fault(const std::string& message) {
  if (faults_->is_full()) refuse("more kernels that check indices");
  return faults_->expect(message);
}

std::unique_ptr<CapturedWork> Capture::finish() {
  capture_of_thread = nullptr;
  is_open_ = false;
  CUgraph graph = nullptr;
  machine_.check(driver().cuStreamEndCapture(origin_, &graph), "cuStreamEndCapture");
  CUgraphExec ready = nullptr;
  const CUresult code = driver().cuGraphInstantiateWithFlags(&ready, graph, 0);
  driver().cuGraphDestroy(graph);
  machine_.check(code, "cuGraphInstantiate");
  return std::make_unique<CapturedGraph>(machine_, ready, faults_, ops_);
}

}  // namespace autograph::cuda
