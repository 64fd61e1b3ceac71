// How many threads kernels use that are made or run here.
#pragma once

#include "autograph/device.h"
#include "device/host_threads.h"

namespace autograph {

/// Sets the thread count of kernels for the calling thread while it lives.
class ThreadScope {
 public:
  ThreadScope(const Device& device, int threads) : host_(device.host_threads()), previous_(host_.set(threads)) {}
  ~ThreadScope() { host_.set(previous_); }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  const HostThreads& host_;
  int previous_;
};

}  // namespace autograph
