// Normalizations of a training step: batch_normalization with the statistics of its batch, and the gradients of it and
// of layer_normalization. A group of items for each channel or row walks over it again for each sum that it needs.
#include <functional>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

bool are_floats(const KernelCall& call, const Target& target) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (type.is_tensor() && !(is_float(type.dtype()) && can_compute(type.dtype(), target))) return false;
    }
  }
  return true;
}

// f64 where one of the tensors is.
std::string sum_type(const KernelCall& call) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (type.is_tensor() && type.dtype() == DType::f64) return "f64";
    }
  }
  return "f32";
}

// Channels of [batch, channels, ...]: result o combines the elements e that element_of_channel() writes.
struct Channels {
  explicit Channels(const Dims& x) {
    if (!x.empty()) batch = x[0];
    if (x.size() > 1) count = x[1];
    for (size_t a = 2; a < x.size(); ++a) inner *= x[a];
  }
  int64_t batch = 1, count = 1, inner = 1;
  int64_t extent() const { return batch * inner; }
};

void write_element_of_channel(Writer& writer, const Channels& channels) {
  const IndexType& index = writer.index();
  writer.line("const Index e = (r / {0} * {1} + o) * {0} + r % {0};", index.literal(channels.inner),
              index.literal(channels.count));
}

// "average" and "squares", the sum of squared distances from it, of the elements that `element` reads; `begin` writes
// what it needs.
void write_moments(Writer& writer, const ReductionPlan& plan, int64_t extent, const std::string& type,
                   const std::function<void()>& begin, const std::string& element) {
  writer.line("{} average = 0;", type);
  write_loop(writer, plan, extent, [&] {
    begin();
    writer.line("average += {};", element);
  });
  write_group_total(writer, plan, sum_of(type), "average");
  writer.line("average = average / ({}){};", type, extent);
  writer.line("{} squares = 0;", type);
  write_loop(writer, plan, extent, [&] {
    begin();
    writer.line("const {} v = {} - average;", type, element);
    writer.line("squares += v * v;");
  });
  write_group_total(writer, plan, sum_of(type), "squares");
}

std::string inverse_of(const std::string& type, int64_t extent, double epsilon) {
  return fmt::format("1 / sqrt(squares / ({0}){1} + ({0}){2})", type, extent, literal(DType::f32, epsilon));
}

std::string operand(const KernelCall& call, const std::string& type, size_t slot, const char* name, const char* at) {
  return fmt::format("({}){}", type, load(call.inputs[slot].dtype(), name, at));
}

void store_once(Writer& writer, const ReductionPlan& plan, const KernelCall& call, size_t output,
                const std::string& value) {
  if (output >= call.outputs.size() || !call.outputs[output].is_tensor()) return;
  writer.line("{}{}", plan.by_group ? "if (t == 0) " : "",
              store(call.outputs[output].dtype(), fmt::format("y{}", output), "o", value));
}

std::vector<Parameter> parameters_of(const KernelCall& call, std::initializer_list<const char*> inputs) {
  std::vector<Parameter> list;
  size_t slot = 0;
  for (const char* name : inputs) {
    list.push_back(input_parameter(name, storage_type(call.inputs[slot].dtype()), slot));
    ++slot;
  }
  for (size_t k = 0; k < call.outputs.size(); ++k) {
    if (!call.outputs[k].is_tensor()) continue;
    list.push_back(output_parameter(fmt::format("y{}", k), storage_type(call.outputs[k].dtype()), k));
  }
  return list;
}

}  // namespace

