// Reductions of the innermost axes, some rows at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "autograph/kernel.h"
#include "backends/cpu/reduction/reduced_axes.h"

namespace autograph::simd {

/// The axes that a call of a reduction combines: that of its input 0, over the axes of its input 1. Nothing when the
/// call is none that the kernels of this folder take.
std::optional<ReducedAxes> reduced_axes(const KernelCall& call);

/// Combines rows of `length` > 1 neighbouring elements to one element each.
class RowReduction {
 public:
  RowReduction(std::string_view op, int64_t length);
  ~RowReduction();
  /// y[r] = the total of row r of x, for r < rows.
  void run(const float* x, int64_t rows, float* y) const;

 private:
  struct Impl;
  std::unique_ptr<const Impl> impl_;
};

}  // namespace autograph::simd
