#include "backends/reference/reference_device.h"

#include "autograph/reference_kernel.h"
#include "device/host_threads.h"
#include "runtime/run_context.h"
#include "runtime/threads/stream_threads.h"

namespace autograph {
namespace {

// Each kernel runs on one thread, streams on one each.
class StreamsAlone : public HostThreads {
 public:
  bool run_streams(int streams, int threads, FunctionRef<void(int)> work) const override {
    return StreamThreads::of_process().run(streams, threads, nullptr, work);
  }
};

class ReferenceDevice : public Device {
 public:
  ReferenceDevice() : Device("reference"), catalog_({reference_kernel()}) {}
  DeviceProperties properties() const override { return {.is_reference = true}; }
  const KernelCatalog& catalog() const override { return catalog_; }
  const HostThreads& host_threads() const override { return threads_; }
  std::shared_ptr<Launchable> record(std::shared_ptr<const CompiledPlan> plan) const override {
    return std::make_shared<RunContext>(std::move(plan));
  }

 private:
  KernelCatalog catalog_;
  StreamsAlone threads_;
};

}  // namespace

std::vector<std::string> reference_device_names() { return {"reference"}; }

std::unique_ptr<Device> make_reference(const std::string& name) {
  return name == "reference" ? std::make_unique<ReferenceDevice>() : nullptr;
}

}  // namespace autograph
