// Independent pieces of work on a few short-lived threads: compiling, not running.
#pragma once

#include <cstddef>
#include <functional>

#include "base/function_ref.h"

namespace autograph {

/// Calls work(0) ... work(threads - 1) at the same time on threads that are there already; `threads_of_each` is how
/// many each may have at work itself. False, with nothing called, where so many cannot be had.
using RunTeam = std::function<bool(int threads, int threads_of_each, FunctionRef<void(int)> work)>;

/// Calls work(0) ... work(count - 1), each once, on up to `threads` threads of which the caller is one: those of
/// `team`, or new ones where that is null. Rethrows the exception of the smallest failing number, after all have ended.
///
/// A team that has just run still spins on the processors: it begins at once, new threads only when it gives them up.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& work, const RunTeam& team = nullptr);

}  // namespace autograph
