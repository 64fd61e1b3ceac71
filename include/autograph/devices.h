// The devices that compile() knows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/device.h"

namespace autograph {

/// The device named `name`; throws DeviceError with the nearest name when it is not there. With a precision other than
/// "f32" it is one whose kernels may use that; throws ValueError when there is no such precision, UnsupportedError when
/// the device has none of it and DeviceError when this machine has not. Devices stay where they are.
const Device& get_device(const std::string& name, Precision precision = Precision::f32);

/// A kind of devices of which this machine has none.
struct MissingDevice {
  std::string name;  ///< Of the first one: "cuda".
  std::string why;   ///< What was looked for and where.
};

/// Those that this build knows.
std::vector<MissingDevice> missing_devices();

/// Does `name` name a device of this build, whether or not this machine has it ("cuda:1", "sim:wide")? Starts no
/// driver: listing devices starts those of all, which takes memory, threads and some 40 ms.
bool is_device_name(const std::string& name);

/// What messages say behind a name that is of no device: " (did you mean 'cpu'?)", or ""; for "gpu" the GPUs that this
/// machine has.
std::string device_hint(const std::string& name);

/// Makes another device known by its name, until the process ends; available_devices() then lists it, too. Throws
/// ValueError when there is one of that name.
const Device& add_device(std::unique_ptr<Device> device);

}  // namespace autograph
