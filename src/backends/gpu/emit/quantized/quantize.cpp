// quantize_linear and dequantize_linear of integers of 8 bits or more: one work item an element.
// dynamic_quantize_linear looks for the range first.
#include <algorithm>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/quantized/quantized.h"
#include "backends/gpu/emit/text/chain.h"
#include "backends/gpu/emit/text/group_reduction.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

constexpr size_t kX = 0, kScale = 1, kZero = 2;

// As text: the place of the scale of element i, see ops/quantize/granularity.h.
std::string scale_place(const IndexType& index, const KernelCall& call) {
  const Dims x = call.input_dims(kX);
  const Dims scale = call.input_dims(kScale);
  const int64_t block = call.attributes.integer("block_size");
  const bool is_blocked = block > 0 && !scale.empty() && scale.size() == x.size();
  if (!is_blocked && num_elements(scale) <= 1) return "0";
  const auto rank = static_cast<int64_t>(x.size());
  const auto axis = rank == 1 ? 0 : static_cast<size_t>(front_axis(call.attributes.integer("axis"), rank));
  const std::string along = coordinate(index, "i", x, axis);
  if (!is_blocked) return along;
  // Blocks of a walk over x are a walk over the scales, but for the axis itself.
  Walk others{x, row_major_strides(scale), 0};
  const int64_t stride = others.strides[axis];
  others.strides[axis] = 0;
  return fmt::format("{} + ({}) / {} * {}", position(index, "i", others), along, index.literal(block),
                     index.literal(stride));
}

bool is_plain_scale(DType dtype) { return is_float(dtype) && dtype != DType::f64; }

struct Begun {
  Writer writer;
  std::string zero;  // as text; "0" where there is none
};

Begun begin_quantization(const KernelCall& call, const Target& target) {
  Begun begun{Writer(target), "0"};
  Writer& w = begun.writer;
  cover_operands(w.index(), call);
  w.index().cover(call.attributes.integer("block_size"));
  std::vector<Parameter> parameters{input_parameter("x", storage_type(call.inputs[kX].dtype()), kX),
                                    input_parameter("scales", storage_type(call.inputs[kScale].dtype()), kScale)};
  if (call.has_input(kZero)) {
    parameters.push_back(input_parameter("zeros", storage_type(call.inputs[kZero].dtype()), kZero));
    begun.zero = "zeros[at]";
  }
  parameters.push_back(output_parameter("y", storage_type(call.outputs[0].dtype())));
  w.begin_items(parameters, num_elements(call.output_dims(0)));
  w.line("const Index at = {};", scale_place(w.index(), call));
  w.line("const f32 scale = {};", load(call.inputs[kScale].dtype(), "scales", "at"));
  return begun;
}

}  // namespace

// The difference is exact as an integer, and rounded once more where it has more than 24 bits, which 32-bit sums alone
// have.
Emitted emit_dequantize(const KernelCall& call, const Target& target) {
  if (!is_plain_integer(call.inputs[kX].dtype())) return refused("elements that are no integers of 8 to 32 bits");
  if (!is_plain_scale(call.inputs[kScale].dtype())) return refused("dtype of the scale");
  Begun begun = begin_quantization(call, target);
  Writer& w = begun.writer;
  w.line("const i64 difference = (i64)x[i] - {};", begun.zero);
  w.line("{}", store(call.outputs[0].dtype(), "y", "i", "(f32)difference * scale"));
  w.end();
  return w.finish();
}

// What is rounded to the precision of a narrow scale is rounded twice, as the reference does.
Emitted emit_quantize(const KernelCall& call, const Target& target) {
  const DType from = call.inputs[kX].dtype();
  const DType to = call.outputs[0].dtype();
  const DType scale = call.inputs[kScale].dtype();
  if (!is_plain_scale(from) || !is_plain_scale(scale)) return refused("dtypes of elements and scale");
  if (!is_plain_integer(to) || element_size(to) > 2) return refused("results that are no integers of 8 or 16 bits");
  DType precision = call.attributes.get_or("precision", DType::undefined);
  if (precision == DType::undefined) precision = scale;
  Begun begun = begin_quantization(call, target);
  Writer& w = begun.writer;
  w.line("const f32 quotient = {} / scale;", load(from, "x", "i"));
  w.line("const f32 shifted = rint({}) + (f32){};", rounded(precision, "quotient"), begun.zero);
  w.line("y[i] = {};", saturated_integer(to, "shifted"));
  w.end();
  return w.finish();
}

