// gather and gather_elements: an index that is out of range is a fault, which the stream reports when it is waited for.
#include "backends/gpu/emit/families.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

// Declares `index`, counted from the front; leaves the kernel where it is out of range.
void write_index(Writer& writer, DType dtype, const std::string& at, int64_t extent) {
  writer.line("const i64 given = ({})indices[{}];", compute_type(dtype), at);
  writer.line("i64 index = given;");
  writer.line("if (index < 0) index += {};", extent);
  writer.open("if (index < 0 || index >= {})", extent);
  writer.line("faults[0] = 1;");
  writer.line("faults[1] = given;");
  writer.line("return;");
  writer.close();
}

std::vector<Parameter> parameters_of(const KernelCall& call) {
  const std::string_view type = raw_type(call.inputs[0].dtype());
  return {input_parameter("x", type, 0), input_parameter("indices", storage_type(call.inputs[1].dtype()), 1),
          output_parameter("y", type), fault_parameter("faults")};
}

}  // namespace

Emitted emit_gather(const KernelCall& call, const Target& target) {
  const Dims x = call.input_dims(0);
  const Dims indices = call.input_dims(1);
  const Dims out = call.output_dims(0);
  const auto axis = static_cast<size_t>(front_axis(call.attributes.integer("axis"), static_cast<int64_t>(x.size())));
  const bool by_element = &call.op == &gather_elements_def();
  Writer writer(target);
  for (const Dims& dims : {x, indices, out}) writer.index().cover(num_elements(dims));
  writer.fault = fmt::format("[{}] indices: expected {}..{}, got ", call.op.name, -x[axis], x[axis] - 1);
  writer.begin_items(parameters_of(call), num_elements(out));
  const Dims strides = row_major_strides(x);
  Walk source{out, Dims(out.size(), 0), 0};
  Walk picked{out, Dims(out.size(), 0), 0};
  if (by_element) {
    picked.strides = row_major_strides(out);
    source.strides = strides;
    source.strides[axis] = 0;
  } else {
    // The axis is replaced by the dims of indices.
    const Dims index_strides = row_major_strides(indices);
    for (size_t a = 0; a < axis; ++a) source.strides[a] = strides[a];
    for (size_t a = 0; a < indices.size(); ++a) picked.strides[axis + a] = index_strides[a];
    for (size_t a = axis + 1; a < x.size(); ++a) source.strides[a - 1 + indices.size()] = strides[a];
  }
  write_index(writer, call.inputs[1].dtype(), position(writer.index(), "i", picked), x[axis]);
  writer.line("y[i] = x[{} + (Index)index * {}];", position(writer.index(), "i", source),
              writer.index().literal(strides[axis]));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
