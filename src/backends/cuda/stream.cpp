#include "backends/cuda/stream.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "autograph/error.h"
#include "backends/cuda/libraries/cudnn.h"
#include "base/join.h"
#include "base/stopwatch.h"

namespace autograph::cuda {
namespace {

// Some 20 us: what a few launches take on the host.
constexpr const char* kHoldSource = R"(extern "C" __global__ void hold() {
  const long long begin = clock64();
  while (clock64() - begin < 40000) {}
}
)";

// Ops that a message names.
constexpr size_t kMostNamed = 12;

}  // namespace

CudaEvent::CudaEvent(const Machine& machine, Clock clock) : machine_(machine) {
  machine.make_current();
  machine.check(driver().cuEventCreate(&event_, clock == Clock::on ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING),
                "cuEventCreate");
}

CudaEvent::~CudaEvent() {
  machine_.make_current();
  driver().cuEventDestroy_v2(event_);
}

CudaStream::CudaStream(const Machine& machine) : machine_(machine), stream_(machine.new_stream()), staging_(machine) {}

// What is under way uses memory that goes with the stream.
CudaStream::~CudaStream() {
  machine_.make_current();
  driver().cuStreamSynchronize(stream_);
  if (dnn_) cudnn().destroy_handle(dnn_);
  driver().cuStreamDestroy_v2(stream_);
}

void CudaStream::record(Event& event) {
  machine_.make_current();
  check(driver().cuEventRecord(static_cast<CudaEvent&>(event).get(), stream_), "cuEventRecord");
}

void CudaStream::wait_for(const Event& event) {
  machine_.make_current();
  check(driver().cuStreamWaitEvent(stream_, static_cast<const CudaEvent&>(event).get(), 0), "cuStreamWaitEvent");
}

void CudaStream::refuse_while_capturing(std::string_view what) const {
  if (Capture* capture = Capture::of_this_thread()) capture->refuse(what);
}

void CudaStream::wait() {
  refuse_while_capturing("a wait");
  machine_.make_current();
  end_wait(driver().cuStreamSynchronize(stream_));
}

// All is over, well or not.
void CudaStream::end_wait(CUresult code) {
  const auto landings = std::exchange(landings_, {});
  const auto replays = std::exchange(replays_, {});
  const std::string ops = code == CUDA_SUCCESS ? "" : ops_in_flight(replays);
  ops_.clear();
  std::string fault;
  if (faults_ && !faults_->empty()) {
    fault = faults_->take_first();
    faults_->clear();
  }
  for (const Replay& replay : replays) {
    const std::string more = replay.faults->take_first();
    if (fault.empty()) fault = more;
  }
  machine_.check(code, "cuStreamSynchronize" + ops);
  for (const Landing& landing : landings) std::memcpy(landing.to, landing.from, landing.bytes);
  staging_.reset();
  if (!fault.empty()) throw ValueError(fault);
}

// An error of any call may be that of a kernel that was enqueued before.
void CudaStream::check(CUresult code, std::string_view what) const {
  if (code != CUDA_SUCCESS) machine_.check(code, fmt::format("{}{}", what, ops_in_flight(replays_)));
}

// The device does not tell which kernel went wrong. Where each launch is waited for, the step is named.
std::string CudaStream::ops_in_flight(const std::vector<Replay>& replays) const {
  OpNames names = ops_;
  for (const Replay& replay : replays) names.insert(names.end(), replay.ops->begin(), replay.ops->end());
  const size_t count = names.size();
  if (count == 0) return "";
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const bool is_cut = names.size() > kMostNamed;
  if (is_cut) names.resize(kMostNamed);
  return fmt::format(" after {} kernels ({}{}; run it with CUDA_LAUNCH_BLOCKING=1 and the step is named)", count,
                     join(names, ", "), is_cut ? ", ..." : "");
}

// What cannot be captured is enqueued again as it is, and then works, or tells what is wrong: capturing is no reason
// for a run to fail. Besides what refuses by itself the driver may end a capture, as for what waits inside of a
// library, or have no memory for one more graph.
std::unique_ptr<CapturedWork> CudaStream::capture(const std::function<void()>& enqueue) {
  if (Capture::of_this_thread()) return nullptr;
  machine_.make_current();
  try {
    Capture capture(machine_, stream_);
    enqueue();
    return capture.finish();
  } catch (const DeviceError&) {
    return nullptr;
  } catch (const BudgetError&) {
    return nullptr;
  }
}

