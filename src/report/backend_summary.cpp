#include "report/backend_summary.h"

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"

namespace autograph {

std::vector<BackendSummary> summarize_backends() {
  std::vector<BackendSummary> backends;
  for (const std::string& name : available_devices()) {
    BackendSummary& backend = backends.emplace_back();
    backend.name = name;
    for (const OpDef* op : all_ops()) {
      if (get_device(name).catalog().has_own_kernel(op->name)) backend.ops.emplace_back(op->name);
    }
  }
  return backends;
}

}  // namespace autograph
