// max_pool_grad over f32 in any layout: the maximum of each window is looked for again, over channels that lie beside
// each other at once, and what flows into it is added where it was found. Who computes a channel computes all of it, so
// that sums come in one order.
#include <algorithm>
#include <memory>
#include <vector>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/window/pool_loops.h"
#include "tensor/size_of.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/pool/max_pool_grad.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_MAX_POOL_GRAD
#define AG_SIMD_MAX_POOL_GRAD
namespace autograph::simd {

// Channels computed at once at most.
constexpr int64_t kStrip = 16;

/// A strip of channels of one image.
struct Strip {
  const float* x;
  float* gx;
  int64_t pixel;  // elements from one pixel to the next
  int64_t width;  // channels
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// Channels c and behind of one window, as many as `d` has lanes. Of equal elements the first one counts, NaN before
// all.
template <class D>
HWY_INLINE void add_lanes(D d, const Strip& strip, std::span<const int64_t> taps, const float* g, int64_t c) {
  const hn::RebindToSigned<D> di;
  const float* x = strip.x + c;
  auto best = hn::LoadU(d, x + taps[0]);
  auto winner = hn::Zero(di);
  for (size_t t = 1; t < taps.size(); ++t) {
    const auto tap = hn::LoadU(d, x + taps[t]);
    const auto wins = hn::AndNot(hn::IsNaN(best), hn::Not(hn::Le(tap, best)));
    winner = hn::IfThenElse(hn::RebindMask(di, wins), hn::Set(di, static_cast<int32_t>(t)), winner);
    best = hn::IfThenElse(wins, tap, best);
  }
  const auto flow = hn::LoadU(d, g + c);
  for (size_t t = 0; t < taps.size(); ++t) {
    float* gx = strip.gx + c + taps[t];
    const auto wins = hn::RebindMask(d, hn::Eq(winner, hn::Set(di, static_cast<int32_t>(t))));
    hn::StoreU(hn::Add(hn::LoadU(d, gx), hn::IfThenElseZero(wins, flow)), d, gx);
  }
}

// One window, whose taps are offsets from the first pixel.
void add_window(const Strip& strip, std::span<const int64_t> taps, const float* g) {
  const hn::CappedTag<float, kStrip> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + lanes <= strip.width; c += lanes) add_lanes(d, strip, taps, g, c);
  for (; c < strip.width; ++c) add_lanes(hn::CappedTag<float, 1>(), strip, taps, g, c);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(add_window);

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
          const size_t count = find_taps(depth, height, windows_[2].taps_inside(o), taps);
          if (count > 0) HWY_DYNAMIC_DISPATCH(add_window)(strip, {taps, count}, g);
        }
      }
    }
  }

  size_t find_taps(const TapRange& depth, const TapRange& height, const TapRange& width, int64_t* taps) const {
    size_t count = 0;
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
  constexpr double kTapsPerUs = 30e3, kSingleTapsPerUs = 4e2;
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

}  // namespace autograph::simd
#endif  // HWY_ONCE
