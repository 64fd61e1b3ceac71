// resize: what each output coordinate mixes is known when the kernel is made, and stands in the text as tables.
#include <algorithm>

#include "backends/gpu/emit/families.h"
#include "base/join.h"
#include "ops/vision/resize_grid.h"

namespace autograph::gpu {
namespace {

constexpr size_t kMaxTable = 1 << 14;  // entries of an axis: beyond them the text grows without end
// What every OpenCL device has for tables at least. Those of CUDA lie in the memory of the device.
constexpr size_t kConstantBytes = size_t{64} << 10;

// Index and weight of tap t of output coordinate c at c * taps + t; shorter lists are filled up with weight 0.
struct Table {
  size_t taps = 1;
  std::vector<int64_t> indices;
  std::vector<std::string> weights;
};

std::optional<Table> table_of(const std::vector<ResizeMix>& mixes, DType number) {
  Table table;
  for (const ResizeMix& mix : mixes) table.taps = std::max(table.taps, mix.taps.size());
  if (table.taps * mixes.size() > kMaxTable) return std::nullopt;
  for (const ResizeMix& mix : mixes) {
    if (mix.taps.empty()) return std::nullopt;
    for (size_t t = 0; t < table.taps; ++t) {
      const auto [index, weight] = t < mix.taps.size() ? mix.taps[t] : std::pair(mix.taps[0].first, 0.0);
      table.indices.push_back(index);
      table.weights.push_back(literal(number, weight));
    }
  }
  return table;
}

TensorView known(const KernelCall& call, size_t slot) {
  const Tensor* constant = call.constant(slot);
  return constant ? constant->view() : TensorView();
}

}  // namespace

Emitted emit_resize(const KernelCall& call, const Target& target) {
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    if (call.has_input(slot) && !call.constant(slot)) return refused("a grid that is computed");
  }
  const DType dtype = call.inputs[0].dtype();
  const bool is_nearest = call.attributes.text("mode").starts_with('n');
  if (!is_nearest && (!is_float(dtype) || !can_compute(dtype, target))) return refused("dtype");
  const Dims x = call.input_dims(0);
  const Dims y = call.output_dims(0);
  if (num_elements(x) == 0 || num_elements(y) == 0) return refused("no elements");
  const ResizeInputs inputs{known(call, 1), known(call, 2), known(call, 3)};
  const std::vector<ResizeAxis> axes = resize_axes(call.attributes, x, y, inputs);
  const std::string_view type = is_nearest ? raw_type(dtype) : storage_type(dtype);
  Writer writer(target);
  writer.index().cover(num_elements(x));
  writer.index().cover(num_elements(y));
  const Dims strides = row_major_strides(x);
  // Weights of f64 are as exact as what they weigh.
  const DType number = dtype == DType::f64 ? DType::f64 : DType::f32;
  size_t table_bytes = 0;
  std::vector<Table> tables(axes.size());
  for (size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].is_identity()) continue;
    const auto table = table_of(resize_mixes(call.attributes, axes[a]), number);
    if (!table) return refused("an axis that is long, or is read beyond its ends");
    tables[a] = *table;
    writer.function(fmt::format("CONSTANT i32 index{}[] = {{{}}};\n", a, join(table->indices, ", ")));
    table_bytes += table->indices.size() * sizeof(int32_t);
    if (is_nearest) continue;
    writer.function(
        fmt::format("CONSTANT {} weight{}[] = {{{}}};\n", compute_type(number), a, join(table->weights, ", ")));
    table_bytes += table->weights.size() * compute_bytes(number);
  }
  if (target.dialect == Dialect::opencl && table_bytes > kConstantBytes) {
    return refused(fmt::format("tables of {} bytes, of {} that every device has", table_bytes, kConstantBytes));
  }
  writer.begin_items({input_parameter("x", type, 0), output_parameter("y", type)}, num_elements(y));
  if (!is_nearest) writer.line("{} total = 0;", compute_type(dtype));
  std::string at = "0";
  std::string weight = "1";
  size_t depth = 0;
  for (size_t a = 0; a < axes.size(); ++a) {
    writer.line("const Index c{} = {};", a, coordinate(writer.index(), "i", y, a));
    std::string position = fmt::format("c{}", a);
    if (!axes[a].is_identity()) {
      writer.open("for (i32 t{0} = 0; t{0} < {1}; ++t{0})", a, tables[a].taps);
      ++depth;
      writer.line("const Index e{0} = c{0} * {1} + t{0};", a, tables[a].taps);
      position = fmt::format("index{0}[e{0}]", a);
      weight += fmt::format(" * weight{0}[e{0}]", a);
    }
    at += fmt::format(" + {} * {}", position, writer.index().literal(strides[a]));
  }
  if (is_nearest) {
    writer.line("y[i] = x[{}];", at);
  } else {
    writer.line("total += {} * {};", weight, load(dtype, "x", at));
  }
  for (; depth > 0; --depth) writer.close();
  if (!is_nearest) writer.line("{}", store(dtype, "y", "i", "total"));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
