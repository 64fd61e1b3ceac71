#include "ops/control/nested_run.h"

#include "ops/defs.h"

namespace autograph {

std::unique_ptr<NestedRun> plan_nested_run(const NestedCall& call) {
  if (&call.op == &if_def()) return plan_if(call);
  if (&call.op == &loop_def()) return plan_loop(call);
  if (&call.op == &scan_def()) return plan_scan(call);
  return nullptr;
}

}  // namespace autograph
