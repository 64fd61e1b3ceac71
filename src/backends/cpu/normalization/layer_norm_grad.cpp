// layer_normalization_grad of f32: row by row, while a row is in the first cache; every thread adds up what its rows
// give to scale and bias, and the sums of all threads are added in their order. Rows whose squares are beyond the range
// of f32, or whose elements are far from 0 and close together, are computed in f64.
#include <cmath>
#include <memory>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

struct RowMoments {
  float mean, inverse;
  float g, product;  // means of g * scale and of g * scale * normal
  bool holds;        // else none of them is good
};

// Two looks at x and one at g; elements are added in f32 in as many sums as a vector has lanes.
AG_MULTIVERSION RowMoments row_moments(const float* x, const float* g, const float* scale, int64_t count,
                                       double epsilon) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(count);
  float squares = 0, flow = 0, product = 0;
#pragma omp simd reduction(+ : squares, flow, product)
  for (int64_t i = 0; i < count; ++i) {
    const float difference = x[i] - mean, scaled = g[i] * scale[i];
    squares += difference * difference;
    flow += scaled;
    product += scaled * difference;
  }
  const double variance = static_cast<double>(squares) / static_cast<double>(count);
  const auto inverse = static_cast<float>(1 / std::sqrt(variance + epsilon));
  return {mean, inverse, flow / static_cast<float>(count), product * inverse / static_cast<float>(count),
          holds_in_f32(variance, mean, epsilon)};
}

AG_MULTIVERSION void write_row(const float* x, const float* g, const float* scale, const RowMoments& row, int64_t count,
                               float* gx, float* of_scale, float* of_bias) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const float normal = (x[i] - row.mean) * row.inverse, flow = g[i];
    gx[i] = row.inverse * (flow * scale[i] - row.g - normal * row.product);
    of_scale[i] += flow * normal;
    of_bias[i] += flow;
  }
}

void write_row_in_f64(const float* x, const float* g, const float* scale, int64_t count, double epsilon, float* gx,
                      float* of_scale, float* of_bias) {
  const Moments row = moments_in_f64(x, [&](const auto& visit) {
    for (int64_t i = 0; i < count; ++i) visit(i);
  });
  const double inverse = 1 / std::sqrt(row.variance + epsilon);
  const auto normal = [&](int64_t i) { return (static_cast<double>(x[i]) - row.mean) * inverse; };
  const auto scaled = [&](int64_t i) { return static_cast<double>(g[i]) * static_cast<double>(scale[i]); };
  double flow = 0, product = 0;
  for (int64_t i = 0; i < count; ++i) {
    flow += scaled(i) / static_cast<double>(count);
    product += scaled(i) * normal(i) / static_cast<double>(count);
  }
  for (int64_t i = 0; i < count; ++i) {
    const double of_x = inverse * (scaled(i) - flow - normal(i) * product);
    of_scale[i] += static_cast<float>(static_cast<double>(g[i]) * normal(i));
    of_bias[i] += g[i];
    gx[i] = static_cast<float>(of_x);  // last, because it may lie where x or g does
  }
}

AG_MULTIVERSION void add_to(const float* from, int64_t count, double* to) {
  for (int64_t i = 0; i < count; ++i) to[i] += static_cast<double>(from[i]);
}

class LayerNormGradient : public Kernel {
 public:
  explicit LayerNormGradient(const KernelCall& call)
      : size_(*call.inputs[1].shape().num_elements()),
        rows_(*call.inputs[0].shape().num_elements() / size_),
        epsilon_(call.attributes.real("epsilon")),
        threads_(useful_threads(call.threads, 4 * rows_ * size_)) {}

  // For every thread its sums in f64, those of scale before those of bias; then its sums of a few rows in f32.
  size_t scratch_bytes() const override {
    return static_cast<size_t>(threads_ * 2 * size_) * (sizeof(double) + sizeof(float));
  }

  std::vector<uint32_t> in_place_inputs() const override { return {2, 0}; }

  void run(const KernelArgs& args) const override {
    auto* totals = static_cast<double*>(args.scratch);
    auto* few = reinterpret_cast<float*>(totals + threads_ * 2 * size_);
    std::fill_n(totals, threads_ * 2 * size_, 0.0);
    for_fixed_shares(threads_, rows_, [&](int64_t begin, int64_t end, int thread) {
      compute_rows(args, begin, end, totals + thread * 2 * size_, few + thread * 2 * size_);
    });
    for (int64_t i = 2 * size_; i < threads_ * 2 * size_; ++i) totals[i % (2 * size_)] += totals[i];
    for (size_t k = 1; k < args.outputs.size(); ++k) {
      if (!args.outputs[k].is_present()) continue;
      const double* sums = totals + (static_cast<int64_t>(k) - 1) * size_;
      float* out = args.outputs[k].mutable_data<float>();
      for (int64_t i = 0; i < size_; ++i) out[i] = static_cast<float>(sums[i]);
    }
  }

 private:
  void compute_rows(const KernelArgs& args, int64_t begin, int64_t end, double* totals, float* few) const {
    constexpr int64_t kFew = 32;  // rows added up in f32
    const float* x = args.inputs[0].data<float>();
    const float* scale = args.inputs[1].data<float>();
    const float* g = args.inputs[2].data<float>();
    float* gx = args.outputs[0].mutable_data<float>();
    for (int64_t first = begin; first < end; first += kFew) {
      std::fill_n(few, 2 * size_, 0.0F);
      for (int64_t r = first; r < std::min(end, first + kFew); ++r) {
        const int64_t at = r * size_;
        const RowMoments row = row_moments(x + at, g + at, scale, size_, epsilon_);
        if (row.holds) {
          write_row(x + at, g + at, scale, row, size_, gx + at, few, few + size_);
        } else {
          write_row_in_f64(x + at, g + at, scale, size_, epsilon_, gx + at, few, few + size_);
        }
      }
      add_to(few, 2 * size_, totals);
    }
  }

  const int64_t size_;  // of a row
  const int64_t rows_;
  const double epsilon_;
  const int threads_;
};

Prepared prepare(const KernelCall& call) { return {std::make_unique<LayerNormGradient>(call), ""}; }

}  // namespace

KernelDef layer_norm_grad_kernel() {
  return {.name = "cpu.layer_norm_grad",
          .op = layer_normalization_grad_def().name,
          .why_not = why_not_f32,
          .prepare = prepare};
}

}  // namespace autograph
