// The reference as a device: the defining loops of every op, on the host.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/device.h"

namespace autograph {

/// "reference".
std::vector<std::string> reference_device_names();

/// The device of that name; null for others.
std::unique_ptr<Device> make_reference(const std::string& name);

}  // namespace autograph
