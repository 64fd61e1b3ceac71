// cum_sum in f32 along any axis, accumulated in f64: strips of columns side by side, or row by row.
#include "backends/cpu/axis_kernel.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// Adds a row to the totals and writes them, those of before when `exclusive`. x and y may be the same.
AG_MULTIVERSION void add_row(const float* x, double* totals, float* y, int64_t count, bool exclusive) {
  if (exclusive) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
      const double total = totals[i];
      totals[i] = total + x[i];
      y[i] = static_cast<float>(total);
    }
    return;
  }
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    totals[i] += x[i];
    y[i] = static_cast<float>(totals[i]);
  }
}

class CumulativeSumKernel : public AxisKernel {
 public:
  explicit CumulativeSumKernel(const KernelCall& call)
      : AxisKernel(call, call.constant(1)->to_i64().front()),
        exclusive_(call.attributes.flag("exclusive")),
        reverse_(call.attributes.flag("reverse")) {}

 private:
  void run_row(const float* x, float* y) const override {
    double total = 0;
    for (int64_t i = 0; i < blocks().extent; ++i) {
      const int64_t at = reverse_ ? blocks().extent - 1 - i : i;
      const double before = total;
      total += x[at];
      y[at] = static_cast<float>(exclusive_ ? before : total);
    }
  }

  void run_columns(const float* x, float* y, int64_t count) const override {
    double totals[AxisBlocks::kStrip] = {};
    for (int64_t i = 0; i < blocks().extent; ++i) {
      const int64_t at = (reverse_ ? blocks().extent - 1 - i : i) * blocks().inner;
      add_row(x + at, totals, y + at, count, exclusive_);
    }
  }

  const bool exclusive_, reverse_;
};

std::string why_not(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "only f32";
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  return call.constant(1) ? "" : "an axis that is not known";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<CumulativeSumKernel>(call), ""}; }

}  // namespace

KernelDef cumulative_sum_kernel() {
  return {.name = "cpu.cum_sum", .op = cum_sum_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph
