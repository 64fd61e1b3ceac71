// max_pool, with or without the positions of the maxima, and average_pool over row-major f32: a whole row of outputs at
// a time. NaN and infinity are treated as the definitions say.
//
// The rows that a row of windows meets are combined into one first, element by element, and then the elements of that
// one: kernel height + width steps instead of height * width. Positions go tap after tap.
#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/parallel.h"
#include "ops/op_list.h"
#include "ops/window/pool_loops.h"

namespace autograph {
namespace {

// The k-th input of a row belongs to the k-th output, `stride` apart. Strides of 1 and 2 have loops of their own, which
// the compiler turns into vector instructions.
template <class Body>
inline __attribute__((always_inline)) void for_strided(int64_t count, int64_t stride, const Body& body) {
  if (stride == 1) {
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) body(k, k);
  } else if (stride == 2) {
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) body(k, 2 * k);
  } else {
    for (int64_t k = 0; k < count; ++k) body(k, stride * k);
  }
}

// NaN wins, and stays.
inline __attribute__((always_inline)) float larger(float best, float x) { return x <= best || best != best ? best : x; }

AG_MULTIVERSION void max_row(float* y, const float* x, int64_t count, int64_t stride) {
  for_strided(count, stride, [=](int64_t k, int64_t i) { y[k] = larger(y[k], x[i]); });
}

// The same with the position of the first of equal maxima; `position` is that of x[0], -1 stands for none so far.
AG_MULTIVERSION void arg_max_row(float* y, int32_t* best_position, const float* x, int32_t position, int64_t count,
                                 int64_t stride) {
  for_strided(count, stride, [=](int64_t k, int64_t i) {
    const float best = y[k];
    const bool stays = best_position[k] >= 0 && (x[i] <= best || best != best);
    y[k] = stays ? best : x[i];
    best_position[k] = stays ? best_position[k] : position + static_cast<int32_t>(i);
  });
}

AG_MULTIVERSION void add_row(float* y, const float* x, int64_t count, int64_t stride) {
  for_strided(count, stride, [=](int64_t k, int64_t i) { y[k] += x[i]; });
}

// to[k] of two rows; `a` may be `to`.
AG_MULTIVERSION void max_of_rows(const float* a, const float* b, int64_t count, float* to) {
#pragma omp simd
  for (int64_t k = 0; k < count; ++k) to[k] = larger(a[k], b[k]);
}

AG_MULTIVERSION void sum_of_rows(const float* a, const float* b, int64_t count, float* to) {
#pragma omp simd
  for (int64_t k = 0; k < count; ++k) to[k] = a[k] + b[k];
}

enum class Pool : uint8_t { max, arg_max, average };

class PlanePool : public Kernel {
 public:
  PlanePool(const KernelCall& call, Pool pool)
      : pool_(pool),
        windows_(pool_windows(call.attributes, TensorView(DType::f32, call.input_dims(0), nullptr))),
        channels_(call.input_dims(0)[0] * call.input_dims(0)[1]) {
    while (windows_.size() < 3) windows_.insert(windows_.begin(), WindowAxis{.in = 1, .out = 1});
    const bool includes_pads = pool == Pool::average && call.attributes.flag("count_include_pad");
    taps_ = taps_of_row(windows_[2]);
    int64_t taps = 1;
    for (size_t a = 0; a < windows_.size(); ++a) {
      counted_[a] = counted_taps(windows_[a], includes_pads);
      taps *= windows_[a].kernel;
    }
    const int64_t outputs = channels_ * windows_[0].out * windows_[1].out * windows_[2].out;
    threads_ = useful_threads(call.threads, outputs * taps / 2);
  }