namespace {

constexpr size_t kRangeBytes = 2 * sizeof(float);

// The smallest and the largest of what "low" and "high" of a group's items are. NaN is neither.
void write_group_range(Writer& w, const ReductionPlan& plan) {
  const auto choose = [](const char* sign) {
    return [sign](const std::string& a, const std::string& b) {
      return fmt::format("({0} {2} {1} ? {0} : {1})", a, b, sign);
    };
  };
  write_group_total(w, plan, {"f32", "0", choose("<")}, "low");
  write_group_total(w, plan, {"f32", "0", choose(">")}, "high");
}

void write_ranges(Writer& w, int64_t count, int64_t parts, const ReductionPlan& plan) {
  const auto lit = [&](int64_t value) { return w.index().literal(value); };
  w.begin_groups({input_parameter("x", "f32", 0), scratch_parameter("ranges", "f32")}, parts, plan.group_size);
  w.line("f32 low = 0, high = 0;");
  w.open("for (Index i = g * {0} + t; i < {1}; i += {2})", plan.group_size, lit(count),
         lit(parts * static_cast<int64_t>(plan.group_size)));
  w.line("const f32 v = x[i];");
  w.line("if (v < low) low = v;");
  w.line("if (v > high) high = v;");
  w.close();
  write_group_range(w, plan);
  w.open("if (t == 0)");
  w.line("ranges[2 * g] = low;");
  w.line("ranges[2 * g + 1] = high;");
  w.close();
  w.end();
}

void write_scale(Writer& w, const KernelCall& call, int64_t parts, const ReductionPlan& plan, const Parameter& found) {
  std::vector<Parameter> parameters{scratch_parameter("ranges", "f32"), found};
  const auto gives = [&](size_t k) { return k < call.outputs.size() && call.outputs[k].is_tensor(); };
  if (gives(1)) parameters.push_back(output_parameter("scale_output", "f32", 1));
  if (gives(2)) parameters.push_back(output_parameter("zero_output", "u8", 2));
  w.begin_groups(parameters, 1, plan.group_size);
  w.line("f32 low = 0, high = 0;");
  w.open("for (Index r = t; r < {}; r += {})", w.index().literal(parts), plan.group_size);
  w.line("if (ranges[2 * r] < low) low = ranges[2 * r];");
  w.line("if (ranges[2 * r + 1] > high) high = ranges[2 * r + 1];");
  w.close();
  write_group_range(w, plan);
  w.open("if (t == 0)");
  w.line("const f32 scale = (high == low ? 1.0f : high - low) / 255.0f;");
  w.line("const f32 zero = rint(-low / scale);");
  w.line("const u8 saturated = {};", saturated_integer(DType::u8, "zero"));
  w.line("found[0] = scale;");
  w.line("found[1] = saturated;");
  if (gives(1)) w.line("scale_output[0] = scale;");
  if (gives(2)) w.line("zero_output[0] = saturated;");
  w.close();
  w.end();
}

}  // namespace

// In three launches: ranges of parts, the scale of all, the elements.
Emitted emit_dynamic_quantize(const KernelCall& call, const Target& target) {
  const int64_t count = num_elements(call.input_dims(0));
  const ReductionPlan plan{true, group_size_for(target, static_cast<int64_t>(target.max_group))};
  const int64_t parts = choose_parts(target, plan, 1, count);
  Writer w(target);
  w.index().cover(count + parts * static_cast<int64_t>(plan.group_size));
  const size_t ranges_bytes = static_cast<size_t>(parts) * kRangeBytes;
  const Parameter found = scratch_parameter("found", "f32", ranges_bytes);
  w.scratch_bytes = ranges_bytes + kRangeBytes;
  write_ranges(w, count, parts, plan);
  write_scale(w, call, parts, plan, found);
  w.begin_items({input_parameter("x", "f32", 0), found, output_parameter("y", "u8")}, count);
  w.line("const f32 shifted = rint(x[i] / found[0]) + found[1];");
  w.line("y[i] = {};", saturated_integer(DType::u8, "shifted"));
  w.end();
  return w.finish();
}

}  // namespace autograph::gpu
