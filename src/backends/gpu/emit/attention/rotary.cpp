// rotary_embedding: one work item an element, which reads the other one of its pair, too.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/checked_index.h"
#include "ops/attention/head_layout.h"

namespace autograph::gpu {
namespace {

constexpr size_t kX = 0, kCosines = 1, kSines = 2, kPositions = 3;

// x with its heads as an axis: [batch, heads, length, size], or [batch, length, heads, size].
struct Rotation {
  explicit Rotation(const KernelCall& call) {
    const Dims x = call.input_dims(kX);
    const HeadLayout heads(x, call.attributes.get_or<int64_t>("num_heads", 1));
    is_packed = x.size() == 3;
    dims = is_packed ? Dims{heads.batch, heads.length, heads.heads, heads.size} : x;
    length = heads.length;
    size = heads.size;
    const int64_t given = call.attributes.integer("rotary_embedding_dim");
    rotated = given == 0 ? size : given;
    is_interleaved = call.attributes.flag("interleaved");
    has_positions = call.has_input(kPositions);
  }
  int64_t half() const { return rotated / 2; }
  size_t length_axis() const { return is_packed ? 1 : 2; }

  Dims dims;
  int64_t length = 0, size = 0, rotated = 0;
  bool is_packed = false, is_interleaved = false, has_positions = false;
};

std::vector<Parameter> parameters_of(const KernelCall& call, const Rotation& rotation) {
  const auto input = [&](const char* name, size_t slot) {
    return input_parameter(name, storage_type(call.inputs[slot].dtype()), slot);
  };
  std::vector<Parameter> list{input("x", kX), input("cosines", kCosines), input("sines", kSines)};
  if (rotation.has_positions) list.insert(list.end(), {input("positions", kPositions), fault_parameter("faults")});
  list.push_back(output_parameter("y", storage_type(call.outputs[0].dtype())));
  return list;
}

// "row": of the caches, for the batch and the position of element i.
void write_row(Writer& writer, const KernelCall& call, const Rotation& rotation) {
  const IndexType& index = writer.index();
  writer.line("const Index place = {} * {} + {};", coordinate(index, "i", rotation.dims, 0),
              index.literal(rotation.length), coordinate(index, "i", rotation.dims, rotation.length_axis()));
  if (!rotation.has_positions) return writer.line("const Index row = place;");
  const int64_t extent = call.input_dims(kCosines)[0];
  write_checked_index(writer, "position", call.inputs[kPositions].dtype(), "positions", "place", extent, "return");
  writer.line("const Index row = (Index)position;");
}

// "angle": its place in the caches; "is_second": of its pair; "other": where the other one lies.
void write_pair(Writer& writer, const Rotation& rotation) {
  const IndexType& index = writer.index();
  const std::string half = index.literal(rotation.half());
  if (rotation.is_interleaved) {
    writer.line("const i32 is_second = d % 2 == 1;");
    writer.line("const Index angle = row * {} + d / 2;", half);
    writer.line("const Index other = is_second ? i - 1 : i + 1;");
  } else {
    writer.line("const i32 is_second = d >= {};", half);
    writer.line("const Index angle = row * {0} + (is_second ? d - {0} : d);", half);
    writer.line("const Index other = is_second ? i - {0} : i + {0};", half);
  }
}

}  // namespace

Emitted emit_rotary_embedding(const KernelCall& call, const Target& target) {
  const DType dtype = call.outputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Rotation rotation(call);
  const std::string_view type = compute_type(dtype);
  Writer writer(target);
  cover_operands(writer.index(), call);
  if (rotation.has_positions) {
    const int64_t extent = call.input_dims(kCosines)[0];
    writer.fault = fmt::format("[rotary_embedding] position_ids: expected {}..{}, got ", -extent, extent - 1);
  }
  writer.begin_items(parameters_of(call, rotation), num_elements(rotation.dims));
  writer.line("const Index d = {};", coordinate(writer.index(), "i", rotation.dims, 3));
  const bool copies_rest = rotation.rotated < rotation.size;
  if (copies_rest) writer.open("if (d < {})", writer.index().literal(rotation.rotated));
  write_row(writer, call, rotation);
  write_pair(writer, rotation);
  writer.line("const {} v = {}, w = {};", type, load(dtype, "x", "i"), load(dtype, "x", "other"));
  writer.line("const {} c = {}, s = {};", type, load(dtype, "cosines", "angle"), load(dtype, "sines", "angle"));
  writer.line("{}", store(dtype, "y", "i", "(is_second ? s * w + c * v : c * v - s * w)"));
  if (copies_rest) {
    writer.close();
    writer.line("else y[i] = x[i];");
  }
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