  // For every thread a row of inputs, or of positions.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * row_size()) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    const int64_t rows = windows_[0].out * windows_[1].out;
    for_shares(threads_, channels_ * rows, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t row = begin; row < end; ++row) compute_row(args, row / rows, row % rows, thread);
    });
  }

 private:
  void compute_row(const KernelArgs& args, int64_t channel, int64_t row, int thread) const {
    const auto& [depth, height, width] = std::tie(windows_[0], windows_[1], windows_[2]);
    const int64_t plane = depth.in * height.in * width.in;
    const float* x = args.inputs[0].data<float>() + channel * plane;
    const int64_t at = (channel * depth.out * height.out + row) * width.out;
    float* y = args.outputs[0].mutable_data<float>() + at;
    std::fill_n(y, width.out, pool_ == Pool::average ? 0.0F : -std::numeric_limits<float>::infinity());
    float* joined = static_cast<float*>(args.scratch) + thread * row_size();
    int32_t* positions = static_cast<int32_t*>(args.scratch) + thread * row_size();
    if (pool_ == Pool::arg_max) std::fill_n(positions, width.out, -1);
    const int64_t d = row / height.out, h = row % height.out;
    const TapRange in_depth = depth.taps_inside(d), in_height = height.taps_inside(h);
    const float* line = nullptr;  // all rows so far
    for (int64_t i = 0; i < in_depth.count; ++i) {
      for (int64_t j = 0; j < in_height.count; ++j) {
        const int64_t z = in_depth.input + i * depth.dilation;
        const int64_t begin = (z * height.in + in_height.input + j * height.dilation) * width.in;
        if (pool_ == Pool::arg_max) {
          add_input_row(x, begin, y, positions);
        } else {
          line = line ? join_rows(line, x + begin, joined) : x + begin;
        }
      }
    }
    if (line) add_input_row(line, 0, y, nullptr);
    if (pool_ == Pool::average) {
      const float counted = counted_[0][static_cast<size_t>(d)] * counted_[1][static_cast<size_t>(h)];
      for (int64_t o = 0; o < width.out; ++o) {
        const float taps = counted * counted_[2][static_cast<size_t>(o)];
        y[o] = taps == 0 ? 0 : y[o] / taps;
      }
    } else if (pool_ == Pool::arg_max) {
      int64_t* indices = args.outputs[1].mutable_data<int64_t>() + at;
      for (int64_t o = 0; o < width.out; ++o) indices[o] = positions[o] < 0 ? -1 : channel * plane + positions[o];
    }
  }

  // In whole cache lines, so that threads do not write to the same ones.
  int64_t row_size() const { return (std::max(windows_[2].in, windows_[2].out) + 15) / 16 * 16; }

  // Combines a row with the rows so far, `line`, into `joined`, which may be that line.
  const float* join_rows(const float* line, const float* row, float* joined) const {
    const int64_t count = windows_[2].in;
    pool_ == Pool::average ? sum_of_rows(line, row, count, joined) : max_of_rows(line, row, count, joined);
    return joined;
  }

  // Every tap of the window meets one row of inputs that begins at x[begin].
  void add_input_row(const float* x, int64_t begin, float* y, int32_t* positions) const {
    for (const Taps& taps : taps_) {
      const int64_t from = begin + taps.input;
      const int64_t first = taps.first, stride = windows_[2].stride;
      switch (pool_) {
        case Pool::max: max_row(y + first, x + from, taps.count, stride); break;
        case Pool::arg_max:
          arg_max_row(y + first, positions + first, x + from, static_cast<int32_t>(from), taps.count, stride);
          break;
        case Pool::average: add_row(y + first, x + from, taps.count, stride); break;
      }
    }
  }

  // One tap of all windows of a row: outputs [first, first + count) have it inside, that of `first` is `input`.
  struct Taps {
    int64_t first = 0, count = 0, input = 0;
  };

  static std::vector<Taps> taps_of_row(const WindowAxis& axis) {
    std::vector<Taps> result;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      const int64_t shift = tap * axis.dilation - axis.pad_begin;  // input of output 0
      const int64_t first = shift >= 0 ? 0 : (-shift + axis.stride - 1) / axis.stride;
      const int64_t last = shift >= axis.in ? 0 : (axis.in - 1 - shift) / axis.stride + 1;
      const int64_t count = std::min(last, axis.out) - first;
      if (count > 0) result.push_back({first, count, shift + first * axis.stride});
    }
    return result;
  }

  Pool pool_;
  std::vector<WindowAxis> windows_;  // depth, height, width
  int64_t channels_;
  std::vector<Taps> taps_;
  std::array<std::vector<float>, 3> counted_;  // taps that count in a mean, by axis and output
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (call.inputs[0].dtype() != DType::f32) return "an input of another dtype than f32";
  if (call.outputs[0].shape().num_elements() == 0) return "a tensor without elements";
  if (call.outputs.size() > 1) {
    if (call.attributes.integer("storage_order") != 0) return "indices in column-major order";
    int64_t plane = 1;
    for (size_t a = 2; a < rank; ++a) plane *= call.input_dims(0)[a];
    if (plane > std::numeric_limits<int32_t>::max()) return "planes of more than 2^31 elements";
  }
  return "";
}

Prepared prepare(const KernelCall& call) {
  const Pool pool = &call.op == &average_pool_def() ? Pool::average
                    : call.outputs.size() > 1       ? Pool::arg_max
                                                    : Pool::max;
  return {std::make_unique<PlanePool>(call, pool), ""};
}

// As measured (bench_kernels pool): combining elements, and beginning with a row.
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStepsPerUs = 1.5e3;
  constexpr double kRowsPerUs = 16;
  constexpr double kStartUs = 1;
  const auto outputs = static_cast<double>(call.outputs[0].shape().num_elements().value_or(0));
  const double rows = outputs / static_cast<double>(call.output_dims(0).back());
  double lines = 1;  // of a window
  double width = 1;
  for (const WindowAxis& axis : pool_windows(call.attributes, TensorView(DType::f32, call.input_dims(0), nullptr))) {
    lines *= width;
    width = static_cast<double>(axis.kernel);
  }
  const double steps = call.outputs.size() > 1 ? lines * width : lines + width - 1;
  const double us = kStartUs + (outputs * steps / kStepsPerUs + rows / kRowsPerUs) / call.threads;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
}

KernelDef kernel_for(std::string_view name, std::string_view op) {
  return {.name = name, .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> plane_pool_kernels() {
  return {kernel_for("cpu.max_pool_rows", "max_pool"), kernel_for("cpu.average_pool_rows", "average_pool")};
}

}  // namespace autograph
