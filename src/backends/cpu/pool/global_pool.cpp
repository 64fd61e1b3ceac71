// global_average_pool and global_max_pool of f32 whose channels lie beside each other, channels-last and blocked, and
// of row-major planes. Sums beyond the range of f32 are taken again in f64.
//
// The threads share the pixels, not the channels: the kernels before and after (convolutions, elementwise ops) give
// each thread the same rows, so that everyone reads what is in its own second cache. That of another thread is five
// times as far away.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/normalization/pixel_sums.h"
#include "backends/cpu/simd/reduction/row_reduction.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// best[c] = the largest of x[p][c] over all pixels p, if larger; NaN wins, and stays.
AG_MULTIVERSION void max_pixels(const float* x, int64_t pixels, int64_t channels, float* best) {
  for (int64_t p = 0; p < pixels; ++p) {
#pragma omp simd
    for (int64_t c = 0; c < channels; ++c) {
      const float value = x[p * channels + c];
      best[c] = value <= best[c] || best[c] != best[c] ? best[c] : value;
    }
  }
}

class GlobalPoolOfPlanes : public Kernel {
 public:
  GlobalPoolOfPlanes(const KernelCall& call, std::string_view reduction)
      : planes_(call.output_dims(0)[0] * call.output_dims(0)[1]),
        plane_(call.inputs[0].shape().num_elements().value() / planes_),
        reduction_(reduction, plane_) {
    threads_ = useful_threads(call.threads, planes_ * plane_ / 4);
  }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, planes_,
               [&](int64_t begin, int64_t end, int) { reduction_.run(x + begin * plane_, end - begin, y + begin); });
  }

 private:
  const int64_t planes_, plane_;
  const simd::RowReduction reduction_;
  int threads_ = 1;
};

class GlobalPool : public Kernel {
 public:
  explicit GlobalPool(const KernelCall& call) : is_max_(&call.op == &global_max_pool_def()) {
    const Layout layout = call.variant->input(0);
    const Dims x = padded_dims(layout, call.input_dims(0));
    batch_ = x[0];
    channels_ = x[1];
    block_ = layout == Layout::channels_last ? channels_ : channel_block(layout);
    for (size_t a = 2; a < x.size(); ++a) pixels_ *= x[a];
    threads_ = useful_threads(call.threads, batch_ * channels_ * pixels_ / 2);
  }

  // For every thread its share of the result, and sums on the way.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_ * (batch_ + 1) * channels_) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* scratch = static_cast<float*>(args.scratch);
    const int64_t results = batch_ * channels_;
    std::fill_n(scratch, threads_ * results, is_max_ ? -std::numeric_limits<float>::infinity() : 0.0F);
    for_fixed_shares(threads_, pixels_, [&](int64_t begin, int64_t end, int thread) {
      float* sums = scratch + threads_ * results + thread * channels_;
      for (int64_t i = 0; i < results; i += block_) {
        const float* from = x + i * pixels_ + begin * block_;
        float* to = scratch + thread * results + i;
        is_max_ ? max_pixels(from, end - begin, block_, to) : add_pixels(from, end - begin, block_, sums, to);
      }
    });
    for (int t = 1; t < threads_; ++t) {
      is_max_ ? max_pixels(scratch + t * results, 1, results, scratch)
              : add_elements(scratch + t * results, results, scratch);
    }
    float* y = args.outputs[0].mutable_data<float>();
    if (is_max_) {
      std::copy_n(scratch, results, y);
    } else {
      means_of_pixels(scratch, x, results, pixels_, block_, y);
    }
  }

 private:
  bool is_max_;
  int64_t batch_ = 1, channels_ = 1, pixels_ = 1;
  int64_t block_ = 1;  // channels that lie together
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (call.inputs[0].dtype() != DType::f32) return "an input of another dtype than f32";
  return call.inputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

Prepared prepare(const KernelCall& call) {
  if (call.variant->is_row_major()) {
    const OpDef& reduction = &call.op == &global_max_pool_def() ? reduce_max_def() : reduce_mean_def();
    return {std::make_unique<GlobalPoolOfPlanes>(call, reduction.name), ""};
  }
  return {std::make_unique<GlobalPool>(call), ""};
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kBytesPerUs = 30e3;
  const double us = kStartUs + static_cast<double>(size_of(call.inputs[0])) / kBytesPerUs / call.threads;
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us});
  }
  const Dims x = call.input_dims(0);
  const bool has_rows = std::any_of(x.begin() + 2, x.end(), [](int64_t extent) { return extent > 1; });
  if (has_rows) result.push_back({.name = "", .inputs = {}, .outputs = {}, .cost_us = us});
  return result;
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.global_pool", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> global_pool_kernels() {
  return {kernel_for(global_average_pool_def().name), kernel_for(global_max_pool_def().name)};
}

}  // namespace autograph
