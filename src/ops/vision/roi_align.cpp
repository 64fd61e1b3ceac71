// roi_align: pools regions of interest [x1, y1, x2, y2] (times spatial_scale) into output_height x output_width bins.
// Each bin takes the mean (or, mode max, the largest weighted corner) of samples on a regular grid, read by bilinear
// interpolation; samples more than one element outside the image are 0. sampling_ratio fixes the grid per bin; 0 means
// ceil(bin size). half_pixel shifts coordinates by -0.5; output_half_pixel does not and makes regions at least 1 wide.
#include <algorithm>
#include <cmath>

#include "autograph/foreign_node.h"
#include "autograph/op_def.h"
#include "autograph/ops/vision.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/vision/roi_align_body.h"
#include "ops/vision/roi_grid.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

void infer(InferContext& context) {
  context.require_rank(0, 4);
  context.require_rank(1, 2);
  context.require_rank(2, 1);
  const Shape& x = context.shape(0);
  const Shape& rois = context.shape(1);
  for (const char* name : {"output_height", "output_width"}) {
    const int64_t value = context.attributes().integer(name);
    context.require<ValueError>(value >= 1, name, "expected 1 or more, got " + std::to_string(value));
  }
  const int64_t ratio = context.attributes().integer("sampling_ratio");
  context.require<ValueError>(ratio >= 0 && ratio <= static_cast<int64_t>(kMostRoiGrid), "sampling_ratio",
                              "expected 0..65536, got " + std::to_string(ratio));
  if (rois.has_rank()) {
    context.require<ShapeError>(rois[1].value_or(4) == 4, "rois", "expected [regions, 4], got " + to_string(rois));
    const Shape& batch = context.shape(2);
    const bool fits = !batch.has_rank() || !rois[0].is_known() || batch[0].value_or(rois[0].value()) == rois[0].value();
    context.require<ShapeError>(fits, "batch_indices",
                                "expected one per region " + to_string(rois) + ", got " + to_string(batch));
  }
  context.set_output(
      0, context.dtype(0),
      Shape{rois.has_rank() ? rois[0] : Dim(), x.has_rank() ? x[1] : Dim(),
            Dim(context.attributes().integer("output_height")), Dim(context.attributes().integer("output_width"))});
}

struct Corners {
  int64_t offset[4];
  double weight[4];
};

// All samples of one bin that are inside the image.
std::vector<Corners> samples_of(const RoiSpan& rows, const RoiSpan& columns, int64_t row, int64_t column,
                                const TensorView& x) {
  std::vector<Corners> samples;
  for (int64_t i = 0; i < rows.grid; ++i) {
    const RoiNeighbours y = RoiNeighbours::of(rows.at(row, i), x.dim(2));
    for (int64_t j = 0; y.inside && j < columns.grid; ++j) {
      const RoiNeighbours c = RoiNeighbours::of(columns.at(column, j), x.dim(3));
      if (!c.inside) continue;
      const int64_t width = x.dim(3);
      samples.push_back(
          {{y.low * width + c.low, y.low * width + c.high, y.high * width + c.low, y.high * width + c.high},
           {(1 - y.fraction) * (1 - c.fraction), (1 - y.fraction) * c.fraction, y.fraction * (1 - c.fraction),
            y.fraction * c.fraction}});
    }
  }
  return samples;
}

template <class T>
double pool(const std::vector<Corners>& samples, const T* image, bool largest, double count) {
  double sum = 0;
  double best = samples.empty() ? 0 : -std::numeric_limits<double>::infinity();
  for (const Corners& sample : samples) {
    for (int k = 0; k < 4; ++k) {
      const double value = sample.weight[k] * static_cast<double>(image[sample.offset[k]]);
      sum += value;
      best = std::max(best, value);
    }
  }
  // Samples outside the image are zeros, and take part in the maximum.
  if (static_cast<double>(samples.size()) < count) best = std::max(best, 0.0);
  return largest ? best : sum / std::max(count, 1.0);
}

