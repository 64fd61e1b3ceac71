// Devices of OpenCL: generated kernels, and on the host, with copies, those ops for which none is generated.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/device.h"

namespace autograph {

/// "opencl", "opencl:1", ...: graphics processors first. Empty where libOpenCL is not found or has no device.
std::vector<std::string> opencl_device_names();

/// The device of that name; null for names of other kinds. Throws DeviceError that says what was looked for where it is
/// not there.
std::unique_ptr<Device> make_opencl(const std::string& name);

}  // namespace autograph
