// The executor of devices with streams.
#pragma once

#include <memory>

#include "autograph/device.h"

namespace autograph {

/// What Device::record() may return: enqueues the kernels of a plan one after the other on a stream of the device,
/// where the schedule has several on as many streams, with events between them; what is launched again with all
/// addresses as they were is captured, where Stream::capture() can do that, and replayed, in pieces between those steps
/// that cannot be. Arena, weights and copies of inputs and outputs that lie on the host are in the memory of the
/// device; inputs and outputs that lie there are taken as they are. Steps whose shapes are known only while running
/// make their outputs there, too; what runs nested graphs, looks at elements to decide, or works on strings and
/// sequences does so on the host with copies, and waits for them.
std::shared_ptr<Launchable> record_steps(const Device& device, std::shared_ptr<const CompiledPlan> plan);

}  // namespace autograph
