// Typed builders of matrix products and their relatives.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// a [..., m, k] times b [..., k, n] gives [..., m, n]; leading dims broadcast, vectors act as a row (a) or column (b).
Var matmul(Var a, Var b);

/// Determinants of the square matrices of the last two dims: [..., n, n] gives [...].
Var det(Var x);

/// Sums of products over labelled dims: einsum("ij,jk->ik", {a, b}) is a matrix product.
Var einsum(const std::string& equation, const std::vector<Var>& operands);

/// Factors and transpositions of gemm().
struct GemmOptions {
  float alpha = 1.0f;        ///< Factor of the product.
  float beta = 1.0f;         ///< Factor of c.
  bool transpose_a = false;  ///< a is [k, m] instead of [m, k].
  bool transpose_b = false;  ///< b is [n, k] instead of [k, n].
};

/// alpha * a b + beta * c: a [m, k], b [k, n], c broadcasts to the result [m, n] (may be invalid: nothing is added).
Var gemm(Var a, Var b, Var c = {}, GemmOptions options = {});
/// x [..., k] times the transpose of w [n, k], whose elements are (q - zero) * scale: q u8 [n, blocks, block * bits /
/// 8], a scale and a zero point for each block; `bits` is 4 or 8. Kernels may round x to `x_bits`, 16 or 32, in each
/// block.
Var block_matmul(Var x, Var q, Var scale, Var zero, int64_t k, int64_t bits = 4, int64_t x_bits = 32);

/// Products with matrices that are chosen row by row, as a mixture of experts has them: y[t, c] = w[index[t, c]] x[t,
/// c] for x [tokens, choices or 1, k], index i64 [tokens, choices] and w [matrices, n, k]; gives [tokens, choices, n].
/// Negative indices count from the end.
Var gather_matmul(Var x, Var index, Var w);
/// The same with weights as block_matmul() has them: q u8 [matrices, n, blocks, block * bits / 8], scale and zero
/// [matrices, n, blocks].
Var gather_block_matmul(Var x, Var index, Var q, Var scale, Var zero, int64_t k, int64_t bits = 4, int64_t x_bits = 32);

}  // namespace autograph
