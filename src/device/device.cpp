#include "autograph/device.h"

#include <chrono>
#include <functional>

#include "base/check.h"
#include "device/host_threads.h"
#include "optimize/cost/cost_model.h"

namespace autograph {

double Stream::time_us(const std::function<void()>& enqueue) {
  const auto start = std::chrono::steady_clock::now();
  enqueue();
  wait();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

std::unique_ptr<CapturedWork> Stream::capture(const std::function<void()>& enqueue) {
  static_cast<void>(enqueue);
  return nullptr;
}

const Device& Device::with_precision(Precision precision) const {
  if (precision == Precision::f32) return *this;
  throw UnsupportedError(fmt::format("[compile] precision: expected f32 on device '{}', got {} (cpu has it)", name(),
                                     to_string(precision)));
}

const HostThreads& Device::host_threads() const { return HostThreads::none(); }

std::unique_ptr<CostModel> Device::cost_model() const { return nullptr; }

std::optional<double> Device::latency_us(const Graph&, const Schedule&) const { return std::nullopt; }

}  // namespace autograph
