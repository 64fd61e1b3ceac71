#include "backends/gpu/numbered_device.h"

#include <set>

#include "autograph/reference_kernel.h"
#include "backends/gpu/emit/emitted.h"
#include "backends/gpu/parts_kernel.h"
#include "base/check.h"
#include "base/text/read_number.h"

namespace autograph::gpu {

std::optional<size_t> device_number(std::string_view kind, std::string_view name) {
  if (name == kind) return 0;
  if (!name.starts_with(kind) || name.size() < kind.size() + 2 || name[kind.size()] != ':') return std::nullopt;
  const std::string_view digits = name.substr(kind.size() + 1);
  const auto number = read_number<size_t>(digits);
  AG_CHECK_USER(!number || *number < kMaxDevices, DeviceError, "[{}] device: expected a number below {}, got '{}'",
                kind, kMaxDevices, name);
  return number;
}

// Ops without an entry of their own are taken for those that passes take apart.
void add_emitted(std::vector<KernelDef>& kernels, KernelDef emitted) {
  for (const KernelDef& parts : parts_kernels()) kernels.push_back(parts);
  std::set<const OpDef*> ops;
  for (const Emitter& emitter : emitters()) {
    if (!ops.insert(emitter.op).second) continue;
    emitted.op = emitter.op->name;
    kernels.push_back(emitted);
  }
  kernels.push_back(reference_kernel());
}

std::string why_not_emitted(const KernelCall& call, const Target& target) {
  if (why_not_parts(call).empty()) return "gpu.parts moves nothing";
  return emit(call, target).refusal;
}

}  // namespace autograph::gpu
