// instance_normalization and group_normalization of f32 whose channels lie beside each other: channels-last and
// blocked.
//
// Three passes over the pixels: sums, sums of squares about the mean, and the result. The threads share the pixels, as
// the kernels before and after do, so that everyone reads what is in its own second cache. Where squares of some group
// are beyond the range of f32, all are computed in f64.
#include <algorithm>
#include <cmath>
#include <memory>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

// Inlined into multiversioned functions, so that it is compiled for their instruction sets.
#define AG_INLINE inline __attribute__((always_inline))

namespace autograph {
namespace {

// Pixels of one block of channels that lie together.
struct Panel {
  const float* x;
  int64_t pixels;
  int64_t channels;
};

// Sums of differences, or of their squares, of Width neighbouring channels. In f32 only over as many pixels as keep
// rounding errors small; of equal elements the differences are 0, so that their mean comes out exact.
template <int Width, bool Squares>
AG_INLINE void add_tile(const float* x, int64_t pixels, int64_t stride, const float* from, double* totals) {
  float sums[Width] = {};
  for (int64_t p = 0; p < pixels; ++p) {
#pragma omp simd
    for (int c = 0; c < Width; ++c) {
      const float difference = x[p * stride + c] - from[c];
      sums[c] += Squares ? difference * difference : difference;
    }
  }
  for (int c = 0; c < Width; ++c) totals[c] += static_cast<double>(sums[c]);
}

template <bool Squares>
AG_INLINE void add_panel(const Panel& panel, const float* from, double* totals) {
  constexpr int64_t kPixels = 64;
  for (int64_t begin = 0; begin < panel.pixels; begin += kPixels) {
    const int64_t pixels = std::min(kPixels, panel.pixels - begin);
    const float* x = panel.x + begin * panel.channels;
    int64_t c = 0;
    for (; c + 32 <= panel.channels; c += 32) {
      add_tile<32, Squares>(x + c, pixels, panel.channels, from + c, totals + c);
    }
    for (; c + 8 <= panel.channels; c += 8) {
      add_tile<8, Squares>(x + c, pixels, panel.channels, from + c, totals + c);
    }
    for (; c < panel.channels; ++c) add_tile<1, Squares>(x + c, pixels, panel.channels, from + c, totals + c);
  }
}

// totals[c] += the sum of x[p][c] - from[c] over all pixels.
AG_MULTIVERSION void add_differences(const Panel& panel, const float* from, double* totals) {
  add_panel<false>(panel, from, totals);
}

AG_MULTIVERSION void add_squares(const Panel& panel, const float* from, double* totals) {
  add_panel<true>(panel, from, totals);
}

// By channel: y = (x - mean) * factor + shift.
struct Normalizer {
  const float* mean;
  const float* factor;
  const float* shift;
};

template <int Width>
AG_INLINE void normalize_block(const Panel& panel, const Normalizer& by, float* y) {
  for (int64_t p = 0; p < panel.pixels; ++p) {
#pragma omp simd
    for (int c = 0; c < Width; ++c) {
      y[p * Width + c] = (panel.x[p * Width + c] - by.mean[c]) * by.factor[c] + by.shift[c];
    }
  }
}

AG_MULTIVERSION void normalize_panel(const Panel& panel, const Normalizer& by, float* y) {
  if (panel.channels == 16) return normalize_block<16>(panel, by, y);
  if (panel.channels == 8) return normalize_block<8>(panel, by, y);
  for (int64_t p = 0; p < panel.pixels; ++p) {
    const float* x = panel.x + p * panel.channels;
    float* out = y + p * panel.channels;
#pragma omp simd
    for (int64_t c = 0; c < panel.channels; ++c) out[c] = (x[c] - by.mean[c]) * by.factor[c] + by.shift[c];
  }
}

class PixelNormalization : public Kernel {
 public:
  PixelNormalization(const KernelCall& call, int64_t groups)
      : groups_(groups), epsilon_(call.attributes.real("epsilon")) {
    const Layout layout = call.variant->input(0);
    const Dims x = call.input_dims(0);
    batch_ = x[0];
    channels_ = x[1];
    block_ = layout == Layout::channels_last ? channels_ : channel_block(layout);
    for (size_t a = 2; a < x.size(); ++a) pixels_ *= x[a];
    threads_ = useful_threads(call.threads, 3 * batch_ * channels_ * pixels_);
  }