Emitted emit_batch_normalization_of_batch(const KernelCall& call, const Target& target) {
  if (!call.attributes.flag("training_mode")) return refused("given statistics");
  if (!are_floats(call, target)) return refused("dtype");
  const Dims x = call.input_dims(0);
  const Channels channels(x);
  if (channels.extent() == 0) return refused("nothing to average");
  const std::string type = sum_type(call);
  Writer writer(target);
  writer.index().cover(num_elements(x));
  const ReductionPlan plan = plan_reduction(target, channels.count, channels.extent());
  begin_reduction(writer, plan, parameters_of(call, {"x", "scale", "bias", "means", "variances"}), channels.count);
  const auto begin = [&] { write_element_of_channel(writer, channels); };
  const std::string element = operand(call, type, 0, "x", "e");
  write_moments(writer, plan, channels.extent(), type, begin, element);
  writer.line("const {} factor = {} * ({});", type, operand(call, type, 1, "scale", "o"),
              inverse_of(type, channels.extent(), static_cast<double>(call.attributes.real("epsilon"))));
  writer.line("const {} shift = {};", type, operand(call, type, 2, "bias", "o"));
  write_loop(writer, plan, channels.extent(), [&] {
    begin();
    writer.line("{}",
                store(call.outputs[0].dtype(), "y0", "e", fmt::format("({} - average) * factor + shift", element)));
  });
  const std::string momentum =
      fmt::format("({}){}", type, literal(DType::f32, static_cast<double>(call.attributes.real("momentum"))));
  const auto blended = [&](size_t slot, const char* name, const std::string& now) {
    return fmt::format("{0} * {1} + {2} * (1 - {1})", operand(call, type, slot, name, "o"), momentum, now);
  };
  store_once(writer, plan, call, 1, blended(3, "means", "average"));
  store_once(writer, plan, call, 2, blended(4, "variances", fmt::format("squares / ({}){}", type, channels.extent())));
  writer.end();
  return writer.finish();
}

Emitted emit_batch_normalization_grad(const KernelCall& call, const Target& target) {
  if (!are_floats(call, target)) return refused("dtype");
  const Dims x = call.input_dims(0);
  const Channels channels(x);
  if (channels.extent() == 0) return refused("nothing to average");
  const std::string type = sum_type(call);
  Writer writer(target);
  writer.index().cover(num_elements(x));
  const ReductionPlan plan = plan_reduction(target, channels.count, channels.extent());
  begin_reduction(writer, plan, parameters_of(call, {"x", "scale", "gy"}), channels.count);
  const auto begin = [&] { write_element_of_channel(writer, channels); };
  const std::string element = operand(call, type, 0, "x", "e");
  const std::string flow = operand(call, type, 2, "gy", "e");
  write_moments(writer, plan, channels.extent(), type, begin, element);
  writer.line("const {} inverse = {};", type,
              inverse_of(type, channels.extent(), static_cast<double>(call.attributes.real("epsilon"))));
  writer.line("{} of_bias = 0, of_scale = 0;", type);
  write_loop(writer, plan, channels.extent(), [&] {
    begin();
    writer.line("const {} flow = {};", type, flow);
    writer.line("of_bias += flow;");
    writer.line("of_scale += flow * ({} - average) * inverse;", element);
  });
  write_group_total(writer, plan, sum_of(type), "of_bias");
  write_group_total(writer, plan, sum_of(type), "of_scale");
  writer.line("const {} factor = {} * inverse;", type, operand(call, type, 1, "scale", "o"));
  write_loop(writer, plan, channels.extent(), [&] {
    begin();
    const std::string rest =
        fmt::format("(of_bias + ({} - average) * inverse * of_scale) / ({}){}", element, type, channels.extent());
    writer.line("{}", store(call.outputs[0].dtype(), "y0", "e", fmt::format("factor * ({} - {})", flow, rest)));
  });
  store_once(writer, plan, call, 1, "of_scale");
  store_once(writer, plan, call, 2, "of_bias");
  writer.end();
  return writer.finish();
}

namespace {

// Rows of layer_normalization.
struct NormalizedRows {
  int64_t count = 1;
  int64_t extent = 1;
};

NormalizedRows rows_of(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(x.size())));
  NormalizedRows rows;
  for (size_t a = 0; a < x.size(); ++a) (a < axis ? rows.count : rows.extent) *= x[a];
  return rows;
}

