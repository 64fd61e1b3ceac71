// affine_grid: one work item a number of the grid.
#include "backends/gpu/emit/families.h"

namespace autograph::gpu {
namespace {

// Of element `at` along an axis, in [-1, 1].
std::string grid_coordinate(DType real, const std::string& at, int64_t extent, bool is_aligned) {
  const auto number = [&](int64_t value) { return literal(real, static_cast<double>(value)); };
  const std::string_view type = compute_type(real);
  if (!is_aligned) return fmt::format("({} * ({}){} + 1) / {} - 1", number(2), type, at, number(extent));
  if (extent == 1) return number(0);
  return fmt::format("{} * ({}){} / {} - 1", number(2), type, at, number(extent - 1));
}

}  // namespace

// In f64 as the reference, where there is f64: what samples the grid takes the nearest element.
Emitted emit_affine_grid(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const DType real = target.has_f64 ? DType::f64 : DType::f32;
  const Dims grid = call.output_dims(0);
  const auto rank = static_cast<size_t>(grid.back());
  Writer writer(target);
  cover_operands(writer.index(), call);
  const IndexType& index = writer.index();
  writer.begin_items({input_parameter("theta", storage_type(dtype), 0), output_parameter("grid", storage_type(dtype))},
                     num_elements(grid));
  writer.line("const Index row = ({} * {} + {}) * {};", coordinate(index, "i", grid, 0), rank,
              coordinate(index, "i", grid, rank + 1), rank + 1);
  writer.line("{} total = 0;", compute_type(real));
  for (size_t k = 0; k < rank; ++k) {
    // From the innermost axis outwards.
    const std::string at = fmt::format("({})", coordinate(index, "i", grid, rank - k));
    writer.line("total += {} * ({});", load(dtype, "theta", fmt::format("row + {}", k)),
                grid_coordinate(real, at, grid[rank - k], call.attributes.flag("align_corners")));
  }
  writer.line("total += {};", load(dtype, "theta", fmt::format("row + {}", rank)));
  writer.line("{}", store(dtype, "grid", "i", fmt::format("({})total", compute_type(dtype))));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
