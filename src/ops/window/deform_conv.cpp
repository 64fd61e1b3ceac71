// deform_conv: a convolution whose taps are moved by learned offsets and scaled by a mask. Tap k of output o reads x at
// o * stride - pad + k * dilation + offset[n, (g * K + k) * rank + axis, o] by linear interpolation between the 2^rank
// neighbours, elements outside x counting as 0; the product is scaled by mask[n, g * K + k, o]. K is the number of taps
// and g the offset group of the input channel.
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/window/conv_loops.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

constexpr size_t kBias = 3;

// Throws unless input `slot` is [N, channels, spatial extents of y...], as far as everything is known.
void check_field(const InferContext& context, size_t slot, const char* name, const Shape& y, int64_t channels) {
  if (!context.has_input(slot) || !context.shape(slot).is_static() || !y.is_static()) return;
  Shape expected = y;
  expected[1] = channels;
  context.require<ShapeError>(context.shape(slot) == expected, name,
                              fmt::format("expected {}, got {}", to_string(expected), to_string(context.shape(slot))));
}

void infer(InferContext& context) {
  const Shape y = infer_conv_shape(context, 0, 1, kBias);
  context.set_output(0, context.dtype(0), y);
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(1);
  const int64_t groups = context.attributes().integer("offset_group");
  const int64_t channels = x.has_rank() ? x[1].value_or(groups) : groups;
  context.require<ValueError>(groups >= 1 && channels % groups == 0, "offset_group",
                              fmt::format("expected a divisor of the {} channels, got {}", channels, groups));
  if (!w.is_static()) return;
  const Dims w_dims = w.static_dims();
  const int64_t taps = checked_mul(checked_product(std::span(w_dims).subspan(2), "deform_conv"), groups, "deform_conv");
  check_field(context, 2, "offset", y, checked_mul(taps, w.rank() - 2, "deform_conv"));
  check_field(context, 4, "mask", y, taps);
}

// x of one channel at a real position, by linear interpolation; 0 outside.
template <class T>
double interpolate(const T* channel, std::span<const WindowAxis> axes, std::span<const double> position) {
  double sum = 0;
  for (size_t corner = 0; corner < size_t{1} << axes.size(); ++corner) {
    double weight = 1;
    int64_t offset = 0;
    for (size_t axis = 0; axis < axes.size() && weight != 0; ++axis) {
      const double low = std::floor(position[axis]);
      const bool upper = (corner >> axis & 1) != 0;
      const double coordinate = upper ? low + 1 : low;
      weight *= upper ? position[axis] - low : low + 1 - position[axis];
      // Written so that NaN counts as outside.
      const bool inside = coordinate >= 0 && coordinate < static_cast<double>(axes[axis].in);
      if (!inside) weight = 0;
      offset = offset * axes[axis].in + (inside ? static_cast<int64_t>(coordinate) : 0);
    }
    if (weight != 0) sum += weight * static_cast<double>(channel[offset]);
  }
  return sum;
}

// Samples of x for one image and output position: [channel][tap], mask applied.
template <class T>
std::vector<double> gather(const OpCall& call, const ConvSizes& sizes, int64_t n, std::span<const int64_t> at,
                           int64_t position) {
  const auto rank = static_cast<int64_t>(sizes.axes.size());
  const int64_t groups = call.attributes.integer("offset_group");
  const int64_t taps = sizes.kernel_positions;
  const T* offsets = call.input(2).data<T>();
  const T* mask = call.input(4).is_present() ? call.input(4).data<T>() : nullptr;
  Dims extents;
  for (const WindowAxis& axis : sizes.axes) extents.push_back(axis.kernel);
  std::vector<double> samples;
  std::vector<double> point(sizes.axes.size());
  for (int64_t c = 0; c < sizes.in_channels; ++c) {
    const int64_t group = c / (sizes.in_channels / groups);
    const T* channel = call.input(0).data<T>() + (n * sizes.in_channels + c) * sizes.in_positions;
    Dims tap(sizes.axes.size(), 0);
    for (int64_t k = 0; k < taps; ++k, next_index(tap, extents)) {
      const int64_t field = (n * groups + group) * taps + k;
      for (int64_t axis = 0; axis < rank; ++axis) {
        const auto a = static_cast<size_t>(axis);
        const WindowAxis& window = sizes.axes[a];
        point[a] = static_cast<double>(at[a] * window.stride - window.pad_begin + tap[a] * window.dilation) +
                   static_cast<double>(offsets[(field * rank + axis) * sizes.out_positions + position]);
      }
      const double scale = mask ? static_cast<double>(mask[field * sizes.out_positions + position]) : 1.0;
      samples.push_back(scale * interpolate(channel, sizes.axes, point));
    }
  }
  return samples;
}