// gx, and average and inverse of each row for what follows.
void write_row_gradients(Writer& writer, const KernelCall& call, const NormalizedRows& rows, const std::string& type) {
  const ReductionPlan plan = plan_reduction(writer.target(), rows.count, rows.extent);
  begin_reduction(writer, plan,
                  {input_parameter("x", storage_type(call.inputs[0].dtype()), 0),
                   input_parameter("scale", storage_type(call.inputs[1].dtype()), 1),
                   input_parameter("gy", storage_type(call.inputs[2].dtype()), 2),
                   output_parameter("y0", storage_type(call.outputs[0].dtype())),
                   scratch_parameter("statistics", type == "f64" ? "f64" : "f32")},
                  rows.count);
  const auto begin = [&] { writer.line("const Index e = o * {} + r;", writer.index().literal(rows.extent)); };
  const std::string element = operand(call, type, 0, "x", "e");
  const std::string flow = operand(call, type, 2, "gy", "e") + " * " + operand(call, type, 1, "scale", "r");
  write_moments(writer, plan, rows.extent, type, begin, element);
  writer.line("const {} inverse = {};", type,
              inverse_of(type, rows.extent, static_cast<double>(call.attributes.real("epsilon"))));
  writer.line("{} flows = 0, products = 0;", type);
  write_loop(writer, plan, rows.extent, [&] {
    begin();
    writer.line("const {} flow = {};", type, flow);
    writer.line("flows += flow;");
    writer.line("products += flow * ({} - average) * inverse;", element);
  });
  write_group_total(writer, plan, sum_of(type), "flows");
  write_group_total(writer, plan, sum_of(type), "products");
  write_loop(writer, plan, rows.extent, [&] {
    begin();
    const std::string rest =
        fmt::format("(flows + ({} - average) * inverse * products) / ({}){}", element, type, rows.extent);
    writer.line("{}", store(call.outputs[0].dtype(), "y0", "e", fmt::format("inverse * ({} - {})", flow, rest)));
  });
  const char* first = plan.by_group ? "if (t == 0) " : "";
  writer.line("{}statistics[2 * o] = average;", first);
  writer.line("{}statistics[2 * o + 1] = inverse;", first);
  writer.end();
}

// Sums over the rows, of which a group takes turns: of gscale and gbias, one element each.
void write_column_sums(Writer& writer, const KernelCall& call, const NormalizedRows& rows, const std::string& type) {
  const ReductionPlan plan = plan_reduction(writer.target(), rows.extent, rows.count);
  std::vector<Parameter> parameters{input_parameter("x", storage_type(call.inputs[0].dtype()), 0),
                                    input_parameter("gy", storage_type(call.inputs[2].dtype()), 2),
                                    scratch_parameter("statistics", type == "f64" ? "f64" : "f32")};
  for (size_t k = 1; k < call.outputs.size(); ++k) {
    if (!call.outputs[k].is_tensor()) continue;
    parameters.push_back(output_parameter(fmt::format("y{}", k), storage_type(call.outputs[k].dtype()), k));
  }
  begin_reduction(writer, plan, parameters, rows.extent);
  writer.line("{} of_bias = 0, of_scale = 0;", type);
  write_loop(writer, plan, rows.count, [&] {
    writer.line("const Index e = r * {} + o;", writer.index().literal(rows.extent));
    writer.line("const {} flow = {};", type, operand(call, type, 2, "gy", "e"));
    writer.line("of_bias += flow;");
    writer.line("of_scale += flow * ({} - statistics[2 * r]) * statistics[2 * r + 1];",
                operand(call, type, 0, "x", "e"));
  });
  write_group_total(writer, plan, sum_of(type), "of_bias");
  write_group_total(writer, plan, sum_of(type), "of_scale");
  store_once(writer, plan, call, 1, "of_scale");
  store_once(writer, plan, call, 2, "of_bias");
  writer.end();
}

}  // namespace

Emitted emit_layer_normalization_grad(const KernelCall& call, const Target& target) {
  if (!are_floats(call, target)) return refused("dtype");
  const NormalizedRows rows = rows_of(call);
  if (rows.extent == 0) return refused("rows without elements");
  const std::string type = sum_type(call);
  Writer writer(target);
  writer.index().cover(num_elements(call.input_dims(0)));
  writer.index().cover(2 * rows.count);
  writer.scratch_bytes = static_cast<size_t>(2 * rows.count) * (type == "f64" ? 8 : 4);
  write_row_gradients(writer, call, rows, type);
  const auto has = [&](size_t k) { return k < call.outputs.size() && call.outputs[k].is_tensor(); };
  if (has(1) || has(2)) write_column_sums(writer, call, rows, type);
  return writer.finish();
}

}  // namespace autograph::gpu
