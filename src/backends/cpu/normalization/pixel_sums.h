// Sums over pixels whose channels lie together in memory.
#pragma once

#include <cstdint>

namespace autograph {

/// totals[c] += the sum of x[p][c] over all `pixels` p, in blocks, so that rounding errors stay small. `sums` is
/// working memory for as many channels.
void add_pixels(const float* x, int64_t pixels, int64_t channels, float* sums, float* totals);

/// means[i] = the mean over all `pixels` of channel i of x, whose sum in f32 is sums[i]; of those beyond the range of
/// f32 it is taken again. `block` channels lie together. `means` may be `sums`.
void means_of_pixels(const float* sums, const float* x, int64_t channels, int64_t pixels, int64_t block, float* means);

/// to[i] += from[i].
void add_elements(const float* from, int64_t count, float* to);

}  // namespace autograph