  // For every thread its totals, then the normalizers.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(results()) * (static_cast<size_t>(threads_) * sizeof(double) + 3 * sizeof(float));
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    auto* totals = static_cast<double*>(args.scratch);
    auto* mean = reinterpret_cast<float*>(totals + threads_ * results());
    float* factor = mean + results();
    float* shift = factor + results();
    for (int64_t i = 0; i < results(); i += block_) std::copy_n(x + i * pixels_, block_, mean + i);
    sum_up(x, mean, totals, add_differences);
    for_each_group([&](int64_t first, int64_t count) {
      double total = 0;
      for (int64_t i = first; i < first + count; ++i) {
        total += totals[i] + static_cast<double>(mean[i]) * static_cast<double>(pixels_);
      }
      const double exact_mean = total / static_cast<double>(count * pixels_);
      std::fill_n(mean + first, count, static_cast<float>(exact_mean));
      // For now, what rounding has taken from the mean.
      std::fill_n(shift + first, count, static_cast<float>(exact_mean - static_cast<double>(mean[first])));
    });
    sum_up(x, mean, totals, add_squares);
    bool holds = true;
    for_each_group([&](int64_t first, int64_t count) {
      double squares = 0;
      for (int64_t i = first; i < first + count; ++i) squares += totals[i];
      const double rest = shift[first];
      const double variance = no_less_than_zero(squares / static_cast<double>(count * pixels_) - rest * rest);
      const double deviation = std::sqrt(variance + epsilon_);
      holds = holds && holds_in_f32(variance, 0, epsilon_);
      for (int64_t i = first; i < first + count; ++i) {
        const int64_t channel = i % channels_;
        factor[i] = static_cast<float>(static_cast<double>(args.inputs[1].data<float>()[channel]) / deviation);
        shift[i] = args.inputs[2].data<float>()[channel];
        // Of an infinite scale a rest of 0 would make NaN.
        if (std::isfinite(factor[i])) shift[i] -= static_cast<float>(rest * static_cast<double>(factor[i]));
      }
    });
    if (!holds) return normalize_in_f64(args);
    for_panels([&](int64_t i, int64_t begin, int64_t pixels, int) {
      const int64_t at = i * pixels_ + begin * block_;
      normalize_panel({x + at, pixels, block_}, {mean + i, factor + i, shift + i}, y + at);
    });
  }

 private:
  int64_t results() const { return batch_ * channels_; }

  // Of each thread's pixels: visit(first of the channels of a panel, first pixel, pixels, thread).
  template <class Visit>
  void for_panels(const Visit& visit) const {
    for_shares(threads_, pixels_, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t i = 0; i < results(); i += block_) visit(i, begin, end - begin, thread);
    });
  }

  void normalize_in_f64(const KernelArgs& args) const {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    const int64_t count = channels_ / groups_;
    for_shares(threads_, results() / count, [&](int64_t begin, int64_t end, int) {
      for (int64_t group = begin; group < end; ++group) {
        const Moments of = moments_in_f64(x, [&](const auto& visit) {
          for (int64_t i = group * count; i < (group + 1) * count; ++i) for_pixels(i, visit);
        });
        const double deviation = std::sqrt(of.variance + epsilon_);
        for (int64_t i = group * count; i < (group + 1) * count; ++i) {
          const double scale = args.inputs[1].data<float>()[i % channels_];
          const double bias = args.inputs[2].data<float>()[i % channels_];
          for_pixels(i, [&](int64_t at) {
            y[at] = static_cast<float>((static_cast<double>(x[at]) - of.mean) / deviation * scale + bias);
          });
        }
      }
    });
  }

  // visit(element) for all of a channel, counted over all instances.
  template <class Visit>
  void for_pixels(int64_t channel, const Visit& visit) const {
    const int64_t first = channel / block_ * block_ * pixels_ + channel % block_;
    for (int64_t p = 0; p < pixels_; ++p) visit(first + p * block_);
  }

  // totals[i] of all threads together.
  void sum_up(const float* x, const float* from, double* totals,
              void (*add)(const Panel&, const float*, double*)) const {
    std::fill_n(totals, threads_ * results(), 0.0);
    for_panels([&](int64_t i, int64_t begin, int64_t pixels, int thread) {
      add({x + i * pixels_ + begin * block_, pixels, block_}, from + i, totals + thread * results() + i);
    });
    for (int64_t i = results(); i < threads_ * results(); ++i) totals[i % results()] += totals[i];
  }

  // visit(first channel of a group, channels), channels counted over all instances.
  template <class Visit>
  void for_each_group(const Visit& visit) const {
    const int64_t count = channels_ / groups_;
    for (int64_t first = 0; first < results(); first += count) visit(first, count);
  }

  const int64_t groups_;
  const double epsilon_;
  int64_t batch_ = 1, channels_ = 1, pixels_ = 1;
  int64_t block_ = 1;  // channels that lie together
  int threads_ = 1;
};

int64_t groups_of(const KernelCall& call) {
  return &call.op == &group_normalization_def() ? call.attributes.integer("num_groups") : call.input_dims(0)[1];
}

std::string why_not(const KernelCall& call) {
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  const bool is_group = &call.op == &group_normalization_def();
  if (is_group && call.attributes.get<DType>("stash_type") != DType::f32) return "statistics other than f32";
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<PixelNormalization>(call, groups_of(call)), ""}; }

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 6;
  constexpr double kBytesPerUs = 12e3;
  const double us = kStartUs + static_cast<double>(size_of(call.inputs[0])) / kBytesPerUs / call.threads;
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    // Padding would have to stay zero.
    if (call.input_dims(0)[1] % channel_block(layout) != 0) continue;
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us});
  }
  return result;
}

KernelDef kernel_for(std::string_view op) {
  return {
      .name = "cpu.normalization_of_pixels", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> pixel_normalization_kernels() {
  return {kernel_for(instance_normalization_def().name), kernel_for(group_normalization_def().name)};
}

}  // namespace autograph
