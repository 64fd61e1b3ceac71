// CUDA devices: generated kernels, products by cuBLASLt and convolutions by cuDNN where these are found, and on the
// host, with copies, those ops for which there is none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/device.h"

namespace autograph {

/// "cuda", "cuda:1", ...; empty where the driver, the compiler or a GPU is missing.
std::vector<std::string> cuda_device_names();

/// The device of that name; null for names of other kinds. Throws DeviceError that says what was looked for and where
/// when it is not there.
std::unique_ptr<Device> make_cuda(const std::string& name);

}  // namespace autograph
