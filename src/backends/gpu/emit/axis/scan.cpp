// cum_sum and cum_prod: a group of items for each part of a long row, or one item a row.
#include "backends/gpu/emit/axis/axis_rows.h"
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "backends/gpu/emit/text/product.h"
#include "ops/defs.h"

namespace autograph::gpu {

Emitted emit_cumulative(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  const auto axis = known_integers(call, 1);
  if (!can_compute(dtype, target) || product_type(dtype).empty()) return refused("dtype");
  const auto rank = static_cast<int64_t>(call.input_dims(0).size());
  if (!axis || (*axis)[0] < -rank || (*axis)[0] >= rank) return refused("an axis that is computed");
  const AxisRows rows(call.input_dims(0), (*axis)[0]);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  const bool adds = &call.op == &cum_sum_def();
  const bool exclusive = call.attributes.flag("exclusive");
  const std::string extent = writer.index().literal(rows.extent);
  const std::string step = call.attributes.flag("reverse") ? fmt::format("({} - 1 - r)", extent) : "r";
  writer.begin_items({input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                     rows.count);
  writer.line("const Index start = {};", rows.start(writer.index(), "i", rows.extent));
  writer.line("{} total = {};", product_type(dtype), adds ? 0 : 1);
  writer.open("for (Index r = 0; r < {}; ++r)", extent);
  writer.line("const Index at = start + {} * {};", step, writer.index().literal(rows.stride));
  writer.line("const {} before = total;", product_type(dtype));
  writer.line("total = total {} {};", adds ? "+" : "*", load(dtype, "x", "at"));
  writer.line("{}",
              store(dtype, "y", "at", fmt::format("({}){}", compute_type(dtype), exclusive ? "before" : "total")));
  writer.close();
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
