// What the backends of this build have kernels for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// A device, and the ops for which it has a kernel made for that op; the other ops are computed by kernels that serve
/// any op (loops over elements, and the plain reference).
struct BackendSummary {
  std::string name;              ///< As in CompileOptions::device.
  std::vector<std::string> ops;  ///< In the order of all_ops().
};

/// One for each of available_devices(), in their order.
std::vector<BackendSummary> summarize_backends();

/// Where a plan for a GPU computes an op, whether there is a GPU here or not.
enum class OnGpu : uint8_t {
  kernel,     ///< By a generated kernel; some of its dtypes and attributes may have none.
  other_ops,  ///< By those of the ops that it is taken apart into.
  nothing,    ///< Nothing is computed: another shape for the same elements, or what is known from shapes alone.
  host,       ///< By the reference, on copies. A plan with such a step is not one CUDA graph.
};
OnGpu on_gpu(const OpDef& op);
/// "kernel", "other ops", "nothing", "host".
std::string_view to_string(OnGpu where);

}  // namespace autograph
