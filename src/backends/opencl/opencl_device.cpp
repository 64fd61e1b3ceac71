#include "backends/opencl/opencl_device.h"

#include <charconv>
#include <optional>
#include <set>

#include "autograph/error.h"
#include "autograph/executor.h"
#include "autograph/reference_kernel.h"

#ifdef AG_HAS_OPENCL
#include "backends/opencl/generated_kernel.h"
#include "backends/opencl/machine.h"
#include "backends/opencl/stream.h"
#endif

namespace autograph {
namespace {

constexpr std::string_view kName = "opencl";

// The number of the device that `name` names; nothing for other kinds of device.
std::optional<size_t> number_in(std::string_view name) {
  if (name == kName) return 0;
  if (!name.starts_with(kName) || name.size() < kName.size() + 2 || name[kName.size()] != ':') return std::nullopt;
  const std::string_view digits = name.substr(kName.size() + 1);
  size_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

#ifdef AG_HAS_OPENCL
namespace opencl {
namespace {

// Candidates are functions without data: each device has its own, so that there are only so many.
constexpr size_t kMaxDevices = 8;

template <size_t number>
std::string why_not(const KernelCall& call) {
  return why_not_generated(get_machine(number), call);
}

template <size_t number>
Prepared prepare(const KernelCall& call) {
  return prepare_generated(get_machine(number), call);
}

template <size_t... numbers>
KernelDef generated_kernel(size_t number, std::index_sequence<numbers...>) {
  static constexpr decltype(KernelDef::why_not) kWhyNot[] = {why_not<numbers>...};
  static constexpr decltype(KernelDef::prepare) kPrepare[] = {prepare<numbers>...};
  return {.name = "opencl.generated", .op = "", .why_not = kWhyNot[number], .prepare = kPrepare[number]};
}

// Ops without an entry of their own are taken for those that passes take apart.
std::vector<KernelDef> kernels_of(size_t number) {
  std::vector<KernelDef> kernels;
  std::set<const OpDef*> ops;
  for (const gpu::Emitter& emitter : gpu::emitters()) {
    if (!ops.insert(emitter.op).second) continue;
    kernels.push_back(generated_kernel(number, std::make_index_sequence<kMaxDevices>()));
    kernels.back().op = emitter.op->name;
  }
  kernels.push_back(reference_kernel());
  return kernels;
}

class OpenClDevice : public Device {
 public:
  OpenClDevice(const std::string& name, size_t number)
      : Device(name), machine_(get_machine(number)), catalog_(kernels_of(number)) {}

  std::string identity() const override { return machine_.identity(); }
  DeviceProperties properties() const override { return {.max_streams = 4, .sync_us = 10}; }
  const KernelCatalog& catalog() const override { return catalog_; }
  const Memory* memory() const override { return &machine_.memory(); }
  std::unique_ptr<Stream> new_stream() const override { return std::make_unique<OpenClStream>(machine_); }
  std::unique_ptr<Event> new_event() const override { return std::make_unique<OpenClEvent>(); }
  std::shared_ptr<Launchable> record(std::shared_ptr<const CompiledPlan> plan) const override {
    return record_steps(*this, std::move(plan));
  }

 private:
  const Machine& machine_;
  KernelCatalog catalog_;
};

}  // namespace
}  // namespace opencl

std::vector<std::string> opencl_device_names() {
  std::vector<std::string> names = opencl::machine_names();
  if (names.size() > opencl::kMaxDevices) names.resize(opencl::kMaxDevices);
  return names;
}

std::unique_ptr<Device> make_opencl(const std::string& name) {
  const auto number = number_in(name);
  if (!number) return nullptr;
  if (*number >= opencl::kMaxDevices) {
    throw DeviceError("[opencl] device: expected a number below 8, got '" + name + "'");
  }
  return std::make_unique<opencl::OpenClDevice>(name, *number);
}
#else
std::vector<std::string> opencl_device_names() { return {}; }

std::unique_ptr<Device> make_opencl(const std::string& name) {
  if (!number_in(name)) return nullptr;
  throw DeviceError(
      "[opencl] device: this program was built without the headers of OpenCL (Debian: opencl-c-headers); build it "
      "again "
      "where they are");
}
#endif

}  // namespace autograph
