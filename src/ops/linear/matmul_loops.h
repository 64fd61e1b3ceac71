// Matrix products for reference implementations, shared by matmul, gemm, einsum-like ops, attention and recurrent ops.
//
// Real floats accumulate in f64; integers modulo 2^64, so that the cast back wraps around as OpDef promises. The loops
// go row, inner, column: rows of b are read in order and one row of accumulators stays in the cache.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "tensor/element_types.h"

namespace autograph {

/// A borrowed matrix; strides count elements, so a transposed matrix is one with swapped strides.
template <class T>
struct MatrixView {
  const T* data;
  int64_t row_stride;
  int64_t column_stride;

  /// Rows of `columns` elements without gaps.
  static MatrixView dense(const T* data, int64_t columns) { return {data, columns, 1}; }
  MatrixView transposed() const { return {data, column_stride, row_stride}; }
};

/// c has `rows` x `columns` elements, each the sum of `inner` products.
struct MatmulSize {
  int64_t rows;
  int64_t inner;
  int64_t columns;
};

/// What products of T add up in: f64 for real floats, u64 for integers.
template <class T>
using MatmulSum = std::conditional_t<kIsFloat<T>, double, uint64_t>;

/// Calls `store(row, sums)` for each row of a * b; `sums` has one MatmulSum<A> per column.
template <class A, class B, class Store>
void multiply_rows(MatrixView<A> a, MatrixView<B> b, MatmulSize size, Store&& store) {
  using Sum = MatmulSum<A>;
  std::vector<Sum> sums(static_cast<size_t>(size.columns));
  for (int64_t row = 0; row < size.rows; ++row) {
    std::fill(sums.begin(), sums.end(), Sum(0));
    for (int64_t k = 0; k < size.inner; ++k) {
      const Sum left = static_cast<Sum>(a.data[row * a.row_stride + k * a.column_stride]);
      const B* right = b.data + k * b.row_stride;
      for (int64_t column = 0; column < size.columns; ++column) {
        sums[static_cast<size_t>(column)] += left * static_cast<Sum>(right[column * b.column_stride]);
      }
    }
    store(row, std::span<const Sum>(sums));
  }
}

/// c = a * b with dense rows of c.
template <class T>
void multiply(MatrixView<T> a, MatrixView<T> b, MatmulSize size, T* c) {
  multiply_rows(a, b, size, [&](int64_t row, auto sums) {
    T* out = c + row * size.columns;
    for (size_t column = 0; column < sums.size(); ++column) out[column] = static_cast<T>(sums[column]);
  });
}

}  // namespace autograph
