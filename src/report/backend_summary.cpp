#include "report/backend_summary.h"

#include <algorithm>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"
#include "backends/gpu/emit/emitted.h"
#include "ops/defs.h"

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

OnGpu on_gpu(const OpDef& op) {
  const auto& emitters = gpu::emitters();
  const bool has_emitter =
      std::any_of(emitters.begin(), emitters.end(), [&](const gpu::Emitter& emitter) { return emitter.op == &op; });
  if (has_emitter) return OnGpu::kernel;
  const Traits& traits = op.traits;
  const bool follows_from_shapes = traits.reads_shape_only && !traits.random;
  if (traits.view || traits.barrier || follows_from_shapes || &op == &constant_def()) return OnGpu::nothing;
  // Passes take apart what has no other definition than its body, and einsum.
  const bool is_body_alone = op.decompose && !op.reference && !op.scalar && !op.evaluate;
  return is_body_alone || &op == &einsum_def() ? OnGpu::other_ops : OnGpu::host;
}

std::string_view to_string(OnGpu where) {
  switch (where) {
    case OnGpu::kernel: return "kernel";
    case OnGpu::other_ops: return "other ops";
    case OnGpu::nothing: return "nothing";
    case OnGpu::host: return "host";
  }
  return "";
}

}  // namespace autograph
