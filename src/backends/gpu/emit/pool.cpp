// Pools: one work item an output element, which walks over its window. Global pools are reductions of rows.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "backends/gpu/emit/text/window.h"
#include "ops/defs.h"

namespace autograph::gpu {
namespace {

std::vector<WindowAxis> windows_of(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  return resolve_windows(window_spec(call.attributes, call.attributes.integers("kernel_shape")),
                         std::span<const int64_t>(x).subspan(2));
}

// The first of equal elements wins, and the first NaN: it is in "best", its position in "best_at", -1 for none.
void write_search(Writer& writer, const KernelCall& call, const std::vector<WindowAxis>& axes) {
  const DType dtype = call.inputs[0].dtype();
  const std::string lowest = is_float(dtype) ? "-INFINITY" : is_signed_whole(dtype) ? "-128" : "0";
  const std::string is_larger = is_float(dtype) ? "(!isnan(best) && (v > best || isnan(v)))" : "v > best";
  writer.line("{} best = {};", compute_type(dtype), lowest);
  writer.line("Index best_at = -1;");
  write_taps(writer, axes, "o", [&] {
    writer.line("const {} v = {};", compute_type(dtype), load(dtype, "x", "base + p"));
    writer.open("if (best_at < 0 || {})", is_larger);
    writer.line("best = v;");
    writer.line("best_at = base + p;");
    writer.close();
  });
}

void write_max(Writer& writer, const KernelCall& call, const std::vector<WindowAxis>& axes) {
  const DType dtype = call.inputs[0].dtype();
  write_search(writer, call, axes);
  writer.line("{}", store(dtype, "y", "i", "best"));
  if (call.outputs.size() > 1 && call.outputs[1].is_tensor()) writer.line("indices[i] = best_at;");
}

// Taps inside the padded input, which count beside those inside the input.
void write_padded_count(Writer& writer, const std::vector<WindowAxis>& axes) {
  const IndexType& index = writer.index();
  writer.line("Index count = 1;");
  for (size_t a = 0; a < axes.size(); ++a) {
    const WindowAxis& axis = axes[a];
    writer.open("");
    writer.line("const Index begin = ({}) * {};", coordinate(index, "o", out_extents(axes), a),
                index.literal(axis.stride));
    writer.line("Index taps = 0;");
    writer.line("for (Index j = 0; j < {}; ++j) taps += begin + j * {} < {};", index.literal(axis.kernel),
                index.literal(axis.dilation), index.literal(axis.in + axis.pad_begin + axis.pad_end));
    writer.line("count *= taps;");
    writer.close();
  }
}

void write_average(Writer& writer, const KernelCall& call, const std::vector<WindowAxis>& axes) {
  const DType dtype = call.inputs[0].dtype();
  const bool counts_pads = call.attributes.flag("count_include_pad");
  writer.line("{} total = 0;", compute_type(dtype));
  writer.line("Index taken = 0;");
  write_taps(writer, axes, "o", [&] {
    writer.line("total += {};", load(dtype, "x", "base + p"));
    writer.line("++taken;");
  });
  if (counts_pads) write_padded_count(writer, axes);
  const char* count = counts_pads ? "count" : "taken";
  writer.line("{}", store(dtype, "y", "i", fmt::format("{0} == 0 ? 0 : total / {0}", count)));
}

void write_norm(Writer& writer, const KernelCall& call, const std::vector<WindowAxis>& axes) {
  const DType dtype = call.inputs[0].dtype();
  const std::string p = fmt::format("({}){}", compute_type(dtype), call.attributes.integer("p"));
  writer.line("{} total = 0;", compute_type(dtype));
  write_taps(writer, axes, "o", [&] { writer.line("total += pow(fabs({}), {});", load(dtype, "x", "base + p"), p); });
  writer.line("{}", store(dtype, "y", "i", fmt::format("pow(total, 1 / {})", p)));
}

}  // namespace

Emitted emit_pool(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const bool has_indices = call.outputs.size() > 1 && call.outputs[1].is_tensor();
  if (has_indices && call.attributes.integer("storage_order") == 1) return refused("indices by column");
  const std::vector<WindowAxis> axes = windows_of(call);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  writer.index().cover(num_elements(call.output_dims(0)));
  cover_windows(writer.index(), axes);
  std::vector<Parameter> parameters{input_parameter("x", storage_type(dtype), 0),
                                    output_parameter("y", storage_type(dtype))};
  if (has_indices) parameters.push_back(output_parameter("indices", "i64", 1));
  writer.begin_items(parameters, num_elements(call.output_dims(0)));
  const int64_t out = num_elements(out_extents(axes));
  writer.line("const Index o = i % {};", writer.index().literal(std::max<int64_t>(out, 1)));
  writer.line("const Index base = i / {} * {};", writer.index().literal(std::max<int64_t>(out, 1)),
              writer.index().literal(num_elements(in_extents(axes))));
  if (&call.op == &max_pool_def()) {
    write_max(writer, call, axes);
  } else if (&call.op == &average_pool_def()) {
    write_average(writer, call, axes);
  } else {
    write_norm(writer, call, axes);
  }
  writer.end();
  return writer.finish();
}

// In two launches: where each window has its maximum, and for each element of x the sum of what flows into the windows
// that found it.
Emitted emit_max_pool_grad(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const std::vector<WindowAxis> axes = windows_of(call);
  const int64_t elements = num_elements(call.input_dims(0));
  const int64_t windows = num_elements(call.input_dims(1));
  Writer writer(target);
  writer.index().cover(elements);
  writer.index().cover(windows);
  cover_windows(writer.index(), axes);
  const auto lit = [&](int64_t value) { return writer.index().literal(std::max<int64_t>(value, 1)); };
  const std::string in = lit(num_elements(in_extents(axes)));
  const std::string out = lit(num_elements(out_extents(axes)));
  writer.scratch_bytes = static_cast<size_t>(windows) * (writer.index().name() == "i64" ? 8 : 4);
  const Parameter found = scratch_parameter("found", writer.index().name());
  writer.begin_items({input_parameter("x", storage_type(dtype), 0), found}, windows);
  writer.line("const Index o = i % {0}, base = i / {0} * {1};", out, in);
  write_search(writer, call, axes);
  writer.line("found[i] = best_at;");
  writer.end();
  writer.begin_items({input_parameter("gy", storage_type(dtype), 1), found, output_parameter("y", storage_type(dtype))},
                     elements);
  writer.line("const Index place = i % {0}, base = i / {0} * {1};", in, out);
  writer.line("{} total = 0;", compute_type(dtype));
  write_windows_over(writer, axes, "place",
                     [&] { writer.line("if (found[base + o] == i) total += {};", load(dtype, "gy", "base + o")); });
  writer.line("{}", store(dtype, "y", "i", "total"));
  writer.end();
  return writer.finish();
}

Emitted emit_global_pool(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const int64_t rows = num_elements(call.output_dims(0));
  const int64_t extent = rows == 0 ? 0 : num_elements(call.input_dims(0)) / rows;
  const std::string type(compute_type(dtype));
  const bool is_max = &call.op == &global_max_pool_def();
  const bool is_norm = &call.op == &global_lp_pool_def();
  const std::string p = is_norm ? fmt::format("({}){}", type, call.attributes.integer("p")) : "";
  const Combination combination = is_max ? largest_of(type) : sum_of(type);
  const ReductionPlan plan = plan_reduction(target, rows, extent);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  begin_reduction(writer, plan,
                  {input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))}, rows);
  writer.line("{} total = {};", type, combination.start);
  write_loop(writer, plan, extent, [&] {
    const std::string v = load(dtype, "x", fmt::format("o * {} + r", writer.index().literal(extent)));
    writer.line("const {} v = {};", type, is_norm ? fmt::format("pow(fabs({}), {})", v, p) : v);
    writer.line("total = {};", combination.combine("v", "total"));
  });
  write_group_total(writer, plan, combination, "total");
  const std::string result = is_max    ? "total"
                             : is_norm ? fmt::format("pow(total, 1 / {})", p)
                                       : fmt::format("total / ({}){}", type, extent);
  writer.line("{}{}", plan.by_group ? "if (t == 0) " : "", store(dtype, "y", "o", result));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
