// What the backends of this build have kernels for.
#pragma once

#include <string>
#include <vector>

namespace autograph {

/// A device, and the ops for which it has a kernel made for that op; the other ops are computed by kernels that serve
/// any op (loops over elements, and the plain reference).
struct BackendSummary {
  std::string name;              ///< As in CompileOptions::device.
  std::vector<std::string> ops;  ///< In the order of all_ops().
};

/// One for each of available_devices(), in their order.
std::vector<BackendSummary> summarize_backends();

}  // namespace autograph
