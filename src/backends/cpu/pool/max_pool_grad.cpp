// max_pool_grad over f32 in any layout: the maximum of each window is looked for again, over channels that lie beside
// each other at once, and what flows into it is added where it was found. Who computes a channel computes all of it, so
// that sums come in one order.
#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/window/pool_loops.h"
#include "tensor/size_of.h"

// Inlined into multiversioned functions, so that it is compiled for their instruction sets.
#define AG_INLINE inline __attribute__((always_inline))

namespace autograph {
namespace {

// Channels computed at once at most.
constexpr int64_t kStrip = 16;

// A strip of channels of one image.
struct Strip {
  const float* x;
  float* gx;
  int64_t pixel;  // elements from one pixel to the next
  int64_t width;  // channels
};

// An integer that is larger for larger x, the same for both zeros, and largest for NaN: comparing floats, which may
// trap, keeps the compiler from using vectors.
AG_INLINE int32_t order_of(float x) {
  const auto bits = std::bit_cast<int32_t>(x + 0.0F);
  const int32_t ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF);
  return (bits & 0x7FFFFFFF) > 0x7F800000 ? 0x7FFFFFFF : ordered;
}

// One window, whose taps are offsets from the first pixel. Of equal elements the first one counts, NaN before all.
template <int Width>
AG_INLINE void add_window(const Strip& strip, const int64_t* taps, int64_t count, const float* g) {
  int32_t best[Width];
  int32_t winner[Width];
#pragma omp simd
  for (int c = 0; c < Width; ++c) {
    best[c] = order_of(strip.x[taps[0] + c]);
    winner[c] = 0;
  }
  for (int64_t t = 1; t < count; ++t) {
    const float* x = strip.x + taps[t];
#pragma omp simd
    for (int c = 0; c < Width; ++c) {
      const int32_t order = order_of(x[c]);
      winner[c] = order > best[c] ? static_cast<int32_t>(t) : winner[c];
      best[c] = order > best[c] ? order : best[c];
    }
  }
  for (int64_t t = 0; t < count; ++t) {
    float* gx = strip.gx + taps[t];
#pragma omp simd
    for (int c = 0; c < Width; ++c) {
      const int32_t mask = winner[c] == static_cast<int32_t>(t) ? -1 : 0;
      gx[c] += std::bit_cast<float>(std::bit_cast<int32_t>(g[c]) & mask);
    }
  }
}

AG_MULTIVERSION void add_windows(const Strip& strip, const int64_t* taps, int64_t count, const float* g) {
  if (strip.width == kStrip) return add_window<kStrip>(strip, taps, count, g);
  if (strip.width == 8) return add_window<8>(strip, taps, count, g);
  for (int64_t c = 0; c < strip.width; ++c) {
    add_window<1>({strip.x + c, strip.gx + c, strip.pixel, 1}, taps, count, g + c);
  }
}

class MaxPoolGradient : public Kernel {
 public:
  explicit MaxPoolGradient(const KernelCall& call)
      : windows_(pool_windows(call.attributes, TensorView(DType::f32, call.input_dims(0), nullptr))),
        batch_(call.input_dims(0)[0]),
        channels_(call.input_dims(0)[1]) {
    while (windows_.size() < 3) windows_.insert(windows_.begin(), WindowAxis{.in = 1, .out = 1});
    const Layout layout = call.variant->input(0);
    block_ = layout == Layout::channels_last ? channels_ : channel_block(layout);
    for (const WindowAxis& axis : windows_) {
      in_pixels_ *= axis.in;
      out_pixels_ *= axis.out;
      most_taps_ *= axis.kernel;
    }
    threads_ = useful_threads(call.threads, batch_ * channels_ * out_pixels_ * most_taps_);
  }

  // For every thread the taps of a window.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * most_taps_) * sizeof(int64_t); }

  void run(const KernelArgs& args) const override {
    const int64_t strips = (block_ + kStrip - 1) / kStrip;  // of a block
    for_shares(threads_, batch_ * (channels_ / block_) * strips, [&](int64_t begin, int64_t end, int thread) {
      int64_t* taps = static_cast<int64_t*>(args.scratch) + thread * most_taps_;
      for (int64_t unit = begin; unit < end; ++unit) {
        const int64_t block = unit / strips, channel = unit % strips * kStrip;
        const int64_t in = block * in_pixels_ * block_ + channel, out = block * out_pixels_ * block_ + channel;
        add_strip({args.inputs[0].data<float>() + in, args.outputs[0].mutable_data<float>() + in, block_,
                   std::min(kStrip, block_ - channel)},
                  args.inputs[1].data<float>() + out, taps);
      }
    });
  }

 private:
  void add_strip(const Strip& strip, const float* g, int64_t* taps) const {
    for (int64_t p = 0; p < in_pixels_; ++p) std::fill_n(strip.gx + p * strip.pixel, strip.width, 0.0F);
    for (int64_t z = 0; z < windows_[0].out; ++z) {
      const TapRange depth = windows_[0].taps_inside(z);
      for (int64_t y = 0; y < windows_[1].out; ++y) {
        const TapRange height = windows_[1].taps_inside(y);
        for (int64_t o = 0; o < windows_[2].out; ++o, g += strip.pixel) {
          const int64_t count = find_taps(depth, height, windows_[2].taps_inside(o), taps);
          if (count > 0) add_windows(strip, taps, count, g);
        }
      }
    }
  }

  int64_t find_taps(const TapRange& depth, const TapRange& height, const TapRange& width, int64_t* taps) const {
    int64_t count = 0;
    for (int64_t i = 0; i < depth.count; ++i) {
      const int64_t plane = (depth.input + i * windows_[0].dilation) * windows_[1].in;
      for (int64_t j = 0; j < height.count; ++j) {
        const int64_t row = (plane + height.input + j * windows_[1].dilation) * windows_[2].in + width.input;
        for (int64_t k = 0; k < width.count; ++k) taps[count++] = (row + k * windows_[2].dilation) * block_;
      }
    }
    return count;
  }

  std::vector<WindowAxis> windows_;  // depth, height, width
  int64_t batch_, channels_;
  int64_t block_ = 1;  // channels that lie together
  int64_t in_pixels_ = 1, out_pixels_ = 1, most_taps_ = 1;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<MaxPoolGradient>(call), ""}; }

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kBytesPerUs = 10e3;
  constexpr double kTapsPerUs = 5e3, kSingleTapsPerUs = 4e2;
  double taps = static_cast<double>(call.inputs[1].shape().num_elements().value_or(0));
  for (const int64_t extent : call.attributes.integers("kernel_shape")) taps *= static_cast<double>(extent);
  const auto bytes = static_cast<double>(2 * size_of(call.inputs[0]) + size_of(call.inputs[1]));
  const int64_t channels = call.input_dims(0)[1];
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    // Padding would have to stay zero.
    if (channels % channel_block(layout) != 0) continue;
    const double speed = layout == Layout::row_major ? kSingleTapsPerUs : kTapsPerUs;
    result.push_back({.name = "",
                      .inputs = {layout, layout},
                      .outputs = {layout},
                      .cost_us = kStartUs + (bytes / kBytesPerUs + taps / speed) / call.threads});
  }
  return result;
}

}  // namespace

KernelDef max_pool_grad_kernel() {
  return {.name = "cpu.max_pool_grad",
          .op = max_pool_grad_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph
