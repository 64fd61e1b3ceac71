// The devices that the build brings along, without those that a program has added.
#pragma once

#include <string>
#include <vector>

namespace autograph {

/// Those that this machine has, best first: what available_devices() lists before what came by add_device(). Tests that
/// go over all devices ask here, so that they do not meet what another test of the process has added.
std::vector<std::string> built_in_devices();

}  // namespace autograph
