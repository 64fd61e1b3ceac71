// max_pool and average_pool over f32 whose channels lie together in memory: window after window, all channels of a
// pixel side by side. NaN and infinity are treated as the definitions say.
//
// oneDNN's maximum loses NaN, so that its inputs must be looked through first, which takes longer than the pool. Sums
// beyond the range of f32 are added up again as means.
#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/pool/plane_rows.h"
#include "backends/cpu/threads/parallel.h"
#include "tensor/size_of.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/pool/pixel_pool.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/pool/pool_steps-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_PIXEL_POOL
#define AG_SIMD_PIXEL_POOL
namespace autograph::simd {

/// A row of windows over some channels that lie together.
struct PixelRow {
  const float* x;                     // these channels of the image
  std::span<const int64_t> rows;      // where the rows of pixels begin that the windows meet, from x
  std::span<const TapRange> columns;  // in these rows, by window
  int64_t pixel;                      // elements from one pixel to the next, and from one tap to the next
  int64_t tap;
  float* y;
  int64_t y_pixel;
  int64_t channels;
  std::span<const float> counted;  // taps of a window that count in a mean, by window, in each counted row
  float counted_rows;
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

// Elements become parts of the mean before they are added up.
struct PartsStep {
  PoolV part;
  HWY_INLINE PoolV add(PoolV total, PoolV x) const { return hn::MulAdd(x, part, total); }
};

// Calls visit(at) for every pixel of window `w`.
template <class Visit>
HWY_INLINE void for_pixels(const PixelRow& row, size_t w, const Visit& visit) {
  const TapRange& taps = row.columns[w];
  const int64_t first = taps.input * row.pixel;
  for (const int64_t begin : row.rows) {
    int64_t at = begin + first;
    for (int64_t k = 0; k < taps.count; ++k, at += row.tap) visit(at);
  }
}

// What share of a mean each element of window `w` has; 0 where none counts.
HWY_INLINE float part_of(const PixelRow& row, size_t w) {
  const float counted = row.counted_rows * row.counted[w];
  return counted == 0 ? 0 : 1 / counted;
}

// The vectors that `load` reads at an offset, over the pixels of window `w`.
template <class Step, class Load>
HWY_INLINE PoolV pool_vector(const PixelRow& row, size_t w, float part, const Load& load) {
  PoolV total = hn::Set(PoolD(), Step::kStart);
  for_pixels(row, w, [&](int64_t at) HWY_ATTR { total = Step::add(total, load(at)); });
  if (HWY_LIKELY(Step::holds(total))) return Step::finish(total, hn::Set(PoolD(), part));
  const PartsStep parts{hn::Set(PoolD(), part)};
  PoolV mean = hn::Zero(PoolD());
  for_pixels(row, w, [&](int64_t at) HWY_ATTR { mean = parts.add(mean, load(at)); });
  return mean;
}

// Four vectors, `step` apart in the input and a vector in the output, in one walk over the window; false where some sum
// is beyond f32.
template <class Step>
HWY_INLINE bool pool_four(const PixelRow& row, size_t w, float part, const float* x, int64_t step, float* y) {
  const PoolD d;
  PoolV t0 = hn::Set(PoolD(), Step::kStart), t1 = t0, t2 = t0, t3 = t0;
  for_pixels(row, w, [&](int64_t at) HWY_ATTR {
    t0 = Step::add(t0, hn::LoadU(d, x + at));
    t1 = Step::add(t1, hn::LoadU(d, x + at + step));
    t2 = Step::add(t2, hn::LoadU(d, x + at + 2 * step));
    t3 = Step::add(t3, hn::LoadU(d, x + at + 3 * step));
  });
  if (!Step::holds(t0) || !Step::holds(t1) || !Step::holds(t2) || !Step::holds(t3)) return false;
  const int64_t lanes = lanes_of_pool();
  const PoolV parts = hn::Set(d, part);
  hn::StoreU(Step::finish(t0, parts), d, y);
  hn::StoreU(Step::finish(t1, parts), d, y + lanes);
  hn::StoreU(Step::finish(t2, parts), d, y + 2 * lanes);
  hn::StoreU(Step::finish(t3, parts), d, y + 3 * lanes);
  return true;
}

// How far windows w to w + 3 are apart where they are alike, else 0.
HWY_INLINE int64_t step_of_four(const PixelRow& row, size_t w) {
  if (w + 4 > row.columns.size()) return 0;
  const int64_t step = row.columns[w + 1].input - row.columns[w].input;
  for (size_t i = w; i < w + 3; ++i) {
    const TapRange &a = row.columns[i], &b = row.columns[i + 1];
    if (b.input - a.input != step || a.count != b.count || row.counted[i] != row.counted[i + 1]) return 0;
  }
  return step * row.pixel;
}

template <class Step>
HWY_INLINE void pool_windows_of(const PixelRow& row) {
  const PoolD d;
  const int64_t lanes = lanes_of_pool();
  float* y = row.y;
  for (size_t w = 0; w < row.columns.size(); ++w, y += row.y_pixel) {
    const float part = part_of(row, w);
    const int64_t step = row.channels == lanes && row.y_pixel == lanes ? step_of_four(row, w) : 0;
    if (step > 0 && pool_four<Step>(row, w, part, row.x, step, y)) {
      w += 3;
      y += 3 * lanes;
      continue;
    }
    int64_t c = 0;
    while (c + 4 * lanes <= row.channels && pool_four<Step>(row, w, part, row.x + c, lanes, y + c)) c += 4 * lanes;
    for (; c + lanes <= row.channels; c += lanes) {
      const float* x = row.x + c;
      const auto load = [=](int64_t at) HWY_ATTR { return hn::LoadU(PoolD(), x + at); };
      hn::StoreU(pool_vector<Step>(row, w, part, load), d, y + c);
    }
    if (c == row.channels) continue;
    const auto rest = static_cast<size_t>(row.channels - c);
    const float* x = row.x + c;
    const auto load = [=](int64_t at) HWY_ATTR { return load_some(PoolD(), x + at, rest, hn::Zero(PoolD())); };
    store_some(d, pool_vector<Step>(row, w, part, load), y + c, rest);
  }
}

int64_t pool_lanes() { return lanes_of_pool(); }

void pool_row(const PixelRow& row, bool is_mean) {
  if (is_mean) return pool_windows_of<MeanStep>(row);
  pool_windows_of<MaxStep>(row);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(pool_lanes);
HWY_EXPORT(pool_row);

class PixelPool : public Kernel {
 public:
  PixelPool(const KernelCall& call, bool is_mean)
      : is_mean_(is_mean), windows_(plane_windows(call)), batch_(call.input_dims(0)[0]) {
    const Layout layout = call.variant->input(0);
    const int64_t channels = call.input_dims(0)[1];
    block_ = layout == Layout::channels_last ? channels : channel_block(layout);
    groups_ = channels / block_;
    const bool includes_pads = is_mean && call.attributes.flag("count_include_pad");
    int64_t taps = 1;
    for (size_t a = 0; a < windows_.size(); ++a) {
      taps *= windows_[a].kernel;
      counted_[a] = counted_taps(windows_[a], includes_pads);
    }
    for (int64_t o = 0; o < windows_[2].out; ++o) columns_.push_back(windows_[2].taps_inside(o));
    threads_ = useful_threads(call.threads, batch_ * channels * out_pixels() * taps / 4);
  }

  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * most_rows()) * sizeof(int64_t); }

