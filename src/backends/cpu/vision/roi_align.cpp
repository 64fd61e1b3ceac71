// roi_align in f32, means of samples. The weights of a sample are those of its row times those of its column: a bin is
// a weighted sum of rows, and of columns of these. What is read of an image is found once for all channels of a region.
#include <algorithm>
#include <vector>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/vision/roi_grid.h"

namespace autograph {
namespace {

// Rows or columns that the samples of the bins of an axis meet, bin after bin.
struct AxisTaps {
  struct Tap {
    int64_t at;
    float weight;
  };
  std::vector<Tap> taps;
  std::vector<size_t> ends;  // of each bin
  int64_t first = 0, last = -1;

  // Kept between regions for its memory. Samples outside of the image are zeros.
  void read(const RoiSpan& span, int64_t bins, int64_t extent) {
    taps.clear();
    ends.clear();
    first = extent;
    last = -1;
    for (int64_t bin = 0; bin < bins; ++bin) {
      for (int64_t i = 0; i < span.grid; ++i) {
        const RoiNeighbours sample = RoiNeighbours::of(span.at(bin, i), extent);
        if (!sample.inside) continue;
        taps.push_back({sample.low, static_cast<float>(1 - sample.fraction)});
        taps.push_back({sample.high, static_cast<float>(sample.fraction)});
        first = std::min(first, sample.low);
        last = std::max(last, sample.high);
      }
      ends.push_back(taps.size());
    }
  }
};

// The sum of rows of an image of `width` columns, `count` of them from the first column that is met.
AG_MULTIVERSION void sum_rows(const float* image, int64_t width, const AxisTaps::Tap* taps, size_t num_taps, float* sum,
                              int64_t count) {
  std::fill_n(sum, count, 0.0F);
  for (size_t t = 0; t < num_taps; ++t) {
    const float* row = image + taps[t].at * width;
    const float weight = taps[t].weight;
    for (int64_t i = 0; i < count; ++i) sum[i] += weight * row[i];
  }
}

// What a region reads: made before work is shared out, for it may be refused.
struct Region {
  int64_t image;
  RoiSpans spans;
};

class RoiAlignKernel : public Kernel {
 public:
  explicit RoiAlignKernel(const KernelCall& call) : attributes_(call.attributes) {
    const Dims x = call.input_dims(0), y = call.output_dims(0);
    images_ = x[0];
    channels_ = x[1];
    height_ = x[2];
    width_ = x[3];
    regions_ = y[0];
    bins_high_ = y[2];
    bins_wide_ = y[3];
    threads_ = useful_threads(call.threads, regions_ * channels_ * bins_high_ * bins_wide_ * 8);
  }

  void run(const KernelArgs& args) const override {
    std::vector<Region> regions;
    for (int64_t r = 0; r < regions_; ++r) regions.push_back(region_at(args, r));
    for_shares(threads_, regions_ * channels_, [&](int64_t begin, int64_t end, int) {
      AxisTaps rows, columns;
      std::vector<float> line;
      while (begin < end) {
        const int64_t r = begin / channels_, last = std::min(end, (r + 1) * channels_);
        const Region& region = regions[static_cast<size_t>(r)];
        rows.read(region.spans.rows, bins_high_, height_);
        columns.read(region.spans.columns, bins_wide_, width_);
        const auto scale = static_cast<float>(1 / std::max(region.spans.count(), 1.0));
        line.resize(static_cast<size_t>(std::max<int64_t>(0, columns.last + 1 - columns.first)));
        for (int64_t c = begin - r * channels_; c < last - r * channels_; ++c) {
          const float* image =
              args.inputs[0].data<float>() + (region.image * channels_ + c) * height_ * width_ + columns.first;
          float* y = args.outputs[0].mutable_data<float>() + (r * channels_ + c) * bins_high_ * bins_wide_;
          align(image, rows, columns, scale, line, y);
        }
        begin = last;
      }
    });
  }

 private:
  Region region_at(const KernelArgs& args, int64_t r) const {
    const float* corners = args.inputs[1].data<float>() + 4 * r;
    return {roi_image(args.inputs[2].data<int64_t>(), r, images_),
            RoiSpans::of(attributes_, {corners[0], corners[1], corners[2], corners[3]}, bins_high_, bins_wide_)};
  }

  // One channel; `image` begins with the first column that is met.
  void align(const float* image, const AxisTaps& rows, const AxisTaps& columns, float scale, std::vector<float>& line,
             float* y) const {
    size_t row = 0;
    for (const size_t end_row : rows.ends) {
      sum_rows(image, width_, rows.taps.data() + row, end_row - row, line.data(), static_cast<int64_t>(line.size()));
      row = end_row;
      size_t column = 0;
      for (const size_t end_column : columns.ends) {
        float sum = 0;
        for (; column < end_column; ++column) {
          sum += columns.taps[column].weight * line[static_cast<size_t>(columns.taps[column].at - columns.first)];
        }
        *y++ = sum * scale;
      }
    }
  }

  Attributes attributes_;
  int64_t images_ = 0, channels_ = 0, height_ = 0, width_ = 0;
  int64_t regions_ = 0, bins_high_ = 0, bins_wide_ = 0;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "not f32";
  if (call.attributes.text("mode") != "avg") return "the largest of samples";
  return call.outputs[0].shape().num_elements().value_or(0) == 0 ? "an empty tensor" : "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<RoiAlignKernel>(call), ""}; }

}  // namespace

KernelDef roi_align_kernel() {
  return {.name = "cpu.roi_align", .op = roi_align_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
