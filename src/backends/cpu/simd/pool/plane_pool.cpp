// max_pool, with or without the positions of the maxima, and average_pool over row-major f32: some rows of outputs at a
// time. NaN and infinity are treated as the definitions say; means of sums beyond the range of f32 are computed again
// in f64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "backends/cpu/all_finite.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/pool/arg_max_line.h"
#include "backends/cpu/simd/pool/plane_rows.h"
#include "backends/cpu/simd/pool/pool_rows.h"
#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "ops/defs.h"

namespace autograph::simd {
namespace {

class PlanePool : public Kernel {
 public:
  PlanePool(const KernelCall& call, bool is_mean)
      : is_mean_(is_mean),
        rows_(call),
        group_(std::clamp<int64_t>(kJoinedElements / joined_line_size(rows_.width()), 1, kMostRows)) {
    const bool includes_pads = is_mean && call.attributes.flag("count_include_pad");
    for (size_t a = 0; a < counted_.size(); ++a) counted_[a] = counted_taps(rows_.windows()[a], includes_pads);
    threads_ = useful_threads(call.threads, rows_.count() * rows_.width().out * rows_.taps() / 4);
    for (const float depth : counted_[0]) {
      for (const float height : counted_[1]) parts_of_row_.push_back(parts_of(depth * height).data());
    }
  }

  // For every thread the joined lines of some rows, and where the lines lie that are joined.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * (joined_bytes() + lines_bytes())); }

  void run(const KernelArgs& args) const override {
    for_shares(threads_, rows_.count(), [&](int64_t begin, int64_t end, int thread) {
      std::byte* scratch = static_cast<std::byte*>(args.scratch) + thread * (joined_bytes() + lines_bytes());
      auto* joined = reinterpret_cast<float*>(scratch);
      auto** lines = reinterpret_cast<const float**>(scratch + joined_bytes());
      pad_joined_lines(rows_.width(), is_mean_, std::min(group_, end - begin), joined);
      for (int64_t first = begin; first < end; first += group_) {
        const int64_t last = std::min(end, first + group_);
        compute(args, first, last, joined, lines);
        if (is_mean_) mend_means(args, first, last);
      }
    });
  }

 private:
  // Elements of joined lines that stay in the first cache beside what they are made of.
  static constexpr int64_t kJoinedElements = 3072;
  static constexpr int64_t kMostRows = 64;
  int64_t joined_bytes() const {
    return static_cast<int64_t>(
        aligned_size(static_cast<size_t>(group_ * joined_line_size(rows_.width())) * sizeof(float)));
  }
  int64_t lines_bytes() const {
    return static_cast<int64_t>(aligned_size(static_cast<size_t>(group_ * rows_.most_lines()) * sizeof(const float*)));
  }

  // By window of a row, what part of a sum is the mean where `counted` lines count; 0 where nothing does.
  const std::vector<float>& parts_of(float counted) {
    std::vector<float>& parts = parts_[counted];
    if (!parts.empty()) return parts;
    parts.resize(static_cast<size_t>(pool_parts_size(rows_.width())));
    for (size_t o = 0; o < counted_[2].size(); ++o) {
      const float taps = counted * counted_[2][o];
      parts[o] = taps == 0 ? 0 : 1 / taps;
    }
    return parts;
  }

  size_t number_in_channel(const PlaneRows::Row& row) const {
    return static_cast<size_t>(row.d * rows_.windows()[1].out + row.h);
  }

  void compute(const KernelArgs& args, int64_t first, int64_t last, float* joined, const float** lines) const {
    std::array<PoolRow, kMostRows> rows;
    size_t count = 0;
    rows_.for_each(first, last, [&](const PlaneRows::Row& row) {
      const float* x = args.inputs[0].data<float>() + row.channel * rows_.plane();
      const float** begin = lines;
      rows_.for_each_line(row, [&](int64_t line) { *lines++ = x + line; });
      rows[count++] = {.lines = {begin, lines},
                       .parts = parts_of_row_[number_in_channel(row)],
                       .y = args.outputs[0].mutable_data<float>() + row.at};
    });
    pool_rows({.axis = rows_.width(), .is_mean = is_mean_, .rows = {rows.data(), count}, .joined = joined});
  }

  // Rows [begin, end) of means, while they are in cache.
  void mend_means(const KernelArgs& args, int64_t begin, int64_t end) const {
    const int64_t width = rows_.width().out;
    float* y = args.outputs[0].mutable_data<float>();
    if (all_finite(y + begin * width, (end - begin) * width)) return;
    rows_.for_each(begin, end, [&](const PlaneRows::Row& row) {
      mend_row(args.inputs[0].data<float>() + row.channel * rows_.plane(), row, y + row.at);
    });
  }

