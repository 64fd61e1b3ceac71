#include "backends/cpu/quantize/integer_cost.h"

#include "autograph/op_def.h"

namespace autograph {

std::vector<KernelVariant> integer_kernel_variants(const KernelCall& call, double flops_per_us_and_thread) {
  constexpr double kStartUs = 3;
  constexpr double kBytesPerUs = 10e3;
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  const double us = kStartUs + cost.flops / (flops_per_us_and_thread * call.threads) + cost.bytes / kBytesPerUs;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
}

}  // namespace autograph
