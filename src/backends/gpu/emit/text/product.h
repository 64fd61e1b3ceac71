// Products of matrices, tile by tile through local memory: matmul, gemm, and convolutions that read their input as a
// matrix. What a matrix is made of, the caller says as text.
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// One element of a matrix: the expression for it, from the names of its batch, row and column. Lines may be written
/// first; the expression is of the accumulator's type.
using ElementText =
    std::function<std::string(const std::string& batch, const std::string& row, const std::string& column)>;

/// y[b, m, n] = sum over k of a[b, m, k] * c[b, k, n].
struct Product {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  std::string type;              ///< Of sums: "f32", "f64", "u32", "u64".
  bool left_walks_inner = true;  ///< Are neighbours of the left matrix in memory neighbours along k?
  ElementText left;              ///< At (batch, m, k).
  ElementText right;             ///< At (batch, k, n).
  std::function<void(const std::string& batch, const std::string& row, const std::string& column,
                     const std::string& sum)>
      write;  ///< Writes the statements that store a sum.
};

/// Writes the kernel.
void write_product(Writer& writer, const std::vector<Parameter>& parameters, const Product& product);

/// The type in which products of this dtype are summed; "" for those that are not multiplied.
std::string product_type(DType dtype);

/// Can products of this dtype be written for the target?
bool can_multiply(DType dtype, const Target& target);

}  // namespace autograph::gpu