  size_t spaced_row_bytes() const override { return groups_ == 1 ? static_cast<size_t>(block_) * sizeof(float) : 0; }

  void run(const KernelArgs& args) const override {
    const int64_t rows = windows_[0].out * windows_[1].out;
    for_shares(threads_, batch_ * rows, [&](int64_t begin, int64_t end, int thread) {
      int64_t* scratch = static_cast<int64_t*>(args.scratch) + thread * most_rows();
      for (int64_t row = begin; row < end; ++row) compute_row(args, row / rows, row % rows, scratch);
    });
  }

 private:
  int64_t in_pixels() const { return windows_[0].in * windows_[1].in * windows_[2].in; }
  int64_t out_pixels() const { return windows_[0].out * windows_[1].out * windows_[2].out; }
  int64_t most_rows() const { return windows_[0].kernel * windows_[1].kernel; }

  void compute_row(const KernelArgs& args, int64_t instance, int64_t number, int64_t* scratch) const {
    const int64_t z = number / windows_[1].out, y = number % windows_[1].out;
    PixelRow row{.x = nullptr,
                 .rows = {scratch, find_rows(z, y, scratch)},
                 .columns = columns_,
                 .pixel = block_,
                 .tap = windows_[2].dilation * block_,
                 .y = nullptr,
                 .y_pixel = args.row_stride > 0 ? static_cast<int64_t>(args.row_stride / sizeof(float)) : block_,
                 .channels = block_,
                 .counted = counted_[2],
                 .counted_rows = counted_[0][static_cast<size_t>(z)] * counted_[1][static_cast<size_t>(y)]};
    for (int64_t group = instance * groups_; group < (instance + 1) * groups_; ++group) {
      row.x = args.inputs[0].data<float>() + group * in_pixels() * block_;
      row.y = args.outputs[0].mutable_data<float>() + (group * out_pixels() + number * windows_[2].out) * row.y_pixel;
      HWY_DYNAMIC_DISPATCH(pool_row)(row, is_mean_);
    }
  }

