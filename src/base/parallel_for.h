// Independent pieces of work on a few short-lived threads: compiling, not running.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace autograph {

/// Calls work(0) ... work(count - 1), each once, on up to `threads` threads of which the caller is one. Rethrows the
/// exception of the smallest failing number, after all have ended. The caller begins alone; the others join it when
/// pieces are left after `alone`.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& work,
                  std::chrono::microseconds alone = {});

/// For `alone`: threads take about half as long to start while a team that has just run still spins on the processors.
inline constexpr std::chrono::microseconds kThreadStart{6000};

}  // namespace autograph
