#include "backends/sim/sim_device.h"

#include "backends/cpu/cpu_device.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/sim/sim_machine.h"
#include "backends/sim/simulate.h"
#include "base/check.h"

namespace autograph {
namespace {

constexpr std::string_view kPrefix = "sim:";

// Figures that were kept for a machine with another description do not hold.
std::string identity_of(const SimMachine& machine) {
  return fmt::format("simulated {} {}; {}", machine.name, to_string(machine.description_hash), cpu_identity());
}

// Those that stand for kernels of a GPU: none computes of a mixture of experts what counts alone, and the machine's
// figures would tell nothing of such a one.
std::vector<KernelDef> sim_kernels() {
  std::vector<KernelDef> kernels = cpu_kernels();
  const std::string_view sparse = simd::chosen_experts_kernel().name;
  std::erase_if(kernels, [&](const KernelDef& kernel) { return kernel.name == sparse; });
  return kernels;
}

class SimDevice : public CpuDevice {
 public:
  SimDevice(const std::string& name, SimMachine machine)
      : CpuDevice(name, sim_kernels(), identity_of(machine)), machine_(std::move(machine)) {}

  DeviceProperties properties() const override {
    return {.max_streams = machine_.max_streams,
            .sync_us = machine_.sync_us,
            .has_exact_times = true,
            .can_time_kernels = false};
  }
  std::unique_ptr<CostModel> cost_model() const override { return std::make_unique<SimCost>(machine_); }
  std::optional<double> latency_us(const Graph& graph, const Schedule& schedule) const override {
    return simulate(graph, schedule, machine_).latency_us;
  }

 private:
  SimMachine machine_;
};

}  // namespace

std::vector<std::string> sim_device_names() {
  std::vector<std::string> names;
  for (const std::string& machine : sim_machine_names()) names.push_back(std::string(kPrefix) + machine);
  return names;
}

std::unique_ptr<Device> make_sim(const std::string& name) {
  if (!name.starts_with(kPrefix)) return nullptr;
  return std::make_unique<SimDevice>(name, load_sim_machine(name.substr(kPrefix.size())));
}

}  // namespace autograph
