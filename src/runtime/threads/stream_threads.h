// Threads for streams that cannot be threads of one OpenMP team, because each has a team of its own or there is no
// OpenMP. They are started when first needed and sleep between runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "base/function_ref.h"

namespace autograph {

/// Any number of runs may ask at once; each has threads of its own.
class StreamThreads {
 public:
  /// The threads of this process. They are never joined.
  static StreamThreads& of_process();
  /// Calls work(0) on the calling thread and work(1) ... work(streams - 1) on others, all at the same time, each after
  /// set_threads(threads) unless that is null, and returns when all are done. `work` must not throw. False, with
  /// nothing called, when the system has no more threads. Allocates nothing once there are enough threads.
  bool run(int streams, int threads, int (*set_threads)(int), FunctionRef<void(int)> work);

 private:
  struct Job {
    FunctionRef<void(int)> work;
    int threads;
    int (*set_threads)(int);
  };
  struct Worker {
    std::atomic<uint32_t> has_job{0};
    const Job* job = nullptr;
    int stream = 0;
    Worker* next = nullptr;  // among the idle ones, or those of one run
  };

  [[noreturn]] static void serve(Worker& worker);
  Worker* take(int count);
  void give_back(Worker* workers);

  std::mutex mutex_;  // guards idle_
  Worker* idle_ = nullptr;
};

}  // namespace autograph
