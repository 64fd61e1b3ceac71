#include "graph/picked_cost.h"

#include "graph/moved_bytes.h"

namespace autograph {

OpCost picked_cost(const CostContext& context) {
  OpCost cost{.bytes = moved_bytes({context.attributes, context.outputs, context.outputs})};
  if (context.inputs.size() > 1) cost.bytes += moved_bytes({context.attributes, context.inputs.subspan(1), {}});
  for (const Type& type : context.outputs) {
    if (type.is_static()) cost.flops += static_cast<double>(type.shape().num_elements().value_or(0));
  }
  return cost;
}

}  // namespace autograph
