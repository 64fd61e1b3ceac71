// What logarithms of softmax subtract: see softmax.cpp.
#pragma once

#include <cstdint>

namespace autograph::simd {

/// For each row of [rows, count]: the largest element, and the logarithm of the sum of e^(x - largest). NaN where the
/// softmax of the row is.
void log_sums_of_rows(const float* x, int64_t rows, int64_t count, float* largest, float* log_sum);

/// The same for each column of [extent, stride].
void log_sums_of_columns(const float* x, int64_t extent, int64_t stride, float* largest, float* log_sum);

/// y = log_softmax(x) of [outer, extent, inner] along the middle axis.
void log_softmax_blocks(const float* x, float* y, int64_t outer, int64_t extent, int64_t inner);

}  // namespace autograph::simd