  void mend_row(const float* x, const PlaneRows::Row& row, float* y) const {
    const WindowAxis& width = rows_.width();
    const float lines = counted_[0][static_cast<size_t>(row.d)] * counted_[1][static_cast<size_t>(row.h)];
    for (int64_t o = 0; o < width.out; ++o) {
      if (std::isfinite(y[o])) continue;
      const TapRange taps = width.taps_inside(o);
      double sum = 0;
      rows_.for_each_line(row, [&](int64_t begin) {
        for (int64_t k = 0; k < taps.count; ++k) sum += static_cast<double>(x[begin + taps.input + k * width.dilation]);
      });
      y[o] = static_cast<float>(sum / static_cast<double>(lines * counted_[2][static_cast<size_t>(o)]));
    }
  }

  bool is_mean_;
  PlaneRows rows_;
  int64_t group_;                              // rows that are computed together
  std::array<std::vector<float>, 3> counted_;  // taps that count in a mean, by axis and output
  std::map<float, std::vector<float>> parts_;  // by lines that count
  std::vector<const float*> parts_of_row_;     // by row of a channel
  int threads_ = 1;
};

class ArgMaxPool : public Kernel {
 public:
  explicit ArgMaxPool(const KernelCall& call) : rows_(call), taps_(taps_of_row(rows_.width())) {
    threads_ = useful_threads(call.threads, rows_.count() * rows_.width().out * rows_.taps() / 2);
  }

  // For every thread a row of positions.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_) * row_bytes(); }

  void run(const KernelArgs& args) const override {
    for_shares(threads_, rows_.count(), [&](int64_t begin, int64_t end, int thread) {
      std::byte* scratch = static_cast<std::byte*>(args.scratch) + static_cast<size_t>(thread) * row_bytes();
      auto* positions = reinterpret_cast<int32_t*>(scratch);
      rows_.for_each(begin, end, [&](const PlaneRows::Row& row) { compute(args, row, positions); });
    });
  }

 private:
  void compute(const KernelArgs& args, const PlaneRows::Row& row, int32_t* positions) const {
    const int64_t width = rows_.width().out, before = row.channel * rows_.plane();
    const float* x = args.inputs[0].data<float>() + before;
    float* y = args.outputs[0].mutable_data<float>() + row.at;
    std::fill_n(y, width, -std::numeric_limits<float>::infinity());
    std::fill_n(positions, width, -1);
    rows_.for_each_line(row, [&](int64_t line) {
      add_arg_max_line(taps_, rows_.width().stride, x + line, static_cast<int32_t>(line), y, positions);
    });
    int64_t* indices = args.outputs[1].mutable_data<int64_t>() + row.at;
    for (int64_t o = 0; o < width; ++o) indices[o] = positions[o] < 0 ? -1 : before + positions[o];
  }

  // In whole cache lines, so that threads do not write to the same ones.
  size_t row_bytes() const { return aligned_size(static_cast<size_t>(rows_.width().out) * sizeof(int32_t)); }

  PlaneRows rows_;
  std::vector<RowTaps> taps_;
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
  if (call.outputs.size() > 1) return {std::make_unique<ArgMaxPool>(call), ""};
  return {std::make_unique<PlanePool>(call, &call.op == &average_pool_def()), ""};
}

// As measured (bench_kernels pool): beginning with a row, and vectors of elements that are joined or pooled.
double cost_us(const PlaneRows& rows) {
  constexpr double kRowUs = 0.014;
  constexpr double kVectorUs = 0.0023;
  const double lanes = static_cast<double>(pool_parts_size({.in = 1, .out = 1}));
  const auto vectors = [&](int64_t elements) { return std::ceil(static_cast<double>(elements) / lanes); };
  const WindowAxis& width = rows.width();
  const double of_row = vectors(width.in) * static_cast<double>(rows.most_lines()) +
                        vectors(width.out) * static_cast<double>(width.kernel);
  return static_cast<double>(rows.count()) * (kRowUs + of_row * kVectorUs);
}

// One tap after the other, of one line after the other.
double arg_max_cost_us(const PlaneRows& rows) {
  constexpr double kRowUs = 0.06;
  constexpr double kTapUs = 0.0007;
  return static_cast<double>(rows.count()) * (kRowUs + static_cast<double>(rows.width().out * rows.taps()) * kTapUs);
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 1;
  const PlaneRows rows(call);
  const double us = call.outputs.size() > 1 ? arg_max_cost_us(rows) : cost_us(rows);
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = kStartUs + us / call.threads}};
}

KernelDef kernel_for(std::string_view name, std::string_view op) {
  return {.name = name, .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> plane_pool_kernels() {
  return {kernel_for("cpu.max_pool_rows", max_pool_def().name),
          kernel_for("cpu.average_pool_rows", average_pool_def().name)};
}

}  // namespace autograph::simd
