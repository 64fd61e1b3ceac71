// max_roi_pool: cuts each region of interest [batch, x1, y1, x2, y2] (inclusive corners, scaled by spatial_scale and
// rounded) into pooled_shape bins and takes the maximum of each. Bins reach from floor(i * size / bins) to
// ceil((i + 1) * size / bins), clipped to the image; an empty bin gives 0.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <limits>

#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(0, 4);
  context.require_rank(1, 2);
  const Shape& x = context.shape(0);
  const Shape& rois = context.shape(1);
  const auto& pooled = context.attributes().integers("pooled_shape");
  context.require<ValueError>(pooled.size() == 2 && pooled[0] >= 1 && pooled[1] >= 1, "pooled_shape",
                              "expected two values of 1 or more, got " + bracketed(pooled));
  if (rois.has_rank()) {
    context.require<ShapeError>(rois[1].value_or(5) == 5, "rois", "expected [regions, 5], got " + to_string(rois));
  }
  context.set_output(0, context.dtype(0),
                     Shape{rois.has_rank() ? rois[0] : Dim::unknown(), x.has_rank() ? x[1] : Dim::unknown(),
                           Dim(pooled[0]), Dim(pooled[1])});
}

// A region on one axis: pixels [start, start + size) divided into bins.
struct Span {
  double start;
  double size;

  static Span of(double low, double high, double scale) {
    const double start = std::round(low * scale);
    return {start, std::max(std::round(high * scale) - start + 1, 1.0)};
  }
  int64_t bin_begin(int64_t bin, int64_t bins, int64_t extent) const {
    return clip(start + std::floor(static_cast<double>(bin) * size / static_cast<double>(bins)), extent);
  }
  int64_t bin_end(int64_t bin, int64_t bins, int64_t extent) const {
    return clip(start + std::ceil(static_cast<double>(bin + 1) * size / static_cast<double>(bins)), extent);
  }
  // NaN coordinates give 0.
  static int64_t clip(double position, int64_t extent) {
    return position >= 0 ? static_cast<int64_t>(std::min(position, static_cast<double>(extent))) : 0;
  }
};

template <class T>
void pool_region(const OpCall& call, int64_t region) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const T* roi = call.input(1).data<T>() + region * 5;
  const double scale = call.attributes.real("spatial_scale");
  const double batch = static_cast<double>(roi[0]);
  AG_CHECK_USER(batch >= 0 && batch < static_cast<double>(x.dim(0)), ValueError,
                "[max_roi_pool] batch index: expected 0..{}, got {} (region {})", x.dim(0) - 1, batch, region);
  const Span columns = Span::of(static_cast<double>(roi[1]), static_cast<double>(roi[3]), scale);
  const Span rows = Span::of(static_cast<double>(roi[2]), static_cast<double>(roi[4]), scale);
  const int64_t height = x.dim(2);
  const int64_t width = x.dim(3);
  const int64_t bins = y.dim(2) * y.dim(3);
  for (int64_t i = 0; i < y.dim(1) * bins; ++i) {
    const int64_t bin_row = i % bins / y.dim(3);
    const int64_t bin_column = i % y.dim(3);
    const T* image = x.data<T>() + (static_cast<int64_t>(batch) * x.dim(1) + i / bins) * height * width;
    const int64_t left = columns.bin_begin(bin_column, y.dim(3), width);
    const int64_t right = columns.bin_end(bin_column, y.dim(3), width);
    const T* best = nullptr;
    for (int64_t r = rows.bin_begin(bin_row, y.dim(2), height); r < rows.bin_end(bin_row, y.dim(2), height); ++r) {
      for (int64_t c = left; c < right; ++c) {
        if (!best || image[r * width + c] > *best) best = image + r * width + c;
      }
    }
    y.mutable_data<T>()[region * y.dim(1) * bins + i] = best ? *best : T(0.0F);
  }
}

void reference(const OpCall& call) {
  dispatch<FloatTypes>(call.input(0).dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t region = 0; region < call.input(1).dim(0); ++region) pool_region<T>(call, region);
  });
}

// ---- Body: how it is differentiated ----------------------------------------------------------------------------

// As std::round: halves away from 0.
Var rounded(const Var& x) { return sign(x) * floor(abs(x) + 0.5); }

