// max_roi_pool: one work item an output element, which walks over the elements of its bin.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/checked_index.h"

namespace autograph::gpu {
namespace {

// Where a bin begins (`edge` is its number) or ends (one more, rounded up), clipped to the image; 0 where it is NaN.
constexpr const char* kEdge =
    R"(DEVICE Index edge_of({0} start, {0} size, Index edge, Index bins, i32 is_end, Index extent) {{
  const {0} inside = ({0})edge * size / ({0})bins;
  const {0} c = start + (is_end ? ceil(inside) : floor(inside));
  return c >= 0 ? (c < ({0})extent ? (Index)c : extent) : 0;
}}
)";

}  // namespace

// Corners are rounded, so that they are computed in f64 as the reference's where there is f64.
Emitted emit_max_roi_pool(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const DType real = target.has_f64 ? DType::f64 : DType::f32;
  const Dims x = call.input_dims(0);
  const Dims y = call.output_dims(0);
  const std::string_view type = compute_type(dtype), stored = storage_type(dtype), wide = compute_type(real);
  const std::string scale = literal(real, static_cast<double>(call.attributes.real("spatial_scale")));
  Writer writer(target);
  cover_operands(writer.index(), call);
  const IndexType& index = writer.index();
  writer.fault = fmt::format("[max_roi_pool] batch index: expected 0..{}, got another one in region ", x[0] - 1);
  writer.function(fmt::format(kEdge, wide));
  writer.begin_items({input_parameter("x", stored, 0), input_parameter("regions", stored, 1),
                      output_parameter("y", stored), fault_parameter("faults")},
                     num_elements(y));
  writer.line("const Index region = {};", coordinate(index, "i", y, 0));
  const auto corner = [&](int k) { return load(dtype, "regions", fmt::format("region * 5 + {}", k)); };
  writer.line("const {} image = {};", wide, corner(0));
  writer.open("if (!(image >= 0 && image < {}))", literal(real, static_cast<double>(x[0])));
  write_fault(writer, "region", "return");
  writer.close();
  writer.line("const Index plane = ((Index)image * {} + {}) * {};", index.literal(x[1]), coordinate(index, "i", y, 1),
              index.literal(x[2] * x[3]));
  for (const size_t axis : {size_t{2}, size_t{3}}) {
    const int low = axis == 2 ? 2 : 1;
    writer.line("const {} start{} = round({} * {});", wide, axis, corner(low), scale);
    writer.line("{0} size{1} = round({2} * {3}) - start{1} + 1;", wide, axis, corner(low + 2), scale);
    // Like the larger one of both: what is NaN stays so.
    writer.line("if (size{0} < 1) size{0} = 1;", axis);
    writer.line("const Index bin{} = {};", axis, coordinate(index, "i", y, axis));
    for (const int end : {0, 1}) {
      writer.line("const Index {0}{1} = edge_of(start{1}, size{1}, bin{1} + {2}, {3}, {2}, {4});",
                  end == 0 ? "first" : "last", axis, end, index.literal(y[axis]), index.literal(x[axis]));
    }
  }
  writer.line("{} best = 0;", type);
  writer.line("i32 is_empty = 1;");
  writer.open("for (Index r = first2; r < last2; ++r)");
  writer.open("for (Index c = first3; c < last3; ++c)");
  writer.line("const {} v = {};", type, load(dtype, "x", fmt::format("plane + r * {} + c", index.literal(x[3]))));
  writer.line("if (is_empty || v > best) best = v;");
  writer.line("is_empty = 0;");
  writer.close();
  writer.close();
  writer.line("{}", store(dtype, "y", "i", "best"));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
