// gather, gather_elements and gather_nd: an index that is out of range is a fault, which the stream reports when it is
// waited for.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/checked_index.h"
#include "ops/defs.h"
#include "ops/shape/axes.h"

namespace autograph::gpu {
namespace {

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
  writer.fault = index_fault(call.op, x[axis]);
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
  write_checked_index(writer, "index", call.inputs[1].dtype(), "indices", position(writer.index(), "i", picked),
                      x[axis], "return");
  writer.line("y[i] = x[{} + (Index)index * {}];", position(writer.index(), "i", source),
              writer.index().literal(strides[axis]));
  writer.end();
  return writer.finish();
}

// One item an element of a slice; each reads the tuple of its slice.
Emitted emit_gather_nd(const KernelCall& call, const Target& target) {
  const Dims x = call.input_dims(0);
  const Dims indices = call.input_dims(1);
  const auto batch_rank = static_cast<size_t>(call.attributes.integer("batch_dims"));
  const auto depth = static_cast<size_t>(indices.back());
  const Dims strides = row_major_strides(x);
  const int64_t length = num_elements(Dims(x.begin() + static_cast<std::ptrdiff_t>(batch_rank + depth), x.end()));
  const int64_t batches = num_elements(Dims(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(batch_rank)));
  const int64_t tuples = num_elements(Dims(indices.begin(), indices.end() - 1));
  Writer writer(target);
  for (const Dims& dims : {x, indices, call.output_dims(0)}) writer.index().cover(num_elements(dims));
  writer.fault = fmt::format("[{}] indices: expected tuples that lie in {}, got ", call.op.name, to_string(x));
  writer.begin_items(parameters_of(call), num_elements(call.output_dims(0)));
  const auto lit = [&](int64_t value) { return writer.index().literal(std::max<int64_t>(value, 1)); };
  writer.line("const Index tuple = i / {};", lit(length));
  const int64_t batch_stride = batch_rank == 0 ? 0 : strides[batch_rank - 1];
  writer.line("Index at = tuple / {} * {} + i % {};", lit(batches == 0 ? 1 : tuples / batches),
              writer.index().literal(batch_stride), lit(length));
  for (size_t k = 0; k < depth; ++k) {
    const std::string name = fmt::format("index{}", k);
    write_checked_index(writer, name, call.inputs[1].dtype(), "indices",
                        fmt::format("tuple * {} + {}", lit(indices.back()), k), x[batch_rank + k], "return");
    writer.line("at += (Index){} * {};", name, writer.index().literal(strides[batch_rank + k]));
  }
  writer.line("y[i] = x[at];");
  writer.end();
  return writer.finish();
}

// One item an element, which reads the step that it changes places with.
Emitted emit_reverse_sequence(const KernelCall& call, const Target& target) {
  const Dims x = call.input_dims(0);
  const auto batch = static_cast<size_t>(front_axis(call.attributes.integer("batch_axis"), std::ssize(x)));
  const auto time = static_cast<size_t>(front_axis(call.attributes.integer("time_axis"), std::ssize(x)));
  const std::string_view type = raw_type(call.inputs[0].dtype());
  Writer writer(target);
  cover_operands(writer.index(), call);
  const IndexType& index = writer.index();
  writer.fault = fmt::format("[reverse_sequence] sequence_lens: expected 0..{}, got ", x[time]);
  writer.begin_items({input_parameter("x", type, 0), input_parameter("lengths", "i64", 1), output_parameter("y", type),
                      fault_parameter("faults")},
                     num_elements(x));
  writer.line("const i64 length = lengths[{}];", coordinate(index, "i", x, batch));
  writer.open("if (length < 0 || length > {})", x[time]);
  write_fault(writer, "length", "return");
  writer.close();
  writer.line("const Index step = {};", coordinate(index, "i", x, time));
  writer.line("const Index other = step < (Index)length ? (Index)length - 1 - step : step;");
  writer.line("y[i] = x[i + (other - step) * {}];", index.literal(row_major_strides(x)[time]));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
