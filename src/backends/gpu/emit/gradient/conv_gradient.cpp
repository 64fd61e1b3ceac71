// conv_grad_weight: for each group a product of gy, [channels of gy, batch * positions], and x as its windows show it,
// [batch * positions, channels of x * taps]. Weights are few and positions many, so that they are cut into parts that
// are multiplied beside each other and added up afterwards, in the same order each time.
#include "backends/gpu/emit/families.h"
#include "backends/gpu/emit/text/product.h"
#include "backends/gpu/emit/text/window.h"
#include "ops/window/conv_gradients.h"

namespace autograph::gpu {
namespace {

constexpr int64_t kTileSide = 64;  // of a product, see write_product()
constexpr int64_t kGroupsThatFill = 256;
constexpr int64_t kShortestPart = 256;  // positions

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

struct WeightGradient {
  std::vector<WindowAxis> axes;
  int64_t batch, groups, in_channels, out_channels;  // channels of a group
  int64_t taps, in_positions, out_positions;
  int64_t parts, part;  // how many, and positions of each

  explicit WeightGradient(const KernelCall& call) {
    const Dims x = call.input_dims(0);
    const Dims gy = call.input_dims(1);
    const Dims w = call.output_dims(0);
    axes = conv_grad_weight_windows(call.attributes, x, gy);
    batch = x[0];
    groups = call.attributes.integer("group");
    in_channels = w[1];
    out_channels = w[0] / groups;
    taps = num_elements(kernel_extents(axes));
    in_positions = num_elements(in_extents(axes));
    out_positions = num_elements(out_extents(axes));
    const int64_t tiles = groups * ceil_div(out_channels, kTileSide) * ceil_div(in_channels * taps, kTileSide);
    const int64_t all = batch * out_positions;
    const int64_t wanted = std::min(ceil_div(kGroupsThatFill, std::max<int64_t>(tiles, 1)), all / kShortestPart);
    part = ceil_div(all, std::max<int64_t>(wanted, 1));
    parts = part == 0 ? 1 : ceil_div(all, part);
  }
};

Product product_of(Writer& writer, const KernelCall& call, const WeightGradient& grad, const std::string& target) {
  const DType dtype = call.inputs[0].dtype();
  const auto lit = [&writer](int64_t value) { return writer.index().literal(value); };
  Product product;
  product.batches = grad.groups * grad.parts;  // the parts of a group behind each other
  product.rows = grad.out_channels;
  product.columns = grad.in_channels * grad.taps;
  product.inner = grad.part;
  product.type = product_type(dtype);
  const int64_t all = grad.batch * grad.out_positions;
  const bool is_cut = grad.parts > 1;
  // Position of an inner index among all, and whether it lies behind their end.
  const auto position_in = [=](const std::string& b, const std::string& k) {
    return is_cut ? fmt::format("({} % {} * {} + {})", b, lit(grad.parts), lit(grad.part), k) : k;
  };
  const bool has_end = is_cut && grad.parts * grad.part > all;
  product.left = [=, &writer](const std::string& b, const std::string& m, const std::string& k) {
    writer.line("const Index at = {};", position_in(b, k));
    const std::string channel = fmt::format("({} / {} * {} + {})", b, lit(grad.parts), lit(grad.out_channels), m);
    const std::string element = load(dtype, "gy",
                                     fmt::format("(at / {0} * {1} + {2}) * {0} + at % {0}", lit(grad.out_positions),
                                                 lit(grad.groups * grad.out_channels), channel));
    return has_end ? fmt::format("(at < {} ? {} : 0)", lit(all), element) : element;
  };
  product.right = [=, &writer](const std::string& b, const std::string& k, const std::string& column) {
    writer.line("const Index at = {};", position_in(b, k));
    writer.line("const Index o = at % {}, n = at / {};", lit(grad.out_positions), lit(grad.out_positions));
    writer.line("const Index c = {0} / {1}, k = {0} % {1};", column, lit(grad.taps));
    const TapText tap = write_tap(writer, grad.axes, "o", "k");
    const std::string channel = fmt::format("({} / {} * {} + c)", b, lit(grad.parts), lit(grad.in_channels));
    const std::string element = load(dtype, "x",
                                     fmt::format("(n * {} + {}) * {} + {}", lit(grad.groups * grad.in_channels),
                                                 channel, lit(grad.in_positions), tap.position));
    std::string condition = tap.inside;
    if (has_end) condition += (condition.empty() ? "" : " && ") + fmt::format("at < {}", lit(all));
    return condition.empty() ? element : fmt::format("({} ? {} : 0)", condition, element);
  };
  product.write = [=, &writer](const std::string& b, const std::string& m, const std::string& n,
                               const std::string& sum) {
    const std::string at = fmt::format("(({0} / {1} * {2} + {3}) * {4} + {5})", b, lit(grad.parts),
                                       lit(grad.out_channels), m, lit(product.columns), n);
    if (!is_cut) {
      writer.line("{}", store(dtype, target, at, sum));
    } else {
      writer.line("{}[{} * {} + {} % {}] = {};", target, at, lit(grad.parts), b, lit(grad.parts), sum);
    }
  };
  return product;
}

}  // namespace

Emitted emit_conv_grad_weight(const KernelCall& call, const Target& target) {
  const DType dtype = call.inputs[0].dtype();
  if (!can_multiply(dtype, target)) return refused("dtype");
  const WeightGradient grad(call);
  const int64_t weights = num_elements(call.output_dims(0));
  Writer writer(target);
  for (const Dims& dims : {call.input_dims(0), call.input_dims(1)}) writer.index().cover(num_elements(dims));
  writer.index().cover(weights * grad.parts);
  writer.index().cover(grad.parts * grad.part + kTileSide);
  cover_windows(writer.index(), grad.axes);
  const std::string type = product_type(dtype);
  const std::string_view kept = compute_type(dtype);
  std::vector<Parameter> parameters{input_parameter("x", storage_type(dtype), 0),
                                    input_parameter("gy", storage_type(dtype), 1)};
  const bool is_cut = grad.parts > 1;
  parameters.push_back(is_cut ? scratch_parameter("sums", kept) : output_parameter("y", storage_type(dtype)));
  write_product(writer, parameters, product_of(writer, call, grad, is_cut ? "sums" : "y"));
  if (!is_cut) return writer.finish();
  writer.scratch_bytes =
      static_cast<size_t>(weights * grad.parts) * element_size(dtype == DType::f64 ? dtype : DType::f32);
  writer.begin_items({scratch_parameter("sums", kept), output_parameter("y", storage_type(dtype))}, weights);
  writer.line("{} total = 0;", type);
  writer.line("for (Index part = 0; part < {0}; ++part) total += sums[i * {0} + part];",
              writer.index().literal(grad.parts));
  writer.line("{}", store(dtype, "y", "i", "total"));
  writer.end();
  return writer.finish();
}

}  // namespace autograph::gpu
