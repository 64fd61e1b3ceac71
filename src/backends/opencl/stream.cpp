#include "backends/opencl/stream.h"

#include <functional>

#include <fmt/core.h>

#include "autograph/error.h"
#include "base/stopwatch.h"

namespace autograph::opencl {

OpenClEvent::~OpenClEvent() {
  if (event_) api().clReleaseEvent(event_);
}

void OpenClEvent::set(cl_event event) {
  if (event_) api().clReleaseEvent(event_);
  event_ = event;
}

OpenClStream::~OpenClStream() {
  api().clFinish(queue_);
  api().clReleaseCommandQueue(queue_);
}

cl_event OpenClStream::mark() {
  cl_event event = nullptr;
  check(api().clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &event), "clEnqueueMarkerWithWaitList");
  return event;
}

// Flushed, because a queue that waits for another one does not make it begin.
void OpenClStream::record(Event& event) {
  static_cast<OpenClEvent&>(event).set(mark());
  check(api().clFlush(queue_), "clFlush");
}

void OpenClStream::wait_for(const Event& event) {
  cl_event mark = static_cast<const OpenClEvent&>(event).get();
  if (!mark) return;
  check(api().clEnqueueBarrierWithWaitList(queue_, 1, &mark, nullptr), "clEnqueueBarrierWithWaitList");
}

void OpenClStream::wait() {
  check(api().clFinish(queue_), "clFinish");
  if (!fault_messages_.empty()) throw_faults();
}

const void* OpenClStream::expect_fault(const std::string& message) {
  if (fault_messages_.is_full()) wait();
  if (!faults_) {
    const std::vector<gpu::Fault> none(gpu::kMaxFaults);
    faults_ = machine_.memory().allocate(gpu::kMaxFaults * sizeof(gpu::Fault));
    machine_.memory().write(faults_.get(), none.data(), gpu::kMaxFaults * sizeof(gpu::Fault), nullptr);
  }
  return static_cast<const gpu::Fault*>(faults_.get()) + fault_messages_.add(message);
}

void OpenClStream::throw_faults() {
  const gpu::FaultMessages messages = std::exchange(fault_messages_, {});
  std::vector<gpu::Fault> faults(messages.size());
  const size_t bytes = messages.size() * sizeof(gpu::Fault);
  machine_.memory().read(faults.data(), faults_.get(), bytes, nullptr);
  const std::string first = messages.first(faults);
  if (first.empty()) return;
  const std::vector<gpu::Fault> none(messages.size());
  machine_.memory().write(faults_.get(), none.data(), bytes, nullptr);
  throw ValueError(first);
}

double OpenClStream::time_us(const std::function<void()>& enqueue) {
  const Stopwatch watch;
  OpenClEvent begin;
  begin.set(mark());
  enqueue();
  OpenClEvent end;
  end.set(mark());
  wait();
  const double host_us = watch.us();
  cl_ulong from_ns = 0;
  cl_ulong to_ns = 0;
  const auto time_of = [](const OpenClEvent& event, cl_ulong& ns) {
    return api().clGetEventProfilingInfo(event.get(), CL_PROFILING_COMMAND_END, sizeof(ns), &ns, nullptr) == CL_SUCCESS;
  };
  if (!time_of(begin, from_ns) || !time_of(end, to_ns) || to_ns <= from_ns) return host_us;
  return static_cast<double>(to_ns - from_ns) / 1000;
}

}  // namespace autograph::opencl
