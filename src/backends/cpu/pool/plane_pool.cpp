// max_pool, with or without the positions of the maxima, and average_pool over row-major f32: a whole row of outputs at
// a time. NaN and infinity are treated as the definitions say; means of sums beyond the range of f32 are computed again
// in f64.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/cpu/all_finite.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/pool/pool_rows.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "ops/window/pool_loops.h"

namespace autograph {
namespace {

// Depth, height and width.
std::vector<WindowAxis> windows_of(const KernelCall& call) {
  auto windows = pool_windows(call.attributes, TensorView(DType::f32, call.input_dims(0), nullptr));
  while (windows.size() < 3) windows.insert(windows.begin(), WindowAxis{.in = 1, .out = 1});
  return windows;
}

enum class Pool : uint8_t { max, arg_max, average };

class PlanePool : public Kernel {
 public:
  PlanePool(const KernelCall& call, Pool pool)
      : pool_(pool),
        windows_(windows_of(call)),
        row_(windows_[2]),
        channels_(call.input_dims(0)[0] * call.input_dims(0)[1]) {
    const bool includes_pads = pool == Pool::average && call.attributes.flag("count_include_pad");
    int64_t taps = 1;
    for (size_t a = 0; a < windows_.size(); ++a) {
      counted_[a] = counted_taps(windows_[a], includes_pads);
      taps *= windows_[a].kernel;
      for (int64_t o = 0; a < 2 && o < windows_[a].out; ++o) inside_[a].push_back(windows_[a].taps_inside(o));
    }
    const int64_t outputs = channels_ * windows_[0].out * windows_[1].out * windows_[2].out;
    threads_ = useful_threads(call.threads, outputs * taps / 2);
  }

