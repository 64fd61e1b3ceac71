// What devices have in common that are counted ("cuda", "cuda:1") and run emitted kernels.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/kernel.h"
#include "backends/gpu/emit/target.h"

namespace autograph::gpu {

/// Candidates are functions without data: each device has its own, so that there are only so many of a kind.
inline constexpr size_t kMaxDevices = 8;

/// The number of the device that `name` names: "KIND" is the first, "KIND:3" the fourth. Nothing for other kinds of
/// device; throws DeviceError for numbers from kMaxDevices on.
std::optional<size_t> device_number(std::string_view kind, std::string_view name);

/// Adds `emitted` for each op of which kernels can be emitted, and the reference for all others.
void add_emitted(std::vector<KernelDef>& kernels, KernelDef emitted);

/// "" where an emitted kernel serves the call, else the reason why not.
std::string why_not_emitted(const KernelCall& call, const Target& target);

}  // namespace autograph::gpu
