// What runs along one axis: arg_max and arg_min, cum_sum and cum_prod, top_k.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "backends/gpu/emit/text/product.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// Each element of a row is compared with all others: beyond this a sort would be faster on the host.
constexpr int64_t kMaxSorted = 4096;

// Rows of `extent` elements, `stride` apart.
struct AxisRows {
  AxisRows(const Dims& dims, int64_t axis) {
    const auto at = static_cast<size_t>(front_axis(axis, static_cast<int64_t>(dims.size())));
    extent = dims[at];
    stride = row_major_strides(dims)[at];
    count = extent == 0 ? 0 : num_elements(dims) / extent;
  }
  // Where row `row` begins in a tensor whose extent along the axis is `length`.
  std::string start(const IndexType& index, std::string_view row, int64_t length) const {
    return fmt::format("{0} / {1} * {2} + {0} % {1}", row, index.literal(stride), index.literal(length * stride));
  }
  int64_t extent = 0;
  int64_t stride = 1;
  int64_t count = 0;
};

std::string is_nan(DType dtype, const std::string& x) { return is_float(dtype) ? fmt::format("isnan({})", x) : "0"; }

}  // namespace

Emitted emit_arg_extreme(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const AxisRows rows(call.input_dims(0), call.attributes.integer("axis"));
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  const std::string stride = writer.index().literal(rows.stride);
  const char* sign = &call.op == &arg_max_def() ? ">" : "<";
  const bool last = call.attributes.flag("select_last_index");
  writer.begin_items({input_parameter("x", storage_type(dtype), 0), output_parameter("y", "i64")}, rows.count);
  writer.line("const Index start = {};", rows.start(writer.index(), "i", rows.extent));
  writer.line("Index best_at = 0;");
  writer.line("{} best = {};", compute_type(dtype), load(dtype, "x", "start"));
  writer.open("for (Index r = 1; r < {}; ++r)", writer.index().literal(rows.extent));
  writer.line("const {} v = {};", compute_type(dtype), load(dtype, "x", fmt::format("start + r * {}", stride)));
  const std::string among_nans = last ? is_nan(dtype, "v") : "0";
  writer.line("const i32 wins = {} ? {} : {} || v {} best{};", is_nan(dtype, "best"), among_nans, is_nan(dtype, "v"),
              sign, last ? " || v == best" : "");
  writer.open("if (wins)");
  writer.line("best = v;");
  writer.line("best_at = r;");
  writer.close();
  writer.close();
  writer.line("y[i] = best_at;");
  writer.end();
  return writer.finish();
}

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

// The place of each element among the others: how many come before it.
Emitted emit_top_k(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Dims dims = call.input_dims(0);
  const AxisRows rows(dims, call.attributes.integer("axis"));
  if (rows.extent > kMaxSorted) return refused("rows of more than 4096 elements");
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(dims.size())));
  const int64_t k = call.output_dims(0)[axis];
  const bool has_indices = call.outputs.size() > 1 && call.outputs[1].is_tensor();
  const std::string type(compute_type(dtype));
  Writer writer(target);
  writer.index().cover(num_elements(dims));
  writer.function(fmt::format("DEVICE i32 is_larger({0} a, {0} b) {{ return {1} ? 0 : {2} ? 1 : a > b; }}\n", type,
                              is_nan(dtype, "b"), is_nan(dtype, "a")));
  std::vector<Parameter> parameters{input_parameter("x", storage_type(dtype), 0),
                                    output_parameter("y", storage_type(dtype))};
  if (has_indices) parameters.push_back(output_parameter("indices", "i64", 1));
  const bool largest = call.attributes.flag("largest");
  const char* other_first = largest ? "is_larger(other, v)" : "is_larger(v, other)";
  const char* this_first = largest ? "is_larger(v, other)" : "is_larger(other, v)";
  const std::string extent = writer.index().literal(rows.extent);
  const std::string stride = writer.index().literal(rows.stride);
  writer.begin_items(parameters, k == 0 ? 0 : rows.count * rows.extent);
  writer.line("const Index row = i / {}, e = i % {};", extent, extent);
  writer.line("const Index start = {};", rows.start(writer.index(), "row", rows.extent));
  writer.line("const {} v = {};", type, load(dtype, "x", fmt::format("start + e * {}", stride)));
  writer.line("Index place = 0;");
  writer.open("for (Index r = 0; r < {}; ++r)", extent);
  writer.line("const {} other = {};", type, load(dtype, "x", fmt::format("start + r * {}", stride)));
  writer.line("place += {} || (r < e && !{});", other_first, this_first);
  writer.close();
  writer.open("if (place < {})", writer.index().literal(k));
  writer.line("const Index to = {} + place * {};", rows.start(writer.index(), "row", k), stride);
  writer.line("{}", store(dtype, "y", "to", "v"));
  if (has_indices) writer.line("indices[to] = e;");
  writer.close();
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
