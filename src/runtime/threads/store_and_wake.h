// Telling another thread by a number that it may be asleep for.
#pragma once

#include <atomic>
#include <type_traits>

namespace autograph {

/// Stores `value`, for which other threads wait by std::atomic::wait(), and wakes them.
///
/// The store is sequentially consistent, for a reason that the standard does not ask for: notify_all() of libstdc++
/// enters the kernel only where its counter says that somebody sleeps, and reads that counter without a fence. A store
/// with release order may still lie in the store buffer of the processor then: who begins to sleep at that moment
/// counts itself too late to be seen, finds the old value, and sleeps for ever. A run of two streams did, once in some
/// millions.
template <class T>
void store_and_wake(std::atomic<T>& flag, std::type_identity_t<T> value) {
  flag.store(value, std::memory_order_seq_cst);
  flag.notify_all();
}

}  // namespace autograph
