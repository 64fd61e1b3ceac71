// Devices that compute in the host's memory. Those with memory of their own compile kernels for each shape, which takes
// time: tests/gpu and tests/device are about them, random graphs without number are not.
#pragma once

#include <string>
#include <vector>

#include "autograph/devices.h"
#include "engine/built_in_devices.h"

namespace autograph {

inline std::vector<std::string> host_devices() {
  std::vector<std::string> names = built_in_devices();
  std::erase_if(names, [](const std::string& name) { return get_device(name).memory() != nullptr; });
  return names;
}

}  // namespace autograph