  // Where the rows of pixels begin that windows of row `y` of plane `z` meet; returns how many there are.
  size_t find_rows(int64_t z, int64_t y, int64_t* begins) const {
    const TapRange depth = windows_[0].taps_inside(z), height = windows_[1].taps_inside(y);
    size_t count = 0;
    for (int64_t i = 0; i < depth.count; ++i) {
      const int64_t plane = (depth.input + i * windows_[0].dilation) * windows_[1].in;
      for (int64_t j = 0; j < height.count; ++j) {
        begins[count++] = (plane + height.input + j * windows_[1].dilation) * windows_[2].in * block_;
      }
    }
    return count;
  }

  bool is_mean_;
  std::array<WindowAxis, 3> windows_;  // depth, height, width
  int64_t batch_;
  int64_t block_ = 0;                          // channels of a pixel that lie together
  int64_t groups_ = 0;                         // of so many channels
  std::array<std::vector<float>, 3> counted_;  // taps that count in a mean, by axis and output
  std::vector<TapRange> columns_;              // inside the image, by output column
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (call.outputs.size() > 1) return "indices are wanted";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  return call.inputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

template <bool is_mean>
Prepared prepare(const KernelCall& call) {
  return {std::make_unique<PixelPool>(call, is_mean), ""};
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kBytesPerUsAndThread = 20e3;
  constexpr double kTapsPerUsAndThread = 30e3;
  double taps = static_cast<double>(call.outputs[0].shape().num_elements().value_or(0));
  for (const WindowAxis& axis : plane_windows(call)) taps *= static_cast<double>(axis.kernel);
  const auto bytes = static_cast<double>(size_of(call.inputs[0]) + size_of(call.outputs[0]));
  const double us = kStartUs + (bytes / kBytesPerUsAndThread + taps / kTapsPerUsAndThread) / call.threads;
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    // Padding would have to stay zero, also where a window is empty.
    const Dims x = call.input_dims(0);
    if (!fits_rank(layout, x.size()) || x[1] % channel_block(layout) != 0) continue;
    // Blocks of less than a vector would be pooled lane by lane.
    if (layout != Layout::channels_last && channel_block(layout) < HWY_DYNAMIC_DISPATCH(pool_lanes)()) continue;
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = us});
    result.back().spaces_rows = layout == Layout::channels_last;
  }
  return result;
}

}  // namespace

std::vector<KernelDef> pixel_pool_kernels() {
  return {{"cpu.max_pool_pixels", max_pool_def().name, why_not, prepare<false>, variants},
          {"cpu.average_pool_pixels", average_pool_def().name, why_not, prepare<true>, variants}};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE
