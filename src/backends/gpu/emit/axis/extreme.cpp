// arg_max, arg_min, hardmax: the place of the extreme of each row.
#include "backends/gpu/emit/axis/axis_rows.h"
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

// Which of two elements of a row is the extreme: NaN before all others, of equal ones the first, or the last.
std::string precedence(DType dtype, bool is_largest, bool is_last) {
  const char* sign = is_largest ? ">" : "<";
  const char* earlier = is_last ? "a_at > b_at" : "a_at < b_at";
  const std::string nans =
      is_float(dtype) ? fmt::format("  if (isnan(a) || isnan(b)) return isnan(a) && (!isnan(b) || {});\n", earlier)
                      : "";
  return fmt::format(
      "DEVICE i32 is_before({0} a, Index a_at, {0} b, Index b_at) {{\n{1}  return a == b ? {2} : a {3} b;\n}}\n",
      compute_type(dtype), nans, earlier, sign);
}

// "best" and "best_at" of all items of a group.
void write_group_extreme(Writer& writer, const ReductionPlan& plan, DType dtype) {
  writer.line("LOCAL {} values[{}];", compute_type(dtype), plan.group_size);
  writer.line("LOCAL Index places[{}];", plan.group_size);
  writer.line("values[t] = best;");
  writer.line("places[t] = best_at;");
  writer.line("BARRIER();");
  writer.open("for (i32 half_size = {}; half_size > 0; half_size /= 2)", plan.group_size / 2);
  writer.open("if (t < half_size && is_before(values[t + half_size], places[t + half_size], values[t], places[t]))");
  writer.line("values[t] = values[t + half_size];");
  writer.line("places[t] = places[t + half_size];");
  writer.close();
  writer.line("BARRIER();");
  writer.close();
  writer.line("best_at = places[0];");
}

// Declares "start" and "best_at", the place of the extreme of row "o" by precedence(), known to all items of a group.
void write_extreme(Writer& writer, const ReductionPlan& plan, DType dtype, const AxisRows& rows) {
  const char* first = plan.by_group ? "t" : "0";
  const std::string at = fmt::format("start + r * {}", writer.index().literal(rows.stride));
  writer.line("const Index start = {};", rows.start(writer.index(), "o"));
  writer.line("Index best_at = {};", first);
  writer.line("{} best = {};", compute_type(dtype),
              load(dtype, "x", fmt::format("start + best_at * {}", writer.index().literal(rows.stride))));
  writer.open("for (Index r = best_at + {0}; r < {1}; r += {0})", plan.group_size, writer.index().literal(rows.extent));
  writer.line("const {} v = {};", compute_type(dtype), load(dtype, "x", at));
  writer.open("if (is_before(v, r, best, best_at))");
  writer.line("best = v;");
  writer.line("best_at = r;");
  writer.close();
  writer.close();
  if (plan.by_group) write_group_extreme(writer, plan, dtype);
}

}  // namespace

Emitted emit_arg_extreme(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const AxisRows rows(call.input_dims(0), call.attributes.integer("axis"));
  const ReductionPlan plan = plan_reduction(target, rows.count, rows.extent);  // no more items than elements of a row
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  writer.function(precedence(dtype, &call.op == &arg_max_def(), call.attributes.flag("select_last_index")));
  begin_reduction(writer, plan, {input_parameter("x", storage_type(dtype), 0), output_parameter("y", "i64")},
                  rows.count);
  write_extreme(writer, plan, dtype, rows);
  writer.line("{}y[o] = best_at;", plan.by_group ? "if (t == 0) " : "");
  writer.end();
  return writer.finish();
}

Emitted emit_hardmax(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const AxisRows rows(call.input_dims(0), call.attributes.integer("axis"));
  const ReductionPlan plan = plan_reduction(target, rows.count, rows.extent);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  writer.function(precedence(dtype, true, false));
  begin_reduction(writer, plan,
                  {input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                  rows.count);
  write_extreme(writer, plan, dtype, rows);
  write_loop(writer, plan, rows.extent, [&] {
    writer.line("const Index at = start + r * {};", writer.index().literal(rows.stride));
    writer.line("{}", store(dtype, "y", "at", "r == best_at ? 1.0f : 0.0f"));
  });
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