template <class T>
void align_region(const OpCall& call, int64_t region) {
  const TensorView x = call.input(0);
  const TensorView y = call.output(0);
  const int64_t batch = roi_image(call.input(2).data<int64_t>(), region, x.dim(0));
  const T* roi = call.input(1).data<T>() + region * 4;
  const auto corner = [roi](int i) { return static_cast<double>(roi[i]); };
  const auto spans = RoiSpans::of(call.attributes, {corner(0), corner(1), corner(2), corner(3)}, y.dim(2), y.dim(3));
  const bool largest = call.attributes.text("mode") == "max";
  const int64_t pixels = x.dim(2) * x.dim(3);
  const int64_t bins = y.dim(2) * y.dim(3);
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto samples = samples_of(spans.rows, spans.columns, bin / y.dim(3), bin % y.dim(3), x);
    for (int64_t c = 0; c < x.dim(1); ++c) {
      const T* image = x.data<T>() + (batch * x.dim(1) + c) * pixels;
      y.mutable_data<T>()[(region * x.dim(1) + c) * bins + bin] = T(pool(samples, image, largest, spans.count()));
    }
  }
}

void reference(const OpCall& call) {
  dispatch<FloatTypes>(call.input(0).dtype(), [&]<class T>(TypeTag<T>) {
    for (int64_t region = 0; region < call.input(1).dim(0); ++region) align_region<T>(call, region);
  });
}

// Before opset 16 there was no coordinate shift.
std::vector<ValueId> import_onnx(ForeignNode& node) {
  if (node.opset < 16) node.attributes.set("coordinate_transformation_mode", std::string("output_half_pixel"));
  return node.emit();
}

OpSample sample(Random& random) {
  const Dims x = draw_dims(random, 4, 4);
  const int64_t regions = draw(random, 1, 3);
  Tensor rois = draw_tensor(random, DType::f32, {regions, 4}, 0.0, 2.0);
  for (int64_t r = 0; r < regions; ++r) {
    rois.mutable_data<float>()[r * 4 + 2] += 2.0F;
    rois.mutable_data<float>()[r * 4 + 3] += 2.0F;
  }
  return {.inputs = {draw_tensor(random, DType::f32, x), rois,
                     draw_tensor(random, DType::i64, {regions}, 0, static_cast<double>(x[0] - 1))},
          .attributes = {{"output_height", draw(random, 1, 3)},
                         {"output_width", draw(random, 1, 3)},
                         {"sampling_ratio", draw(random, 0, 2)},
                         {"mode", draw_one_of<std::string>(random, {"avg", "max"})},
                         {"coordinate_transformation_mode",
                          draw_one_of<std::string>(random, {"half_pixel", "output_half_pixel"})}}};
}

}  // namespace

Var roi_align(Var x, Var regions, Var batch_indices, Attributes attributes) {
  return apply(roi_align_def(), {x, regions, batch_indices}, std::move(attributes));
}

const OpDef& roi_align_def() {
  static const OpDef def{
      .name = "roi_align",
      .doc = "Pools regions of interest by bilinear samples on a regular grid.",
      .inputs = {{"x", "T1", "[N, C, H, W]."},
                 {"rois", "T1", "[regions, 4]: x1, y1, x2, y2."},
                 {"batch_indices", "T2", "[regions]: image of each region."}},
      .outputs = {{"y", "T1", "[regions, C, output_height, output_width]."}},
      .types = {{"T1", dtypes::kFloat}, {"T2", dtypes::kI64}},
      .attributes = {{"output_height", AttributeType::integer, "Rows of bins.", int64_t{1}},
                     {"output_width", AttributeType::integer, "Columns of bins.", int64_t{1}},
                     {"sampling_ratio", AttributeType::integer, "Samples per bin and axis; 0: adaptive.", int64_t{0}},
                     {"spatial_scale", AttributeType::real, "From region coordinates to elements.", 1.0F},
                     {"mode", AttributeType::text, "How samples combine.", std::string("avg"), false, {"avg", "max"}},
                     {"coordinate_transformation_mode",
                      AttributeType::text,
                      "Shift coordinates by half an element or not.",
                      std::string("half_pixel"),
                      false,
                      {"half_pixel", "output_half_pixel"}}},
      .infer = infer,
      .reference = reference,
      .decompose = roi_align_body,
      .onnx = {{.name = "RoiAlign", .since = 10, .import = import_onnx, .export_since = 16}},
      .sample = sample,
  };
  return def;
}

}  // namespace autograph