  // For every thread a row of inputs, or of positions.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * row_size()) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    for_shares(threads_, channels_ * windows_[0].out * windows_[1].out, [&](int64_t begin, int64_t end, int thread) {
      for (int64_t first = begin; first < end; first += kRowsPerLook) {
        const int64_t last = std::min(end, first + kRowsPerLook);
        for_each_row(first, last, [&](const Row& row) { compute_row(args, row, thread); });
        if (pool_ == Pool::average) mend_means(args, first, last);
      }
    });
  }

 private:
  // A row of outputs.
  struct Row {
    int64_t channel, d, h;
    int64_t at;  // of its first element
  };

  template <class Visit>
  void for_each_row(int64_t begin, int64_t end, const Visit& visit) const {
    const int64_t depth = windows_[0].out, height = windows_[1].out;
    int64_t h = begin % height, d = begin / height % depth, channel = begin / height / depth;
    for (int64_t row = begin; row < end; ++row) {
      visit(Row{channel, d, h, row * windows_[2].out});
      if (++h < height) continue;
      h = 0;
      if (++d < depth) continue;
      d = 0;
      ++channel;
    }
  }

  void compute_row(const KernelArgs& args, const Row& row, int thread) const {
    const auto [channel, d, h, at] = row;
    const auto& [depth, height, width] = std::tie(windows_[0], windows_[1], windows_[2]);
    const int64_t plane = depth.in * height.in * width.in;
    const float* x = args.inputs[0].data<float>() + channel * plane;
    float* y = args.outputs[0].mutable_data<float>() + at;
    if (pool_ == Pool::arg_max) {
      auto* positions = static_cast<int32_t*>(args.scratch) + thread * row_size();
      std::fill_n(y, width.out, -std::numeric_limits<float>::infinity());
      std::fill_n(positions, width.out, -1);
      for_each_line(
          d, h, [&](int64_t begin) { add_arg_max_line(row_, x + begin, static_cast<int32_t>(begin), y, positions); });
      int64_t* indices = args.outputs[1].mutable_data<int64_t>() + at;
      for (int64_t o = 0; o < width.out; ++o) indices[o] = positions[o] < 0 ? -1 : channel * plane + positions[o];
      return;
    }
    float* joined = static_cast<float*>(args.scratch) + thread * row_size();
    std::array<const float*, kMostLines> lines;
    size_t count = 0;
    for_each_line(d, h, [&](int64_t begin) {
      if (count == lines.size()) {
        lines[0] = join_lines({lines.data(), count}, joined);
        count = 1;
      }
      lines[count++] = x + begin;
    });
    write_row({lines.data(), count}, joined, counted_rows(row), y);
  }

  float counted_rows(const Row& row) const {
    return counted_[0][static_cast<size_t>(row.d)] * counted_[1][static_cast<size_t>(row.h)];
  }

  // Rows [begin, end) of means, while they are in cache.
  void mend_means(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int64_t width = windows_[2].out;
    float* y = args.outputs[0].mutable_data<float>();
    if (all_finite(y + begin * width, (end - begin) * width)) return;
    const int64_t plane = windows_[0].in * windows_[1].in * windows_[2].in;
    for_each_row(begin, end, [&](const Row& row) {
      mend_row(args.inputs[0].data<float>() + row.channel * plane, row, y + row.at);
    });
  }

  void mend_row(const float* x, const Row& row, float* y) const {
    const WindowAxis& width = windows_[2];
    for (int64_t o = 0; o < width.out; ++o) {
      if (std::isfinite(y[o])) continue;
      const TapRange taps = width.taps_inside(o);
      double sum = 0;
      for_each_line(row.d, row.h, [&](int64_t begin) {
        for (int64_t k = 0; k < taps.count; ++k) sum += static_cast<double>(x[begin + taps.input + k * width.dilation]);
      });
      y[o] = static_cast<float>(sum / static_cast<double>(counted_rows(row) * counted_[2][static_cast<size_t>(o)]));
    }
  }

  // Of `lines`, which may be none.
  void write_row(std::span<const float* const> lines, float* joined, float counted, float* y) const {
    if (lines.empty()) {
      std::fill_n(y, row_.axis.out, pool_ == Pool::average ? 0.0F : -std::numeric_limits<float>::infinity());
    } else if (pool_ == Pool::average) {
      average_pool_row(row_, lines, joined, counted, counted_[2].data(), y);
    } else {
      max_pool_row(row_, lines, joined, y);
    }
  }

  const float* join_lines(std::span<const float* const> lines, float* joined) const {
    return pool_ == Pool::average ? sum_of_lines(lines, row_.axis.in, joined)
                                  : largest_of_lines(lines, row_.axis.in, joined);
  }

  // Where in its plane each line of inputs begins that the windows of outputs (d, h) meet.
  template <class Visit>
  void for_each_line(int64_t d, int64_t h, const Visit& visit) const {
    const WindowAxis &depth = windows_[0], &height = windows_[1];
    const TapRange in_depth = inside_[0][static_cast<size_t>(d)], in_height = inside_[1][static_cast<size_t>(h)];
    for (int64_t i = 0; i < in_depth.count; ++i) {
      for (int64_t j = 0; j < in_height.count; ++j) {
        const int64_t z = in_depth.input + i * depth.dilation;
        visit((z * height.in + in_height.input + j * height.dilation) * windows_[2].in);
      }
    }
  }

  // In whole cache lines, so that threads do not write to the same ones.
  int64_t row_size() const { return (std::max(windows_[2].in, windows_[2].out) + 15) / 16 * 16; }

  static constexpr size_t kMostLines = 16;
  static constexpr int64_t kRowsPerLook = 32;

  Pool pool_;
  std::vector<WindowAxis> windows_;
  RowWindows row_;
  int64_t channels_;
  std::array<std::vector<float>, 3> counted_;    // taps that count in a mean, by axis and output
  std::array<std::vector<TapRange>, 2> inside_;  // of depth and height, by output
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

// As measured (bench_kernels pool): combining elements, and beginning with a row. Windows of two or three neighbours
// take one pass over a row, others one for each tap; positions are followed tap by tap.
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 1;
  const bool with_positions = call.outputs.size() > 1;
  const auto outputs = static_cast<double>(call.outputs[0].shape().num_elements().value_or(0));
  const double rows = outputs / static_cast<double>(call.output_dims(0).back());
  double lines = 1;  // of a window
  double width = 1;
  bool neighbours = true;
  for (const WindowAxis& axis : windows_of(call)) {
    lines *= width;
    width = static_cast<double>(axis.kernel);
    neighbours = axis.dilation == 1 && axis.kernel <= 3;
  }
  const double steps_per_us = with_positions ? 1.5e3 : neighbours ? 12e3 : 4e3;
  const double rows_per_us = with_positions ? 16 : 100;
  const double steps = with_positions ? lines * width : lines + width - 1;
  const double us = kStartUs + (outputs * steps / steps_per_us + rows / rows_per_us) / call.threads;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
}

KernelDef kernel_for(std::string_view name, std::string_view op) {
  return {.name = name, .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> plane_pool_kernels() {
  return {kernel_for("cpu.max_pool_rows", max_pool_def().name),
          kernel_for("cpu.average_pool_rows", average_pool_def().name)};
}

}  // namespace autograph
