// Sums over pixels whose channels lie together in memory.
#pragma once

#include <cstdint>

namespace autograph {

/// totals[c] += the sum of x[p][c] over all `pixels` p, in blocks, so that rounding errors stay small. `sums` is
/// working memory for as many channels.
void add_pixels(const float* x, int64_t pixels, int64_t channels, float* sums, float* totals);

/// to[i] += from[i].
void add_elements(const float* from, int64_t count, float* to);

}  // namespace autograph
