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

/// A matrix whose elements take more to find than to read, row and column each by itself: what depends on a column
/// alone is written once, before the loop along k, what depends on a row once a step.
struct SplitElement {
  /// Writes lines about a column or a row; the names that they declare end with `id`.
  std::function<void(const std::string&column, const std::string&id)> column, row;
  /// When the element lies inside ("": always), and the element.
  std::function<std::string(const std::string&column_id, const std::string&row_id)> inside, element;
};

/// y[b, m, n] = sum over k of a[b, m, k] * c[b, k, n].
struct Product {
  int64_t batches = 1;
  int64_t rows = 0;
  int64_t inner = 0;
  int64_t columns = 0;
  std::string type;              ///< Of sums: "f32", "f64", "u32", "u64".
  bool left_walks_inner = true;  ///< Are neighbours of the left matrix in memory neighbours along k?
  bool can_split = false;        ///< May the sums along k be cut into parts, which a second kernel adds up?
  ElementText left;              ///< At (batch, m, k).
  ElementText right;             ///< At (batch, k, n). Or:
  SplitElement split_right;      ///< The same, of the batch "b".
  double right_us = 0.02;        ///< Microseconds, about, that an item of a group takes to read one of its elements.
  /// Pointers to f32 elements of which four neighbours are read at once: of the left matrix those along k, of which
  /// there is a multiple of four, of the right one those along n, likewise. Null: elements are read one by one.
  ElementText left_four, right_four;
  std::function<void(const std::string& batch, const std::string& row, const std::string& column,
                     const std::string& sum)>
      write;  ///< Writes the statements that store a sum.
};

/// Writes the kernel, or two: what is short of groups and long along k is cut into parts along k, whose sums go to
/// scratch memory and are added up in order.
void write_product(Writer& writer, const std::vector<Parameter>& parameters, const Product& product);

/// The type in which products of this dtype are summed; "" for those that are not multiplied.
std::string product_type(DType dtype);

/// Can products of this dtype be written for the target?
bool can_multiply(DType dtype, const Target& target);

}  // namespace autograph::gpu
