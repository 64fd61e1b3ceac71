// What cuBLASLt is asked to multiply for a call, or why it is not.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "autograph/kernel.h"

namespace autograph::cuda {

/// y[b] = f(alpha * left[b] * right[b] + beta * c), with matrices as they lie in memory, row by row; a step of 0 takes
/// the same matrix for all.
struct LtProblem {
  enum class Addend : uint8_t { none, matrix, row };
  enum class Activation : uint8_t { none, relu, tanh_gelu };

  int64_t batches = 1, rows = 0, inner = 0, columns = 0;
  int64_t left_step = 0, right_step = 0;
  bool transposes_left = false, transposes_right = false;
  double alpha = 1, beta = 0;
  Addend addend = Addend::none;
  Activation activation = Activation::none;
  DType dtype = DType::f32;
  std::array<size_t, 3> slots{0, 1, 2};  ///< Inputs of the call: left, right, addend.
  std::string refusal;                   ///< "" where the library takes it.

  bool has_16_bits() const { return element_size(dtype) == 2; }
  double flops() const;
};

/// Of matmul or gemm.
LtProblem lt_problem(const KernelCall& call);

/// Of a fused body that begins with `producer`, all of which must be what an epilogue of the library computes: a row
/// that is added, and relu or gelu in the tanh form behind it.
LtProblem lt_epilogue_problem(const KernelCall& call, const OpDef& producer);

/// What the library calls a dtype that it multiplies.
int lt_data_type(DType dtype);

}  // namespace autograph::cuda
