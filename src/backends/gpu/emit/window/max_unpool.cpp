// max_unpool. Several elements may belong to one position, and the last one counts, as in the reference: before
// anything is moved, each output element is told which element it gets.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/checked_index.h"
#include "ops/window/window_geometry.h"

namespace autograph::gpu {

Emitted emit_max_unpool(const KernelCall& call, const Target& target) {
  const Dims x = call.input_dims(0), y = call.output_dims(0);
  Writer writer(target);
  cover_operands(writer.index(), call);
  const IndexType& index = writer.index();
  if (index.name() != "i32") return refused("positions of more than 32 bits");  // which not every device compares
  // Indices count in a tensor that is no larger than the output on any axis.
  const WindowSpec spec = window_spec(call.attributes, call.attributes.integers("kernel_shape"));
  Walk place{x, row_major_strides(y), 0};
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    place.extents[axis + 2] = unpooled_extent(spec, axis, x[axis + 2]);
  }
  const int64_t limit = num_elements(place.extents);
  const std::string_view type = raw_type(call.inputs[0].dtype());
  const Parameter source = scratch_parameter("sources", "i32");
  writer.scratch_bytes = static_cast<size_t>(num_elements(y)) * sizeof(int32_t);
  writer.begin_items({source}, num_elements(y));
  writer.line("sources[i] = -1;");
  writer.end();
  writer.fault = fmt::format("[max_unpool] indices: expected 0..{}, got ", limit - 1);
  writer.begin_items({input_parameter("indices", "i64", 1), source, fault_parameter("faults")}, num_elements(x));
  writer.line("const i64 at = indices[i];");
  writer.open("if (at < 0 || at >= {})", limit);
  write_fault(writer, "at", "return");
  writer.close();
  if (limit > 0) writer.line("ATOMIC_MAX(sources + ({}), i);", position(index, "(Index)at", place));
  writer.end();
  writer.begin_items({input_parameter("x", type, 0), source, output_parameter("y", type)}, num_elements(y));
  writer.line("y[i] = sources[i] < 0 ? 0 : x[sources[i]];");
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
