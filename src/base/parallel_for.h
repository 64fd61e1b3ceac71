// Independent pieces of work on a few short-lived threads: compiling, not running.
#pragma once

#include <cstddef>
#include <functional>

namespace autograph {

/// Calls work(0) ... work(count - 1), each once, on up to `threads` threads of which the caller is one. Rethrows the
/// exception of the smallest failing number, after all have ended.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& work);

}  // namespace autograph