template <class T>
void convolve_deformed(const OpCall& call, const ConvSizes& sizes) {
  const T* weights = call.input(1).data<T>();
  const T* bias = call.input(kBias).is_present() ? call.input(kBias).data<T>() : nullptr;
  T* out = call.output(0).mutable_data<T>();
  const int64_t depth = sizes.in_channels / sizes.group * sizes.kernel_positions;
  for_each_window(sizes.axes, [&](std::span<const int64_t> at, int64_t position) {
    for (int64_t n = 0; n < sizes.batch; ++n) {
      const std::vector<double> samples = gather<T>(call, sizes, n, at, position);
      for (int64_t m = 0; m < sizes.out_channels; ++m) {
        const int64_t first = m / (sizes.out_channels / sizes.group) * depth;
        double sum = bias ? static_cast<double>(bias[m]) : 0.0;
        for (int64_t i = 0; i < depth; ++i) {
          sum += samples[static_cast<size_t>(first + i)] * static_cast<double>(weights[m * depth + i]);
        }
        out[(n * sizes.out_channels + m) * sizes.out_positions + position] = T(sum);
      }
    }
  });
}

void reference(const OpCall& call) {
  const ConvSizes sizes = conv_sizes(call.attributes, call.input(0), call.input(1));
  dispatch<FloatTypes>(call.input(0).dtype(), [&]<class T>(TypeTag<T>) { convolve_deformed<T>(call, sizes); });
}

OpCost cost(const CostContext& context) { return conv_cost(context, 0, 1); }

// ---- Body: how it is differentiated --------------------------------------------------------------------------------

// A neighbour of each sampled point, [N, offset groups, taps, positions]: where it lies in x, and what it counts.
struct Neighbour {
  Var index;   // f64, a whole number within x
  Var weight;  // f64, 0 for what lies outside
};

// Along one axis, both neighbours of points in f64.
std::vector<Neighbour> neighbours(const Var& points, int64_t extent) {
  const auto number = [&](double value) { return scalar_like(points, value); };
  const Var low = floor(points), fraction = points - low;
  std::vector<Neighbour> result;
  for (const auto& [at, weight] : {std::pair(low, 1 - fraction), std::pair(low + 1, fraction)}) {
    const Var inside = logical_and(greater_or_equal(at, number(0)), less(at, number(static_cast<double>(extent))));
    result.push_back({where(inside, at, number(0)), where(inside, weight, number(0))});
  }
  return result;
}

// Where taps lie along an axis without their offsets, [taps, positions].
Tensor tap_positions(const std::vector<WindowAxis>& axes, size_t axis, int64_t taps, int64_t positions) {
  Tensor result = Tensor::empty(DType::f64, {taps, positions});
  Dims extents;
  for (const WindowAxis& each : axes) extents.push_back(each.kernel);
  for_each_window(axes, [&](std::span<const int64_t> at, int64_t position) {
    Dims tap(axes.size(), 0);
    for (int64_t k = 0; k < taps; ++k, next_index(tap, extents)) {
      const WindowAxis& window = axes[axis];
      const int64_t place = at[axis] * window.stride - window.pad_begin + tap[axis] * window.dilation;
      result.mutable_data<double>()[k * positions + position] = static_cast<double>(place);
    }
  });
  return result;
}

// What the shapes of a call say.
struct BodySizes {
  explicit BodySizes(const DecomposeContext& context)
      : channels(context.inputs[0].dim(1)), groups(context.attributes.integer("offset_group")) {
    const Dims x = context.inputs[0].shape().static_dims(), w = context.inputs[1].shape().static_dims();
    axes = resolve_windows(window_spec(context.attributes, Dims(w.begin() + 2, w.end())),
                           std::span<const int64_t>(x).subspan(2));
    for (const WindowAxis& axis : axes) {
      out.push_back(axis.out);
      positions *= axis.out;
      taps *= axis.kernel;
    }
  }

  int64_t channels, groups, positions = 1, taps = 1;
  std::vector<WindowAxis> axes;
  Dims out;
};

// All neighbours of all points, over the axes together.
std::vector<Neighbour> all_neighbours(const DecomposeContext& context, const BodySizes& sizes) {
  const auto rank = static_cast<int64_t>(sizes.axes.size());
  const Var offsets =
      cast(reshape(context.inputs[2], {-1, sizes.groups, sizes.taps, rank, sizes.positions}), DType::f64);
  std::vector<Neighbour> all;
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto a = static_cast<size_t>(axis);
    const Var still = constant_like(offsets, tap_positions(sizes.axes, a, sizes.taps, sizes.positions));
    const Var points = squeeze(slice(offsets, {axis}, {axis + 1}, {3}), {3}) + still;
    const std::vector<Neighbour> along = neighbours(points, sizes.axes[a].in);
    std::vector<Neighbour> product;
    for (const Neighbour& first : all) {
      for (const Neighbour& next : along) {
        product.push_back(
            {first.index * static_cast<double>(sizes.axes[a].in) + next.index, first.weight * next.weight});
      }
    }
    all = axis == 0 ? along : product;
  }
  return all;
}

