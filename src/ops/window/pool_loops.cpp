#include "ops/window/pool_loops.h"

#include <fmt/core.h>

#include "autograph/ops/window.h"
#include "graph/moved_bytes.h"
#include "ops/sample.h"

namespace autograph {

std::vector<AttributeSpec> pool_attributes(std::vector<AttributeSpec> extra) {
  std::vector<AttributeSpec> specs{
      {"kernel_shape", AttributeType::integers, "Extent of the window on each spatial axis.", std::nullopt, true},
      {"ceil_mode", AttributeType::integer, "1: a partial last window counts too.", int64_t{0}},
  };
  specs.insert(specs.end(), extra.begin(), extra.end());
  return window_attributes(std::move(specs));
}

Attributes pool_options_attributes(const PoolOptions& options) {
  Attributes attributes{{"kernel_shape", options.kernel},
                        {"ceil_mode", int64_t{options.ceil_mode ? 1 : 0}},
                        {"auto_pad", options.auto_pad}};
  if (!options.strides.empty()) attributes.set("strides", options.strides);
  if (!options.pads.empty()) attributes.set("pads", options.pads);
  if (!options.dilations.empty()) attributes.set("dilations", options.dilations);
  return attributes;
}

Shape infer_pool_shape(InferContext& context) {
  const auto spatial_rank = static_cast<int64_t>(context.attributes().integers("kernel_shape").size());
  context.require<ValueError>(spatial_rank >= 1, "kernel_shape", "expected at least one extent, got []");
  context.require_rank(0, spatial_rank + 2);
  check_window_attributes(context, spatial_rank);
  const Shape& x = context.shape(0);
  if (!x.has_rank()) return Shape::of_rank(spatial_rank + 2);
  const WindowSpec spec = window_spec(context.attributes(), context.attributes().integers("kernel_shape"));
  Shape y = x;
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    y[axis + 2] = window_extent(context, spec, static_cast<size_t>(axis), x[axis + 2]);
  }
  return y;
}

std::vector<WindowAxis> pool_windows(const Attributes& attributes, const TensorView& x) {
  return resolve_windows(window_spec(attributes, attributes.integers("kernel_shape")), x.dims().subspan(2));
}

WindowSpec pool_spec(VjpContext& context) {
  const Shape& x = context.in(0).shape();
  if (!x.has_rank() || !x[1].is_known()) {
    context.unsupported("its rule needs a known number of channels, got " + to_string(x));
  }
  return window_spec(context.attributes(), context.attributes().get<Dims>("kernel_shape"));
}

std::vector<float> counted_taps(const WindowAxis& axis, bool includes_pads) {
  std::vector<float> counts;
  for (int64_t o = 0; o < axis.out; ++o) {
    const int64_t before = includes_pads ? axis.pad_begin : 0, after = includes_pads ? axis.pad_end : 0;
    counts.push_back(static_cast<float>(axis.taps_within(o, before, after).count));
  }
  return counts;
}

OpCost pool_cost(const CostContext& context) {
  double taps = 1;
  for (const int64_t extent : context.attributes.integers("kernel_shape")) taps *= static_cast<double>(extent);
  return {.flops = taps * static_cast<double>(*context.outputs[0].shape().num_elements()),
          .bytes = moved_bytes(context)};
}

OpSample sample_pool(Random& random) {
  const int64_t spatial_rank = draw(random, 1, 3);
  Dims x{draw(random, 1, 2), draw(random, 1, 3)};
  Dims kernel;
  Dims strides;
  Dims dilations;
  Dims begins;
  Dims ends;
  for (int64_t axis = 0; axis < spatial_rank; ++axis) {
    kernel.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    strides.push_back(draw(random, 1, 3));
    x.push_back((kernel.back() - 1) * dilations.back() + draw(random, 1, 3));
    // Less than the kernel, so that no window lies in the padding alone.
    begins.push_back(draw(random, 0, kernel.back() - 1));
    ends.push_back(draw(random, 0, kernel.back() - 1));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  OpSample sample;
  sample.attributes = {
      {"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"ceil_mode", draw(random, 0, 1)}};
  const std::string auto_pad =
      draw_one_of<std::string>(random, {"NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  sample.attributes.set("auto_pad", auto_pad);
  if (auto_pad == "NOTSET") sample.attributes.set("pads", begins);
  sample.inputs = {draw_tensor(random, DType::f32, x)};
  return sample;
}

}  // namespace autograph
