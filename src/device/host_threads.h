// How the kernels of a device use threads of the host.
#pragma once

#include "base/function_ref.h"

namespace autograph {

/// These use none: kernels run on the calling thread, or elsewhere altogether, and streams one after the
/// other. Any number of threads may call at once.
class HostThreads {
 public:
  virtual ~HostThreads() = default;
  /// Does set() do anything?
  virtual bool are_used() const { return false; }
  /// Makes the calling thread use this many threads inside kernels; returns what it used before.
  virtual int set(int threads) const { return threads; }
  /// Does limit() do anything?
  virtual bool can_be_limited() const { return false; }
  /// Makes kernels that the calling thread runs use so many threads at most, whatever they were made for; returns the
  /// limit before.
  virtual int limit(int threads) const { return threads; }
  /// Binds the calling thread and its team to processors of their own, where that is possible.
  virtual void pin(int threads) const { static_cast<void>(threads); }
  /// Lets the calling thread go again.
  virtual void unpin() const {}
  /// Calls work(0) ... work(streams - 1) at the same time, each on a thread that uses `threads` threads inside kernels,
  /// and returns when all are done. `work` must not throw. False, with nothing called, where so many threads cannot be
  /// had.
  virtual bool run_streams(int streams, int threads, FunctionRef<void(int)> work) const {
    static_cast<void>(streams);
    static_cast<void>(threads);
    static_cast<void>(work);
    return false;
  }
  /// Of devices that use none.
  static const HostThreads& none() {
    static const HostThreads kNone;
    return kNone;
  }
};

}  // namespace autograph
