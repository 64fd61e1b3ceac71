// How long a run takes, for comparisons of plans.
#pragma once

#include <vector>

#include "autograph/compile.h"
#include "autograph/device.h"

namespace autograph {

/// Runs once. Milliseconds by the clock of the device where it has one: neither launches nor copies of what lies on the
/// host count, nor what else the host has to do. By the host's clock elsewhere.
double timed_run_ms(const Device& device, const Executable& executable, const std::vector<Datum>& inputs);

}  // namespace autograph
