// col2im: one work item a pixel, which adds up the elements of all windows that it lies in.
#include <algorithm>

#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/known_integers.h"
#include "backends/gpu/emit/text/product.h"
#include "backends/gpu/emit/text/window.h"

namespace autograph::gpu {

Emitted emit_col2im(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  const std::string type = product_type(dtype);  // integers wrap around
  const auto block = known_integers(call, 2);
  if (!can_compute(dtype, target) || type.empty()) return refused("dtype");
  if (!block) return refused("windows whose extents are computed");
  const Dims y = call.output_dims(0);
  const WindowSpec spec = window_spec(call.attributes, *block);
  const std::vector<WindowAxis> axes = resolve_windows(spec, std::span<const int64_t>(y).subspan(2));
  Writer writer(target);
  cover_operands(writer.index(), call);
  cover_windows(writer.index(), axes);
  const auto lit = [&](int64_t value) { return writer.index().literal(std::max<int64_t>(value, 1)); };
  const int64_t pixels = num_elements(in_extents(axes));
  writer.begin_items({input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                     num_elements(y));
  writer.line("const Index place = i % {0}, plane = i / {0};", lit(pixels));
  writer.line("{} total = 0;", type);
  write_windows_over(writer, axes, "place", [&] {
    writer.line("total += ({}){};", type,
                load(dtype, "x",
                     fmt::format("(plane * {} + k) * {} + o", lit(num_elements(spec.kernel)),
                                 lit(num_elements(out_extents(axes))))));
  });
  writer.line("{}", store(dtype, "y", "i", fmt::format("({})total", compute_type(dtype))));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