// Which pixels of an axis belong to a bin: bool [regions, extent]. `number` is the column of the first corner.
Var pixels_of_bin(const Var& rois, int64_t number, double scale, std::pair<int64_t, int64_t> bin_of, int64_t extent) {
  const auto corner = [&](int64_t at) { return rounded(slice(rois, {at}, {at + 1}, {1}) * scale); };
  const auto bins = static_cast<double>(bin_of.second);
  const Var start = corner(number), size = max({corner(number + 2) - start + 1, scalar_like(start, 1)});
  const Var begin = start + floor(size * static_cast<double>(bin_of.first) / bins);
  const Var end = start + ceil(size * static_cast<double>(bin_of.first + 1) / bins);
  std::vector<double> positions(static_cast<size_t>(extent));
  std::iota(positions.begin(), positions.end(), 0.0);
  const Var pixel = constant_like(rois, Tensor::of<double>({1, extent}, positions));
  return logical_and(greater_or_equal(pixel, begin), less(pixel, end));
}

// Each bin is the maximum over its regions' images, what lies outside of the bin hidden.
std::vector<Var> decompose(DecomposeContext& context) {
  const Var x = context.inputs[0], rois = stop_gradient(cast(context.inputs[1], DType::f64));
  const auto& pooled = context.attributes.integers("pooled_shape");
  AG_CHECK_USER(x.type().is_static(), UnsupportedError, "[max_roi_pool] body: expected known extents, got {}",
                to_string(x.type()));
  const double scale = context.attributes.real("spatial_scale");
  const Var images = gather(x, cast(reshape(slice(rois, {0}, {1}, {1}), {-1}), DType::i64), 0);
  const Var hidden = scalar_like(x, -std::numeric_limits<double>::infinity());
  std::vector<Var> bins;
  for (int64_t row = 0; row < pooled[0]; ++row) {
    for (int64_t column = 0; column < pooled[1]; ++column) {
      const Var rows = unsqueeze(pixels_of_bin(rois, 2, scale, {row, pooled[0]}, x.dim(2)), {1, 3});
      const Var columns = unsqueeze(pixels_of_bin(rois, 1, scale, {column, pooled[1]}, x.dim(3)), {1, 2});
      const Var is_inside = logical_and(rows, columns);
      const Var count = reduce_sum(cast(is_inside, x.dtype()), {2, 3});
      const Var best = reduce_max(where(is_inside, images, hidden), {2, 3});
      bins.push_back(where(greater(count, scalar_like(count, 0)), best, scalar_like(best, 0)));
    }
  }
  const Var all = bins.size() == 1 ? bins[0] : concat(bins, 3);
  return {reshape(all, {0, 0, pooled[0], pooled[1]})};
}

OpSample sample(Random& random) {
  const Dims x = draw_dims(random, 4, 4);
  const int64_t regions = draw(random, 1, 3);
  Tensor rois = draw_tensor(random, DType::f32, {regions, 5}, -1.0, 6.0);
  for (int64_t r = 0; r < regions; ++r) {
    rois.mutable_data<float>()[r * 5] = static_cast<float>(draw(random, 0, x[0] - 1));
  }
  return {.inputs = {draw_tensor(random, DType::f32, x), rois},
          .attributes = {{"pooled_shape", Dims{draw(random, 1, 3), draw(random, 1, 3)}},
                         {"spatial_scale", draw_one_of<float>(random, {1.0F, 0.5F})}}};
}

}  // namespace

Var max_roi_pool(Var x, Var regions, std::vector<int64_t> pooled_shape, float spatial_scale) {
  return apply(max_roi_pool_def(), {x, regions},
               {{"pooled_shape", std::move(pooled_shape)}, {"spatial_scale", spatial_scale}});
}

const OpDef& max_roi_pool_def() {
  static const OpDef def{
      .name = "max_roi_pool",
      .doc = "Maximum over each of pooled_shape bins of each region of interest.",
      .inputs = {{"x", "T", "[N, C, H, W]."}, {"rois", "T", "[regions, 5]: batch index, x1, y1, x2, y2."}},
      .outputs = {{"y", "T", "[regions, C, pooled_shape...]."}},
      .types = {{"T", dtypes::kFloat}},
      .attributes = {{"pooled_shape", AttributeType::integers, "Number of bins: rows, columns.", std::nullopt, true},
                     {"spatial_scale", AttributeType::real, "From region coordinates to pixels.", 1.0F}},
      .infer = infer,
      .reference = reference,
      .decompose = decompose,
      .onnx = {{"MaxRoiPool"}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