void CudaStream::hold() {
  if (!holder_) holder_ = machine_.modules().get(kHoldSource);
  check(driver().cuLaunchKernel(holder_->function("hold"), 1, 1, 1, 1, 1, 1, 0, stream_, nullptr, nullptr),
        "cuLaunchKernel");
}

double CudaStream::time_us(const std::function<void()>& enqueue) {
  machine_.make_current();
  if (!begin_) begin_ = std::make_unique<CudaEvent>(machine_, CudaEvent::Clock::on);
  if (!end_) end_ = std::make_unique<CudaEvent>(machine_, CudaEvent::Clock::on);
  hold();
  record(*begin_);
  const Stopwatch watch;
  enqueue();
  record(*end_);
  wait();
  const double host_us = watch.us();
  float ms = 0;
  check(driver().cuEventElapsedTime(&ms, begin_->get(), end_->get()), "cuEventElapsedTime");
  return ms > 0 ? static_cast<double>(ms) * 1e3 : host_us;
}

void CudaStream::note_op(std::string_view op) {
  if (Capture* capture = Capture::of_this_thread()) {
    capture->note(op);
  } else {
    ops_.push_back(op);
  }
}

void CudaStream::launch(const KernelLaunch& kernel) {
  machine_.make_current();
  note_op(kernel.op);
  thread_local std::vector<void*> parameters;
  parameters.clear();
  // The driver takes addresses of the values, and only reads them.
  for (const void* const& pointer : kernel.pointers) {
    parameters.push_back(const_cast<void*>(static_cast<const void*>(&pointer)));
  }
  check(driver().cuLaunchKernel(kernel.function, kernel.groups, 1, 1, kernel.group_size, 1, 1, 0, stream_,
                                parameters.data(), nullptr),
        "cuLaunchKernel");
}

void CudaStream::launch_graph(CUgraphExec graph, std::shared_ptr<FaultArea> faults,
                              std::shared_ptr<const OpNames> ops) {
  machine_.make_current();
  replays_.push_back({std::move(faults), std::move(ops)});
  check(driver().cuGraphLaunch(graph, stream_), "cuGraphLaunch");
}

// States that wait in page-locked memory are copied from and to where they are, by graphs, too.
void CudaStream::write(CUdeviceptr to, const void* from_host, size_t bytes) {
  machine_.make_current();
  if (machine_.memory().is_for_transfers(from_host, bytes)) {
    return check(driver().cuMemcpyHtoDAsync_v2(to, from_host, bytes, stream_), "cuMemcpyHtoD");
  }
  refuse_while_capturing("a copy from the host");
  if (void* staged = staging_.take(bytes)) {
    std::memcpy(staged, from_host, bytes);
    from_host = staged;
  }
  check(driver().cuMemcpyHtoDAsync_v2(to, from_host, bytes, stream_), "cuMemcpyHtoD");
}

void CudaStream::read(void* to_host, CUdeviceptr from, size_t bytes) {
  machine_.make_current();
  if (machine_.memory().is_for_transfers(to_host, bytes)) {
    return check(driver().cuMemcpyDtoHAsync_v2(to_host, from, bytes, stream_), "cuMemcpyDtoH");
  }
  refuse_while_capturing("a copy to the host");
  void* target = to_host;
  if (void* staged = staging_.take(bytes)) {
    landings_.push_back({to_host, staged, bytes});
    target = staged;
  }
  check(driver().cuMemcpyDtoHAsync_v2(target, from, bytes, stream_), "cuMemcpyDtoH");
}

void CudaStream::copy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  machine_.make_current();
  check(driver().cuMemcpyDtoDAsync_v2(to, from, bytes, stream_), "cuMemcpyDtoD");
}

const void* CudaStream::expect_fault(const std::string& message) {
  if (Capture* capture = Capture::of_this_thread()) return capture->expect_fault(message);
  if (!faults_) faults_ = std::make_unique<FaultArea>(machine_);
  if (faults_->is_full()) wait();
  return faults_->expect(message);
}

cudnnHandle_t CudaStream::dnn() {
  if (!dnn_) dnn_ = cudnn().new_handle(stream_);
  return dnn_;
}

}  // namespace autograph::cuda
