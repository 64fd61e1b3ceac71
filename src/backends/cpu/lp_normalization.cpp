// lp_normalization in f32 along any axis; norms are summed up in f64, where squares cannot overflow.
#include <cmath>

#include "backends/cpu/axis_blocks.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/refusal.h"

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

class LpNormalizationKernel : public Kernel {
 public:
  explicit LpNormalizationKernel(const KernelCall& call)
      : blocks_(call.input_dims(0), call.attributes.integer("axis")),
        magnitudes_(call.attributes.integer("p") == 1),
        threads_(useful_threads(call.threads, 2 * blocks_.elements())) {}

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    for_shares(threads_, blocks_.units(), [&](int64_t begin, int64_t end, int) {
      blocks_.for_strips(begin, end, [&](int64_t block, int64_t column, int64_t count) {
        const int64_t at = block * blocks_.extent * blocks_.inner + column;
        if (blocks_.inner == 1)
          run_row(x + at, y + at);
        else
          run_columns(x + at, y + at, count);
      });
    });
  }

 private:
  // What elements are multiplied by. Where the sum is 0 they are all 0, and stay it.
  double factor_of(double sum) const { return sum == 0 ? 0 : 1 / (magnitudes_ ? sum : std::sqrt(sum)); }

  void run_row(const float* x, float* y) const {
    const double sum = magnitudes_ ? sum_of_magnitudes(x, blocks_.extent) : sum_of_squares(x, blocks_.extent);
    scale_row(x, factor_of(sum), y, blocks_.extent);
  }

  void run_columns(const float* x, float* y, int64_t count) const {
    double factors[AxisBlocks::kStrip] = {};
    const int64_t end = blocks_.extent * blocks_.inner;
    for (int64_t at = 0; at < end; at += blocks_.inner) {
      if (magnitudes_)
        add_magnitudes(x + at, factors, count);
      else
        add_squares(x + at, factors, count);
    }
    for (int64_t i = 0; i < count; ++i) factors[i] = factor_of(factors[i]);
    for (int64_t at = 0; at < end; at += blocks_.inner) scale_columns(x + at, factors, y + at, count);
  }

  const AxisBlocks blocks_;
  const bool magnitudes_;
  const int threads_;
};

std::string why_not(const KernelCall& call) { return why_not_f32(call); }

Prepared prepare(const KernelCall& call) { return {std::make_unique<LpNormalizationKernel>(call), ""}; }

}  // namespace

KernelDef lp_normalization_kernel() {
  return {.name = "cpu.lp_normalization", .op = "lp_normalization", .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
