// What normalises rows: softmax, log_softmax; Lp, mean-variance, layer, RMS, group and instance normalization. A group
// of items, or one item, walks over a row three times: what it needs to know first comes out of two reductions.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "backends/gpu/emit/text/reduced_dims.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// Element r of row o lies at start + r * stride.
struct Rows {
  int64_t count = 1;
  int64_t extent = 1;
  int64_t stride = 1;
};

Rows rows_along(const Dims& dims, size_t axis) {
  Rows rows;
  rows.extent = dims[axis];
  for (size_t a = axis + 1; a < dims.size(); ++a) rows.stride *= dims[a];
  for (size_t a = 0; a < dims.size(); ++a) rows.count *= a == axis ? 1 : dims[a];
  return rows;
}

std::string start_of_row(const IndexType& index, const Rows& rows) {
  if (rows.stride == 1) return fmt::format("o * {}", index.literal(rows.extent));
  return fmt::format("o / {0} * {1} + o % {0}", index.literal(rows.stride), index.literal(rows.extent * rows.stride));
}

// The position of element r.
std::string element_of_row(const IndexType& index, const Rows& rows) {
  return rows.stride == 1 ? "start + r" : fmt::format("start + r * {}", index.literal(rows.stride));
}

}  // namespace

Emitted emit_softmax(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Dims dims = call.input_dims(0);
  if (dims.empty()) return refused("a scalar");
  const auto rank = static_cast<int64_t>(dims.size());
  const Rows rows = rows_along(dims, static_cast<size_t>(front_axis(call.attributes.integer("axis"), rank)));
  Writer writer(target);
  writer.index().cover(num_elements(dims));
  const ReductionPlan plan = plan_reduction(target, rows.count, rows.extent);
  const std::string type(compute_type(dtype));
  begin_reduction(writer, plan,
                  {input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                  num_elements(dims) == 0 ? 0 : rows.count);
  writer.line("const Index start = {};", start_of_row(writer.index(), rows));
  const std::string at = element_of_row(writer.index(), rows);
  const std::string element = load(dtype, "x", at);
  const Combination largest = largest_of(type);
  writer.line("{} top = {};", type, largest.start);
  write_loop(writer, plan, rows.extent, [&] {
    writer.line("const {} v = {};", type, element);
    writer.line("top = {};", largest.combine("v", "top"));
  });
  write_group_total(writer, plan, largest, "top");
  writer.line("{} total = 0;", type);
  write_loop(writer, plan, rows.extent, [&] { writer.line("total += exp({} - top);", element); });
  write_group_total(writer, plan, sum_of(type), "total");
  const bool is_log = &call.op == &log_softmax_def();
  if (is_log) writer.line("total = log(total);");
  write_loop(writer, plan, rows.extent, [&] {
    const std::string value =
        is_log ? fmt::format("{} - top - total", element) : fmt::format("exp({} - top) / total", element);
    writer.line("{}", store(dtype, "y", at, value));
  });
  writer.end();
  return writer.finish();
}

Emitted emit_lp_normalization(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Dims dims = call.input_dims(0);
  const Rows rows =
      rows_along(dims, static_cast<size_t>(front_axis(call.attributes.integer("axis"), std::ssize(dims))));
  Writer writer(target);
  writer.index().cover(num_elements(dims));
  const ReductionPlan plan = plan_reduction(target, rows.count, rows.extent);
  const std::string_view type = compute_type(dtype);
  begin_reduction(writer, plan,
                  {input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                  num_elements(dims) == 0 ? 0 : rows.count);
  writer.line("const Index start = {};", start_of_row(writer.index(), rows));
  const std::string at = element_of_row(writer.index(), rows);
  const bool is_absolute = call.attributes.integer("p") == 1;
  writer.line("{} total = 0;", type);
  write_loop(writer, plan, rows.extent, [&] {
    writer.line("const {} v = {};", type, load(dtype, "x", at));
    writer.line("total += {};", is_absolute ? "(v < 0 ? -v : v)" : "v * v");
  });
  write_group_total(writer, plan, sum_of(type), "total");
  if (!is_absolute) writer.line("total = sqrt(total);");
  write_loop(writer, plan, rows.extent, [&] {
    writer.line("{}", store(dtype, "y", at, fmt::format("total == 0 ? 0 : {} / total", load(dtype, "x", at))));
  });
  writer.end();
  return writer.finish();
}

// Over axes that need not be neighbours.
Emitted emit_mean_variance_normalization(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Dims dims = call.input_dims(0);
  std::vector<bool> is_reduced(dims.size(), false);
  for (const int64_t axis : call.attributes.integers("axes")) {
    is_reduced[static_cast<size_t>(front_axis(axis, std::ssize(dims)))] = true;
  }
  const ReducedDims reduced(dims, is_reduced);
  const ReductionPlan plan = plan_reduction(target, reduced.results, reduced.combined);
  const std::string_view type = compute_type(dtype);
  const std::string count = literal(dtype, static_cast<double>(reduced.combined));
  Writer writer(target);
  writer.index().cover(num_elements(dims));
  begin_reduction(writer, plan,
                  {input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                  num_elements(dims) == 0 ? 0 : reduced.results);
  writer.line("const Index kept = {};", position(writer.index(), "o", reduced.kept));
  const std::string at = "kept + " + position(writer.index(), "r", reduced.reduced);
  const std::string element = load(dtype, "x", at);
  writer.line("{} center = 0;", type);
  write_loop(writer, plan, reduced.combined, [&] { writer.line("center += {};", element); });
  write_group_total(writer, plan, sum_of(type), "center");
  writer.line("center /= {};", count);
  writer.line("{} deviation = 0;", type);
  write_loop(writer, plan, reduced.combined, [&] {
    writer.line("const {} v = {} - center;", type, element);
    writer.line("deviation += v * v;");
  });
  write_group_total(writer, plan, sum_of(type), "deviation");
  writer.line("deviation = sqrt(deviation / {}) + {};", count, literal(dtype, 1e-9));
  write_loop(writer, plan, reduced.combined,
             [&] { writer.line("{}", store(dtype, "y", at, fmt::format("({} - center) / deviation", element))); });
  writer.end();
  return writer.finish();
}

namespace {

// Rows that are normalised, and how their elements are scaled and shifted.
struct Normalization {
  Rows rows;
  bool centers = true;  // by the mean; RMS normalization does not
  Walk scale;           // over the elements of x
  std::optional<Walk> bias;
};

// Of [channels], over x = [batch, channels, ...].
Walk channel_walk(const Dims& x) {
  Walk walk{x, Dims(x.size(), 0), 0};
  walk.strides[1] = 1;
  return walk;
}

Normalization normalization_of(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  Normalization result;
  const bool is_grouped = &call.op == &group_normalization_def() || &call.op == &instance_normalization_def();
  if (is_grouped) {
    const int64_t groups = &call.op == &group_normalization_def() ? call.attributes.integer("num_groups") : x[1];
    result.rows.count = x[0] * groups;
    result.scale = channel_walk(x);
    result.bias = channel_walk(x);
  } else {
    const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(x.size())));
    result.rows.count = num_elements(Dims(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(axis)));
    result.scale = broadcast_walk(call.input_dims(1), x);
    if (call.has_input(2)) result.bias = broadcast_walk(call.input_dims(2), x);
    result.centers = &call.op == &layer_normalization_def();
  }
  const int64_t count = num_elements(x);
  result.rows.extent = result.rows.count == 0 ? 0 : count / result.rows.count;
  return result;
}

bool can_compute_all(const KernelCall& call, const Target& target) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (type.is_tensor() && !(is_float(type.dtype()) && can_compute(type.dtype(), target))) return false;
    }
  }
  return true;
}

