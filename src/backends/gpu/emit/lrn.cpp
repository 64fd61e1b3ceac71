// lrn: one work item an element, which adds up the squares of the channels around its own.
#include <algorithm>

#include "backends/gpu/emit/families.h"

namespace autograph::gpu {

Emitted emit_lrn(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_compute(dtype, target)) return refused("dtype");
  const Dims x = call.input_dims(0);
  const int64_t channels = x[1];
  const int64_t inner = num_elements(Dims(x.begin() + 2, x.end()));
  const int64_t size = call.attributes.integer("size");
  // Windows reach no further than all channels.
  const int64_t before = std::min((size - 1) / 2, channels);
  const int64_t after = std::min(size / 2, channels);
  const std::string_view type = compute_type(dtype);
  const auto number = [&](double value) { return literal(dtype, value); };
  Writer writer(target);
  writer.index().cover(num_elements(x));
  writer.index().cover(2 * channels);
  const auto lit = [&](int64_t value) { return writer.index().literal(value); };
  writer.begin_items({input_parameter("x", storage_type(dtype), 0), output_parameter("y", storage_type(dtype))},
                     num_elements(x));
  writer.line("const Index c = {};", coordinate(writer.index(), "i", x, 1));
  writer.line("const Index first = c < {0} ? -c : -{0};", lit(before));
  writer.line("const Index last = c + {0} < {1} ? {0} : {1} - 1 - c;", lit(after), lit(channels));
  writer.line("{} squares = 0;", type);
  writer.open("for (Index k = first; k <= last; ++k)");
  writer.line("const {} v = {};", type, load(dtype, "x", fmt::format("i + k * {}", lit(inner))));
  writer.line("squares += v * v;");
  writer.close();
  const double alpha = static_cast<double>(call.attributes.real("alpha")) / static_cast<double>(size);
  const std::string base =
      fmt::format("{} + {} * squares", number(static_cast<double>(call.attributes.real("bias"))), number(alpha));
  writer.line("{}", store(dtype, "y", "i",
                          fmt::format("{} / pow({}, {})", load(dtype, "x", "i"), base,
                                      number(static_cast<double>(call.attributes.real("beta"))))));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
