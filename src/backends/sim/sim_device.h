// A simulated device: it computes with the kernels of the processor, and time is that of the machine's clock.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/device.h"

namespace autograph {

/// Names of the devices that come with AutoGraph: "sim:v100", ....
std::vector<std::string> sim_device_names();

/// The device "sim:NAME" or "sim:PATH"; null where `name` is none of these. Throws as load_sim_machine() does.
std::unique_ptr<Device> make_sim(const std::string& name);

}  // namespace autograph