// Mean and population variance of a row, in two walks: the second one is about the mean.
void write_statistics(Writer& writer, const ReductionPlan& plan, const Normalization& norm, const std::string& type,
                      const std::string& element, double epsilon) {
  const std::string count = fmt::format("({}){}", type, norm.rows.extent);
  writer.line("{} average = 0;", type);
  if (norm.centers) {
    write_loop(writer, plan, norm.rows.extent, [&] { writer.line("average += {};", element); });
    write_group_total(writer, plan, sum_of(type), "average");
    writer.line("average = average / {};", count);
  }
  writer.line("{} squares = 0;", type);
  write_loop(writer, plan, norm.rows.extent, [&] {
    writer.line("const {} v = {} - average;", type, element);
    writer.line("squares += v * v;");
  });
  write_group_total(writer, plan, sum_of(type), "squares");
  writer.line("const {0} inverse = 1 / sqrt(squares / {1} + ({0}){2});", type, count, literal(DType::f32, epsilon));
}

}  // namespace

Emitted emit_normalization(const KernelCall& call, const Target& target) {
  if (!can_compute_all(call, target)) return refused("dtype");
  const Dims x = call.input_dims(0);
  const DType in = call.inputs[0].dtype();
  const DType out = call.outputs[0].dtype();
  const Normalization norm = normalization_of(call);
  if (norm.rows.extent == 0) return refused("rows without elements");
  const std::string type(in == DType::f64 || out == DType::f64 ? "f64" : "f32");
  Writer writer(target);
  writer.index().cover(num_elements(x));
  const ReductionPlan plan = plan_reduction(target, norm.rows.count, norm.rows.extent);
  std::vector<Parameter> parameters{input_parameter("x", storage_type(in), 0),
                                    input_parameter("scale", storage_type(call.inputs[1].dtype()), 1)};
  if (norm.bias) parameters.push_back(input_parameter("bias", storage_type(call.inputs[2].dtype()), 2));
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (!call.outputs[k].is_tensor()) continue;
    parameters.push_back(output_parameter(fmt::format("y{}", k), storage_type(call.outputs[k].dtype()), k));
  }
  begin_reduction(writer, plan, parameters, norm.rows.count);
  writer.line("const Index start = {};", start_of_row(writer.index(), norm.rows));
  const std::string element = fmt::format("({}){}", type, load(in, "x", "start + r"));
  write_statistics(writer, plan, norm, type, element, static_cast<double>(call.attributes.real("epsilon")));
  write_loop(writer, plan, norm.rows.extent, [&] {
    writer.line("const Index e = start + r;");
    const auto parameter = [&](size_t slot, const char* name, const Walk& walk) {
      return load(call.inputs[slot].dtype(), name, position(writer.index(), "e", walk));
    };
    std::string value = fmt::format("({} - average) * inverse * {}", element, parameter(1, "scale", norm.scale));
    if (norm.bias) value += " + " + parameter(2, "bias", *norm.bias);
    writer.line("{}", store(out, "y0", "e", value));
  });
  const char* first = plan.by_group ? "if (t == 0) " : "";
  const char* const statistics[] = {"", "average", "inverse"};
  for (size_t k = 1; k < call.outputs.size(); ++k) {
    if (!call.outputs[k].is_tensor()) continue;
    writer.line("{}{}", first, store(call.outputs[k].dtype(), fmt::format("y{}", k), "o", statistics[k]));
  }
  writer.end();
  return writer.finish();
}

