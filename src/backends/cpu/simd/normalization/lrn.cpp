// lrn of f32 in every layout. Each sum of squares is taken anew: from a running sum, what a large square has rounded
// away stays lost when it leaves. Vectors whose squares or powers are beyond the range of f32 are computed in f64.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "tensor/size_of.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/normalization/lrn.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/power-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_LRN
#define AG_SIMD_LRN
namespace autograph::simd {

// Exponents that square roots and quotients reach, of which the first is nearly always meant.
enum class Exponent : uint8_t { three_quarters, half, one, any };

struct Lrn {
  int64_t channels, pixels;
  int64_t block;          // channels that lie together
  int64_t before, after;  // neighbours of a channel, where they exist
  float alpha;            // of the sum, not of the mean
  float beta, bias;
  Exponent exponent;

  int64_t at(int64_t channel, int64_t pixel) const {
    return (channel / block * pixels + pixel) * block + channel % block;
  }
};

inline float lrn_in_f64(const Lrn& lrn, const float* image, int64_t channel, int64_t pixel) {
  const int64_t last = std::min(lrn.channels - 1, channel + lrn.after);
  double sum = 0;
  for (int64_t c = std::max<int64_t>(0, channel - lrn.before); c <= last; ++c) {
    const auto value = static_cast<double>(image[lrn.at(c, pixel)]);
    sum += value * value;
  }
  const double base = static_cast<double>(lrn.bias) + static_cast<double>(lrn.alpha) * sum;
  return static_cast<float>(static_cast<double>(image[lrn.at(channel, pixel)]) / std::pow(base, double{lrn.beta}));
}

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

using LrnD = hn::ScalableTag<float>;
using LrnV = hn::Vec<LrnD>;

int64_t lrn_lanes() { return static_cast<int64_t>(hn::Lanes(LrnD())); }

// Vectors of `count` elements where that is less than a whole one.
template <bool kIsWhole>
HWY_INLINE LrnV load_lrn(const float* from, int64_t count) {
  const LrnD d;
  if constexpr (kIsWhole) return hn::LoadU(d, from);
  return load_some(d, from, static_cast<size_t>(count), hn::Zero(d));
}

template <bool kIsWhole>
HWY_INLINE void store_lrn(LrnV v, float* to, int64_t count) {
  const LrnD d;
  if constexpr (kIsWhole) return hn::StoreU(v, d, to);
  store_some(d, v, to, static_cast<size_t>(count));
}

// x^(-1/2) of numbers that lrn_holds(), to two units in the last place, in less time than a root or a quotient.
HWY_INLINE LrnV inverse_root(LrnV x) {
  const LrnD d;
  const LrnV first = hn::ApproximateReciprocalSqrt(x);
  const LrnV error = hn::NegMulAdd(hn::Mul(x, first), first, hn::Set(d, 1.0F));
  return hn::MulAdd(hn::Mul(first, hn::Set(d, 0.5F)), error, first);
}

// base^(-beta)
HWY_INLINE LrnV inverse_power(const Lrn& lrn, LrnV base) {
  const LrnD d;
  if (lrn.exponent == Exponent::any) return pow(d, base, hn::Set(d, -lrn.beta));
  if (lrn.exponent == Exponent::one) return hn::Div(hn::Set(d, 1.0F), base);
  const LrnV root = inverse_root(base);
  return lrn.exponent == Exponent::half ? root : hn::Mul(hn::Mul(root, root), inverse_root(root));
}

// Has no element become infinite or NaN, or so small that it has lost digits?
HWY_INLINE bool lrn_holds(LrnV v) {
  const LrnD d;
  return hn::AllTrue(d, hn::And(hn::Ge(v, hn::Set(d, 1e-30F)), hn::Lt(v, hn::Set(d, kInfinity))));
}

// `count` elements y = x / (bias + alpha * sum)^beta; false where f32 is not enough.
template <bool kIsWhole>
HWY_INLINE bool write_response(const Lrn& lrn, LrnV x, LrnV sum, float* y, int64_t count) {
  const LrnD d;
  const LrnV base = hn::MulAdd(sum, hn::Set(d, lrn.alpha), hn::Set(d, lrn.bias));
  if (HWY_UNLIKELY(!lrn_holds(base))) return false;
  const LrnV factor = inverse_power(lrn, base);
  if (lrn.exponent == Exponent::any && !lrn_holds(factor)) return false;
  store_lrn<kIsWhole>(hn::Mul(x, factor), y, count);
  return true;
}

// `count` pixels of a row-major channel, from `pixel` on.
template <bool kIsWhole>
HWY_INLINE void lrn_of_plane(const Lrn& lrn, const float* image, float* y, int64_t channel, int64_t pixel,
                             int64_t count) {
  const int64_t first = std::max<int64_t>(0, channel - lrn.before);
  const int64_t last = std::min(lrn.channels - 1, channel + lrn.after);
  LrnV sum = hn::Zero(LrnD());
  for (int64_t k = first; k <= last; ++k) {
    const LrnV v = load_lrn<kIsWhole>(image + k * lrn.pixels + pixel, count);
    sum = hn::MulAdd(v, v, sum);
  }
  const int64_t at = channel * lrn.pixels + pixel;
  const LrnV x = load_lrn<kIsWhole>(image + at, count);
  if (write_response<kIsWhole>(lrn, x, sum, y + at, count)) return;
  for (int64_t i = 0; i < count; ++i) y[at + i] = lrn_in_f64(lrn, image, channel, pixel + i);
}

// Channel after channel of row-major pixels [begin, end), few enough for their neighbours to stay in cache.
void lrn_of_planes(const Lrn& lrn, const float* image, float* y, int64_t begin, int64_t end) {
  const int64_t lanes = lrn_lanes();
  for (int64_t c = 0; c < lrn.channels; ++c) {
    int64_t p = begin;
    for (; p + lanes <= end; p += lanes) lrn_of_plane<true>(lrn, image, y, c, p, lanes);
    if (p < end) lrn_of_plane<false>(lrn, image, y, c, p, end - p);
  }
}

// Calls visit.operator()<kIsWhole>(channel, count) for each vector of a pixel.
template <class Visit>
HWY_INLINE void for_channels(const Lrn& lrn, const Visit& visit) {
  const int64_t lanes = lrn_lanes();
  for (int64_t first = 0; first < lrn.channels; first += lrn.block) {
    int64_t c = 0;
    for (; c + lanes <= lrn.block; c += lanes) visit.template operator()<true>(first + c, lanes);
    if (c < lrn.block) visit.template operator()<false>(first + c, lrn.block - c);
  }
}

// One pixel whose channels lie together, by its squares, which have zeros on both sides. kSize: of the window, or 0.
template <int64_t kSize>
HWY_INLINE void lrn_of_pixel(const Lrn& lrn, const float* image, float* y, int64_t pixel, const float* squares) {
  const int64_t size = kSize > 0 ? kSize : lrn.before + lrn.after + 1;
  for_channels(lrn, [&]<bool kIsWhole>(int64_t c, int64_t count) HWY_ATTR {
    LrnV sum = hn::LoadU(LrnD(), squares + c);
    for (int64_t k = 1; k < size; ++k) sum = hn::Add(sum, hn::LoadU(LrnD(), squares + c + k));
    const int64_t at = lrn.at(c, pixel);
    const LrnV x = load_lrn<kIsWhole>(image + at, count);
    if (write_response<kIsWhole>(lrn, x, sum, y + at, count)) return;
    for (int64_t i = 0; i < count; ++i) y[at + i] = lrn_in_f64(lrn, image, c + i, pixel);
  });
}

// Pixels [begin, end), one set of `squares` each, `stride` apart.
void lrn_of_pixels(const Lrn& lrn, const float* image, float* y, int64_t begin, int64_t end, float* squares,
                   int64_t stride) {
  constexpr int64_t kUsualSize = 5;
  // All are written before they are read at other positions, which would wait for the writes.
  for (int64_t p = begin; p < end; ++p) {
    float* of_pixel = squares + (p - begin) * stride + lrn.before;
    for_channels(lrn, [&]<bool kIsWhole>(int64_t c, int64_t count) HWY_ATTR {
      const LrnV v = load_lrn<kIsWhole>(image + lrn.at(c, p), count);
      hn::StoreU(hn::Mul(v, v), LrnD(), of_pixel + c);
    });
  }
  const bool is_usual = lrn.before + lrn.after + 1 == kUsualSize;
  for (int64_t p = begin; p < end; ++p) {
    const float* of_pixel = squares + (p - begin) * stride;
    is_usual ? lrn_of_pixel<kUsualSize>(lrn, image, y, p, of_pixel) : lrn_of_pixel<0>(lrn, image, y, p, of_pixel);
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(lrn_lanes);
HWY_EXPORT(lrn_of_planes);
HWY_EXPORT(lrn_of_pixels);

Exponent exponent_of(float beta) {
  return beta == 0.75F  ? Exponent::three_quarters
         : beta == 0.5F ? Exponent::half
         : beta == 1.0F ? Exponent::one
                        : Exponent::any;
}

class LrnKernel : public Kernel {
 public:
  explicit LrnKernel(const KernelCall& call) {
    const Layout layout = call.variant->input(0);
    const Dims dims = call.input_dims(0);
    const int64_t size = call.attributes.integer("size");
    batch_ = dims[0];
    lrn_.channels = dims[1];
    lrn_.pixels = call.inputs[0].shape().num_elements().value() / (dims[0] * dims[1]);
    const bool are_together = layout == Layout::channels_last || lrn_.pixels == 1;
    lrn_.block = are_together ? lrn_.channels : channel_block(layout);
    lrn_.before = std::min((size - 1) / 2, lrn_.channels - 1);
    lrn_.after = std::min(size / 2, lrn_.channels - 1);
    lrn_.alpha = call.attributes.real("alpha") / static_cast<float>(size);
    lrn_.beta = call.attributes.real("beta");
    lrn_.bias = call.attributes.real("bias");
    lrn_.exponent = exponent_of(lrn_.beta);
    const int64_t strip = is_of_planes() ? kStrip : kPixels;
    strips_ = (lrn_.pixels + strip - 1) / strip;
    threads_ = useful_threads(call.threads, 8 * call.inputs[0].shape().num_elements().value());
  }

  size_t scratch_bytes() const override {
    return is_of_planes() ? 0 : static_cast<size_t>(threads_ * kPixels * stride()) * sizeof(float);
  }

  void run(const KernelArgs& args) const override {
    const int64_t image = lrn_.channels * lrn_.pixels;
    for_shares(threads_, batch_ * strips_, [&](int64_t begin, int64_t end, int thread) {
      float* squares = static_cast<float*>(args.scratch) + thread * kPixels * stride();
      if (!is_of_planes()) std::fill_n(squares, kPixels * stride(), 0.0F);
      for (int64_t strip = begin; strip < end; ++strip) {
        const int64_t instance = strip / strips_;
        const float* x = args.inputs[0].data<float>() + instance * image;
        float* y = args.outputs[0].mutable_data<float>() + instance * image;
        run_strip(x, y, strip % strips_, squares);
      }
    });
  }

 private:
  static constexpr int64_t kStrip = 256;  // pixels of planes
  static constexpr int64_t kPixels = 8;   // others

  bool is_of_planes() const { return lrn_.block == 1 && lrn_.channels > 1; }
  // A vector may begin at the last channel.
  int64_t stride() const { return lrn_.before + lrn_.channels + lrn_.after + HWY_DYNAMIC_DISPATCH(lrn_lanes)(); }

  void run_strip(const float* x, float* y, int64_t strip, float* squares) const {
    const int64_t width = is_of_planes() ? kStrip : kPixels;
    const int64_t begin = strip * width, end = std::min(lrn_.pixels, begin + width);
    if (is_of_planes()) return HWY_DYNAMIC_DISPATCH(lrn_of_planes)(lrn_, x, y, begin, end);
    HWY_DYNAMIC_DISPATCH(lrn_of_pixels)(lrn_, x, y, begin, end, squares, stride());
  }

  Lrn lrn_{};
  int64_t batch_ = 1, strips_ = 1;
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  // The sum, which rounding leaves a small part of, would be what is left of two large ones.
  if (call.attributes.real("alpha") < 0) return "an alpha below 0";
  if (call.attributes.real("bias") <= 0) return "a bias that is not above 0";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<LrnKernel>(call), ""}; }

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kBytesPerUsAndThread = 4e3;
  const double us = kStartUs + static_cast<double>(size_of(call.inputs[0])) / kBytesPerUsAndThread / call.threads;
  const Dims x = call.input_dims(0);
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::row_major, Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    const int64_t block = channel_block(layout);
    if (layout != Layout::row_major && (!fits_rank(layout, x.size()) || x[1] % block != 0)) continue;
    // Blocks of less than a vector would be computed lane by lane.
    if (block > 1 && block < HWY_DYNAMIC_DISPATCH(lrn_lanes)()) continue;
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us});
  }
  return result;
}

}  // namespace

KernelDef lrn_kernel() {
  return {.name = "cpu.lrn_simd", .op = lrn_def().name, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
