// conv_transpose whose windows lie side by side (strides as large as the kernel, no padding), row-major: a matrix
// product of the weights, seen as [C, M * taps], and the pixels, whose rows are then laid side by side.
//
// The product goes by rows of the image, as many as keep its result in the second cache.
#include <algorithm>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "base/check.h"
#include "ops/defs.h"
#include "ops/window/conv_transpose_windows.h"

namespace autograph::onednn {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

// y[width * i + b] = rows[b][i] + bias for the `width` rows, `stride` apart.
AG_MULTIVERSION void lay_side_by_side(const float* rows, int64_t stride, int64_t width, int64_t count, float bias,
                                      float* y) {
  if (width == 2) {
    const float* second = rows + stride;
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      y[2 * i] = rows[i] + bias;
      y[2 * i + 1] = second[i] + bias;
    }
    return;
  }
  for (int64_t b = 0; b < width; ++b) {
    for (int64_t i = 0; i < count; ++i) y[width * i + b] = rows[b * stride + i] + bias;
  }
}

class ConvTransposeProduct : public Kernel {
 public:
  explicit ConvTransposeProduct(const KernelCall& call) {
    const Dims x = call.input_dims(kX), w = call.input_dims(kW);
    batch_ = x[0];
    channels_ = x[1];
    height_ = x.size() == 4 ? x[2] : 1;
    width_ = x.back();
    out_channels_ = w[1];
    tap_rows_ = w.size() == 4 ? w[2] : 1;
    tap_columns_ = w.back();
    constexpr int64_t kMostElements = int64_t{1} << 19;  // 2 MiB
    rows_ = std::clamp<int64_t>(kMostElements / (products() * width_), 1, height_);
    threads_ = useful_threads(call.threads, products() * rows_ * width_);
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(products() * rows_ * width_) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[kX].data<float>();
    const float* w = args.inputs[kW].data<float>();
    const float* bias =
        args.inputs.size() > kB && args.inputs[kB].is_present() ? args.inputs[kB].data<float>() : nullptr;
    float* y = args.outputs[0].mutable_data<float>();
    float* result = static_cast<float*>(args.scratch);
    const int64_t pixels = height_ * width_;
    for (int64_t n = 0; n < batch_; ++n) {
      for (int64_t row = 0; row < height_; row += rows_) {
        const int64_t rows = std::min(rows_, height_ - row), count = rows * width_;
        const dnnl_status_t status = dnnl_sgemm('T', 'N', products(), count, channels_, 1, w, products(),
                                                x + n * channels_ * pixels + row * width_, pixels, 0, result, count);
        AG_CHECK(status == dnnl_success, "dnnl_sgemm: {}", static_cast<int>(status));
        write_rows(result, row, rows, bias, y + n * out_channels_ * pixels * tap_rows_ * tap_columns_);
      }
    }
  }

 private:
  // Rows of the matrix of weights: [M, tap rows, tap columns].
  int64_t products() const { return out_channels_ * tap_rows_ * tap_columns_; }

  void write_rows(const float* result, int64_t first, int64_t rows, const float* bias, float* y) const {
    const int64_t count = rows * width_, line = width_ * tap_columns_;
    for_shares(threads_, out_channels_ * tap_rows_, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t channel = i / tap_rows_;
        float* to = y + ((channel * height_ + first) * tap_rows_ + i % tap_rows_) * line;
        const float* from = result + i * tap_columns_ * count;
        for (int64_t r = 0; r < rows; ++r) {
          lay_side_by_side(from + r * width_, count, tap_columns_, width_, bias ? bias[channel] : 0,
                           to + r * tap_rows_ * line);
        }
      }
    });
  }

  int64_t batch_ = 1, channels_ = 1, height_ = 1, width_ = 1;
  int64_t out_channels_ = 1, tap_rows_ = 1, tap_columns_ = 1;
  int64_t rows_ = 1;  // of the image that are multiplied at a time
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  const Dims x = call.input_dims(kX), w = call.input_dims(kW), y = call.output_dims(0);
  if (x.size() < 3 || x.size() > 4) return "1 or 2 spatial dims only";
  if (call.attributes.integer("group") != 1) return "groups";
  const std::vector<WindowAxis> axes = conv_transpose_windows(call.attributes, x, w);
  for (size_t a = 0; a < axes.size(); ++a) {
    const bool side_by_side = axes[a].stride == axes[a].kernel && axes[a].dilation == 1 && axes[a].pad_begin == 0 &&
                              y[a + 2] == x[a + 2] * axes[a].kernel;
    if (!side_by_side) return "windows that do not lie side by side";
  }
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<ConvTransposeProduct>(call), ""}; }

std::vector<KernelVariant> variants(const KernelCall& call) {
  // Measured with AVX-512 and with AVX2, on other machines.
  const double flops_per_us = native_block() == Layout::blocked16 ? 80e3 : 90e3;
  constexpr double kBytesPerUs = 15e3;
  constexpr double kStartUs = 4;
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  const double us = (cost.flops / flops_per_us + cost.bytes / kBytesPerUs) / call.threads;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = kStartUs + us}};
}

}  // namespace

KernelDef conv_transpose_product_kernel() {
  return {.name = "cpu.conv_transpose_product_onednn",
          .op = conv_transpose_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::onednn