Emitted emit_batch_normalization(const KernelCall& call, const Target& target) {
  if (!can_compute_all(call, target)) return refused("dtype");
  if (call.attributes.flag("training_mode")) return refused("statistics of the batch");
  const Dims x = call.input_dims(0);
  const DType dtype = call.inputs[0].dtype();
  Writer writer(target);
  writer.index().cover(num_elements(x));
  std::vector<Parameter> parameters{input_parameter("x", storage_type(dtype), 0)};
  constexpr const char* kNames[] = {"", "scale", "bias", "means", "variance"};
  for (size_t slot = 1; slot <= 4; ++slot) {
    parameters.push_back(input_parameter(kNames[slot], storage_type(call.inputs[slot].dtype()), slot));
  }
  parameters.push_back(output_parameter("y", storage_type(dtype)));
  writer.begin_items(parameters, num_elements(x));
  writer.line("const Index c = {};", x.size() < 2 ? "0" : position(writer.index(), "i", channel_walk(x)));
  const auto of_channel = [&](size_t slot) { return load(call.inputs[slot].dtype(), kNames[slot], "c"); };
  const std::string epsilon = literal(DType::f32, static_cast<double>(call.attributes.real("epsilon")));
  writer.line("{}", store(dtype, "y", "i",
                          fmt::format("({} - {}) * ({} / sqrt({} + {})) + {}", load(dtype, "x", "i"), of_channel(3),
                                      of_channel(1), of_channel(4), epsilon, of_channel(2))));
  writer.end();
  writer.in_place_inputs = {0};
  return writer.finish();
}

}  // namespace autograph::gpu
