// Sums and means in f32 over neighbouring axes, accumulated in f64: rows when nothing follows the axes, else columns.
#include <algorithm>
#include <optional>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/multiversion.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/refusal.h"

namespace autograph {
namespace {

// The input as [outer, reduced, inner].
struct Extents {
  int64_t outer = 1;
  int64_t reduced = 1;
  int64_t inner = 1;
};

AG_MULTIVERSION double sum_row(const float* x, int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < count; ++i) sum += x[i];
  return sum;
}

AG_MULTIVERSION void add_row(const float* x, double* sums, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += x[i];
}

class SumKernel : public Kernel {
 public:
  SumKernel(const Extents& extents, double factor, int threads)
      : extents_(extents),
        factor_(factor),
        threads_(useful_threads(threads, extents.outer * extents.reduced * extents.inner)) {}
  size_t scratch_bytes() const override {
    return extents_.inner == 1 ? 0 : static_cast<size_t>(extents_.inner) * sizeof(double);
  }
  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    if (extents_.inner == 1) {
      for_shares(threads_, extents_.outer, [&](int64_t begin, int64_t end, int) {
        for (int64_t o = begin; o < end; ++o) {
          y[o] = static_cast<float>(sum_row(x + o * extents_.reduced, extents_.reduced) * factor_);
        }
      });
      return;
    }
    // Every thread has columns of its own, in the scratch memory as well.
    for_shares(threads_, extents_.inner, [&](int64_t begin, int64_t end, int) {
      double* sums = static_cast<double*>(args.scratch) + begin;
      for (int64_t o = 0; o < extents_.outer; ++o) {
        sum_columns(x + o * extents_.reduced * extents_.inner + begin, sums, y + o * extents_.inner + begin,
                    end - begin);
      }
    });
  }

 private:
  void sum_columns(const float* x, double* sums, float* y, int64_t count) const {
    std::fill(sums, sums + count, 0.0);
    for (int64_t r = 0; r < extents_.reduced; ++r) add_row(x + r * extents_.inner, sums, count);
    for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(sums[i] * factor_);
  }

  const Extents extents_;
  const double factor_;
  const int threads_;
};

// Which axes the call reduces, ascending; nothing when they are not known or not neighbours.
std::optional<Extents> reduced_extents(const KernelCall& call) {
  const Dims dims = call.input_dims(0);
  std::vector<bool> is_reduced(dims.size(), !call.has_input(1));
  if (call.has_input(1)) {
    if (!call.constant(1)) return std::nullopt;
    const std::vector<int64_t> axes = call.constant(1)->to_i64();
    for (const int64_t axis : axes) {
      is_reduced[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis)] = true;
    }
    if (axes.empty()) is_reduced.assign(dims.size(), true);
  }
  if (call.attributes.flag("noop_with_empty_axes") && (!call.has_input(1) || call.constant(1)->num_elements() == 0)) {
    return std::nullopt;
  }
  Extents extents;
  int stage = 0;  // 0 before, 1 in, 2 behind the reduced axes
  for (size_t a = 0; a < dims.size(); ++a) {
    if (is_reduced[a] && stage == 2) return std::nullopt;
    if (is_reduced[a]) stage = 1;
    if (!is_reduced[a] && stage == 1) stage = 2;
    (stage == 0 ? extents.outer : stage == 1 ? extents.reduced : extents.inner) *= dims[a];
  }
  return extents;
}

std::string why_not_reduce(const KernelCall& call) {
  if (call.inputs[0].dtype() != DType::f32) return "only f32";
  if (call.inputs[0].shape().num_elements() == 0) return "a tensor without elements";
  return reduced_extents(call) ? "" : "axes that are unknown, none or not neighbours";
}

Prepared prepare_sum(const KernelCall& call) {
  return {std::make_unique<SumKernel>(*reduced_extents(call), 1.0, call.threads), ""};
}

Prepared prepare_mean(const KernelCall& call) {
  const Extents extents = *reduced_extents(call);
  return {std::make_unique<SumKernel>(extents, 1.0 / static_cast<double>(extents.reduced), call.threads), ""};
}

}  // namespace

std::vector<KernelDef> reduction_kernels() {
  return {
      {"cpu.reduce_sum", "reduce_sum", why_not_reduce, prepare_sum},
      {"cpu.reduce_mean", "reduce_mean", why_not_reduce, prepare_mean},
  };
}

}  // namespace autograph
