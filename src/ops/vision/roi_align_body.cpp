// Every sample of every bin is a few rows of the image, [pixels, channels], and their weights. How many samples a bin
// has may differ from region to region: then all have as many as the largest needs, and what is too much counts as
// nothing.
#include "ops/vision/roi_align_body.h"

#include <limits>

#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"

namespace autograph {
namespace {

// Two neighbours along an axis and how much each counts.
struct Tap {
  Var index;   // f64, a whole number within the axis
  Var weight;  // f64
};

// The samples of one axis, all f64 or bool [regions, bins, samples of a bin].
struct Samples {
  std::vector<Tap> taps;
  Var is_inside;  // of the image and of the bin
  Var is_sample;  // of the bin: those outside of the image count as 0
  Var count;      // [regions, 1, 1]: of a bin
};

Var column(const Var& rois, int64_t number) { return reshape(slice(rois, {number}, {number + 1}, {1}), {-1, 1, 1}); }

Var steps(const Var& like, const Var& count) {
  return cast(
      range(constant_like(like, Tensor::scalar<int64_t>(0)), count, constant_like(like, Tensor::scalar<int64_t>(1))),
      DType::f64);
}

Var steps(const Var& like, int64_t count) { return steps(like, constant_like(like, Tensor::scalar<int64_t>(count))); }

Samples samples_of(const Attributes& attributes, const Var& low, const Var& high, int64_t bins, int64_t extent) {
  const double scale = attributes.real("spatial_scale");
  const bool is_shifted = attributes.text("coordinate_transformation_mode") == "half_pixel";
  const double shift = is_shifted ? 0.5 : 0.0;
  const auto number = [&](double value) { return scalar_like(low, value); };
  const Var start = low * scale - shift;
  Var size = high * scale - shift - start;
  if (!is_shifted) size = max({size, number(1)});
  const Var bin = size / static_cast<double>(bins);

  Samples samples;
  const int64_t ratio = attributes.integer("sampling_ratio");
  samples.count = ratio > 0 ? low * 0 + static_cast<double>(ratio) : stop_gradient(max({ceil(bin), number(0)}));
  const Var most = ratio > 0 ? constant_like(low, Tensor::scalar(ratio))
                             : cast(max({reduce_max(samples.count, {}, false), number(1)}), DType::i64);
  const Var turn = reshape(steps(low, most), {1, 1, -1});
  const Var step = (turn + 0.5) / max({samples.count, number(1)});
  const Var at = start + bin * (reshape(steps(low, bins), {1, bins, 1}) + step);
  samples.is_sample = logical_and(less(turn, samples.count), equal(at, at));
  const auto last = static_cast<double>(extent - 1);
  const Var is_near = logical_and(greater_or_equal(at, number(-1)), less_or_equal(at, number(last + 1)));
  samples.is_inside = logical_and(samples.is_sample, is_near);
  const Var inside = clip(where(samples.is_inside, at, number(0)), number(0), number(last));
  const Var lower = floor(inside), fraction = inside - lower;
  samples.taps = {{lower, 1 - fraction}, {min({lower + 1, number(last)}), fraction}};
  return samples;
}

// [regions, rows, samples, 1, 1, 1] and [regions, 1, 1, columns, samples, 1].
Var along_rows(const Var& x) { return unsqueeze(x, {3, 4, 5}); }
Var along_columns(const Var& x) { return unsqueeze(x, {1, 2, 5}); }

}  // namespace

std::vector<Var> roi_align_body(DecomposeContext& context) {
  const Var x = context.inputs[0], batch = context.inputs[2];
  const Attributes& attributes = context.attributes;
  const Shape& shape = x.shape();
  if (!shape.has_rank() || !shape[1].is_known() || !shape[2].is_known() || !shape[3].is_known()) {
    throw UnsupportedError("[roi_align] x: expected known extents behind the batch, got " + to_string(shape));
  }
  const int64_t channels = x.dim(1), height = x.dim(2), width = x.dim(3);
  if (channels * height * width == 0) {
    throw UnsupportedError("[roi_align] x: expected elements, got " + to_string(shape));
  }
  const Var rois = cast(context.inputs[1], DType::f64);
  const Samples rows =
      samples_of(attributes, column(rois, 1), column(rois, 3), attributes.integer("output_height"), height);
  const Samples columns =
      samples_of(attributes, column(rois, 0), column(rois, 2), attributes.integer("output_width"), width);

  const Var pixels = reshape(transpose(x, {0, 2, 3, 1}), {-1, channels});
  const Var image = cast(reshape(batch, {-1, 1, 1, 1, 1, 1}), DType::i64) * static_cast<double>(height * width);
  const bool is_largest = attributes.text("mode") == "max";
  const Var is_inside = logical_and(along_rows(rows.is_inside), along_columns(columns.is_inside));
  std::vector<Var> parts;  // [regions, rows, samples, columns, samples, channels]
  for (const Tap& row : rows.taps) {
    for (const Tap& column : columns.taps) {
      const Var index = along_rows(row.index) * static_cast<double>(width) + along_columns(column.index);
      const Var weight = along_rows(row.weight) * along_columns(column.weight);
      const Var position = squeeze(image + cast(index, DType::i64), {5});
      const Var counted = is_largest ? weight : where(is_inside, weight, scalar_like(weight, 0));
      parts.push_back(gather(pixels, position, 0) * cast(counted, x.dtype()));
    }
  }
  const Var count = unsqueeze(rows.count * columns.count, {3});  // [regions, 1, 1, 1]
  Var y;
  if (is_largest) {
    const Var is_sample = logical_and(along_rows(rows.is_sample), along_columns(columns.is_sample));
    const Var nothing = scalar_like(x, -std::numeric_limits<double>::infinity()), zero = scalar_like(x, 0);
    const Var best = where(is_inside, max(parts), where(is_sample, zero, nothing));
    y = where(greater(count, scalar_like(count, 0)), reduce_max(best, {2, 4}, false), zero);
  } else {
    y = reduce_sum(sum(parts), {2, 4}, false) / cast(max({count, scalar_like(count, 1)}), x.dtype());
  }
  return {transpose(y, {0, 3, 1, 2})};
}

}  // namespace autograph
