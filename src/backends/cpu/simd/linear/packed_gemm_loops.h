// The loops of products whose both factors are packed while they run, however they lie in memory.
//
// Blocks of both are copied to where nothing else is, in the order in which they are read. Rows of a matrix that are
// a power of two apart meet in few sets of the caches, which costs libraries that read them in place up to half of
// their speed.
#pragma once

#include <cstdint>
#include <span>

namespace autograph::simd {

/// A matrix in memory: element (row, column) at data[row * stride + column], or at data[column * stride + row].
struct GemmOperand {
  const float* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

/// What happens to each element y once its sum is complete, in order.
struct GemmStep {
  enum class Kind : uint8_t {
    add,       ///< y + from[row, column]
    add_row,   ///< y + from[column]
    multiply,  ///< y * from[row, column]
    relu,      ///< max(y, 0); NaN stays
  };
  Kind kind = Kind::relu;
  const float* from = nullptr;  ///< Laid out as y, or a row.
};

/// y [rows, columns] = steps(alpha * a b).
struct GemmTask {
  GemmOperand a;  ///< [rows, depth]
  GemmOperand b;  ///< [depth, columns]
  int64_t rows = 0, depth = 0, columns = 0;
  float alpha = 1;
  bool in_place = false;  ///< Are the factors read where they lie? See is_better_in_place().
  float* y = nullptr;
  int64_t y_stride = 0;
  std::span<const GemmStep> steps;
};

/// Rows and columns that are computed together: the smallest useful shares for threads.
int64_t gemm_tile_rows();
int64_t gemm_tile_columns();
/// Floats of memory that run_gemm() needs.
int64_t gemm_scratch_size();
/// The same of a product that is formed in place.
int64_t in_place_gemm_scratch_size(int64_t depth, int64_t columns);

/// Small products are over before packing has paid: do the factors stay in the first caches as they lie?
bool is_better_in_place(const GemmOperand& a, const GemmOperand& b, int64_t depth, int64_t columns);

/// Every element is summed in the order of the depth, whatever part of a product the task is.
void run_gemm(const GemmTask& task, float* scratch);

}  // namespace autograph::simd
