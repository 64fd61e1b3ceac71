// lp_normalization in f32 along any axis; norms are summed up in f64, where squares cannot overflow.
#include <cmath>

#include "backends/cpu/axis_kernel.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"

namespace autograph {
namespace {

AG_MULTIVERSION double sum_of_magnitudes(const float* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += std::fabs(static_cast<double>(x[i]));
  return sum;
}

AG_MULTIVERSION double sum_of_squares(const float* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return sum;
}

AG_MULTIVERSION void scale_row(const float* x, double factor, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] * factor);
}

AG_MULTIVERSION void add_magnitudes(const float* x, double* sums, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sums[i] += std::fabs(static_cast<double>(x[i]));
}

AG_MULTIVERSION void add_squares(const float* x, double* sums, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
}

AG_MULTIVERSION void scale_columns(const float* x, const double* factors, float* y, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(x[i] * factors[i]);
}

class LpNormalizationKernel : public AxisKernel {
 public:
  explicit LpNormalizationKernel(const KernelCall& call)
      : AxisKernel(call, call.attributes.integer("axis")), magnitudes_(call.attributes.integer("p") == 1) {}

 private:
  // What elements are multiplied by. Where the sum is 0 they are all 0, and stay it.
  double factor_of(double sum) const { return sum == 0 ? 0 : 1 / (magnitudes_ ? sum : std::sqrt(sum)); }

  void run_row(const float* x, float* y) const override {
    const double sum = magnitudes_ ? sum_of_magnitudes(x, blocks().extent) : sum_of_squares(x, blocks().extent);
    scale_row(x, factor_of(sum), y, blocks().extent);
  }

  void run_columns(const float* x, float* y, int64_t count) const override {
    double factors[AxisBlocks::kStrip] = {};
    const int64_t end = blocks().extent * blocks().inner;
    for (int64_t at = 0; at < end; at += blocks().inner) {
      if (magnitudes_)
        add_magnitudes(x + at, factors, count);
      else
        add_squares(x + at, factors, count);
    }
    for (int64_t i = 0; i < count; ++i) factors[i] = factor_of(factors[i]);
    for (int64_t at = 0; at < end; at += blocks().inner) scale_columns(x + at, factors, y + at, count);
  }

  const bool magnitudes_;
};

std::string why_not(const KernelCall& call) { return why_not_f32(call); }

Prepared prepare(const KernelCall& call) { return {std::make_unique<LpNormalizationKernel>(call), ""}; }

}  // namespace

KernelDef lp_normalization_kernel() {
  return {.name = "cpu.lp_normalization", .op = lp_normalization_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
