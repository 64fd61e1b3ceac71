#include "backends/cpu/all_finite.h"

#include <atomic>
#include <bit>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/threads/parallel.h"

namespace autograph {

// By their bits: comparing floats, which may trap, keeps the compiler from using vectors.
AG_MULTIVERSION bool all_finite(const float* x, int64_t count) {
  constexpr int32_t kExponent = 0x7F800000;
  int32_t bad = 0;
#pragma omp simd reduction(| : bad)
  for (int64_t i = 0; i < count; ++i) bad |= (std::bit_cast<int32_t>(x[i]) & kExponent) == kExponent ? 1 : 0;
  return bad == 0;
}

bool all_finite(const float* x, int64_t count, int threads) {
  std::atomic<bool> are_finite = true;
  for_shares(useful_threads(threads, count / 2), count, [&](int64_t begin, int64_t end, int) {
    if (!all_finite(x + begin, end - begin)) are_finite.store(false, std::memory_order_relaxed);
  });
  return are_finite.load(std::memory_order_relaxed);
}

}  // namespace autograph
