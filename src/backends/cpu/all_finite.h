// Whether elements hold infinity or NaN, compiled for several instruction sets.
#pragma once

#include <cstdint>

namespace autograph {

bool all_finite(const float* x, int64_t count);
/// By up to so many threads.
bool all_finite(const float* x, int64_t count, int threads);

}  // namespace autograph