// Samples of x as the rows of a product with the weights.
std::vector<Var> decompose(DecomposeContext& context) {
  const Var x = context.inputs[0], w = context.inputs[1], mask = context.inputs[4];
  AG_CHECK_USER(x.type().is_static() && w.type().is_static(), UnsupportedError,
                "[deform_conv] body: expected known extents, got {} and {}", to_string(x.type()), to_string(w.type()));
  const BodySizes sizes(context);
  const int64_t of_group = sizes.channels / sizes.groups, points = sizes.taps * sizes.positions;
  const Var pixels = reshape(x, {x.dim(0), sizes.groups, of_group, -1});
  Var samples;
  for (const Neighbour& each : all_neighbours(context, sizes)) {
    Var weight = cast(each.weight, x.dtype());
    if (mask.is_valid()) weight = weight * reshape(mask, {-1, sizes.groups, sizes.taps, sizes.positions});
    const Var index = reshape(cast(each.index, DType::i64), {-1, sizes.groups, 1, points});
    const Var part =
        gather_elements(pixels, expand(index, {1, 1, of_group, 1}), 3) * reshape(weight, {-1, sizes.groups, 1, points});
    samples = samples.is_valid() ? samples + part : part;
  }
  const int64_t group = context.attributes.integer("group"), depth = sizes.channels / group * sizes.taps;
  const Var columns = reshape(samples, {x.dim(0), group, depth, sizes.positions});
  Dims dims{x.dim(0), w.dim(0)};
  dims.insert(dims.end(), sizes.out.begin(), sizes.out.end());
  const Var y = reshape(matmul(reshape(w, {group, w.dim(0) / group, depth}), columns), dims);
  if (!context.inputs[kBias].is_valid()) return {y};
  Dims of_channel(dims.size() - 1, 1);
  of_channel[0] = w.dim(0);
  return {y + reshape(context.inputs[kBias], of_channel)};
}

OpSample sample(Random& random) {
  OpSample result = sample_conv(random);
  result.attributes.erase("auto_pad");
  const Tensor x = result.inputs[0].tensor();
  const Tensor w = result.inputs[1].tensor();
  const int64_t groups = draw_bool(random) ? x.dims()[1] : 1;
  result.attributes.set("offset_group", groups);
  const ConvSizes sizes = conv_sizes(result.attributes, x.view(), w.view());
  const int64_t taps = groups * sizes.kernel_positions;
  Dims offset{sizes.batch, taps * static_cast<int64_t>(sizes.axes.size())};
  for (const WindowAxis& axis : sizes.axes) offset.push_back(axis.out);
  Dims mask = offset;
  mask[1] = taps;
  const Datum bias = result.inputs.size() > 2 ? result.inputs[2] : Datum();
  result.inputs = {x, w, draw_tensor(random, DType::f32, offset), bias};
  if (draw_bool(random)) result.inputs.emplace_back(draw_tensor(random, DType::f32, mask));
  return result;
}

}  // namespace

Var deform_conv(Var x, Var w, Var offset, Var b, Var mask, Attributes attributes) {
  return apply(deform_conv_def(), {x, w, offset, b, mask}, std::move(attributes));
}

const OpDef& deform_conv_def() {
  static const OpDef def{
      .name = "deform_conv",
      .doc = "Convolution whose taps are moved by offsets and scaled by a mask.",
      .inputs = {{"x", "T", "[N, C, spatial...]."},
                 {"w", "T", "[M, C / group, kernel...]."},
                 {"offset", "T", "[N, offset_group * taps * spatial rank, spatial extents of y...]."},
                 {"b", "T", "[M], added to each output channel.", Arity::optional},
                 {"mask", "T", "[N, offset_group * taps, spatial extents of y...]; default 1.", Arity::optional}},
      .outputs = {{"y", "T", "[N, M, spatial...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"strides", AttributeType::integers, "Step of the window on each spatial axis; default 1."},
                     {"pads", AttributeType::integers, "Padding, begins then ends; default 0."},
                     {"dilations", AttributeType::integers, "Distance between window taps; default 1."},
                     {"group", AttributeType::integer, "Number of groups of channels.", int64_t{1}},
                     {"offset_group", AttributeType::integer, "Number of groups of offsets.", int64_t{1}},
                     {"kernel_shape", AttributeType::integers, "Spatial extents of w, when given."}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .cost = cost,
      .onnx = {{.name = "DeformConv", .since = 19}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
