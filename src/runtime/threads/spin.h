// Waiting for another thread without sleeping, for the length of a small step: waking a thread up takes as long.
#pragma once

#include <thread>

namespace autograph {

/// Turns of spin_until(): some 50 us where a turn takes 140 cycles.
inline constexpr int kMaxSpins = 1000;

/// Looks at `is_done` until it is true, but not for long.
template <class Condition>
void spin_until(const Condition& is_done) {
  for (int i = 0; i < kMaxSpins && !is_done(); ++i) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    std::this_thread::yield();
#endif
  }
}

}  // namespace autograph
