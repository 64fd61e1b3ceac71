// How many threads the kernels that the calling thread runs may use, below what they were made for: while other
// programs keep processors busy (runtime/threads/core_watch), a thread without a processor holds up all others of its
// team.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

namespace autograph {

inline constexpr int kNoThreadLimit = std::numeric_limits<int>::max();

/// Of the calling thread.
inline thread_local int cpu_thread_limit = kNoThreadLimit;

/// Of `threads`, for which a kernel was made, those that it may use now.
inline int threads_allowed(int threads) { return std::min(threads, cpu_thread_limit); }

/// Sets the limit of the calling thread; returns the one before.
inline int limit_cpu_threads(int threads) { return std::exchange(cpu_thread_limit, threads); }

}  // namespace autograph
