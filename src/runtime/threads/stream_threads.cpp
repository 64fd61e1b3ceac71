#include "runtime/threads/stream_threads.h"

#include <memory>
#include <system_error>
#include <thread>

#include "runtime/threads/spin.h"
#include "runtime/threads/store_and_wake.h"

namespace autograph {

StreamThreads& StreamThreads::of_process() {
  // Lives as long as its threads: to the end of the process.
  static auto* threads = new StreamThreads;
  return *threads;
}

bool StreamThreads::run(int streams, int threads, int (*set_threads)(int), FunctionRef<void(int)> work) {
  Worker* const workers = take(streams - 1);
  if (streams > 1 && !workers) return false;
  const Job job{work, threads, set_threads};
  int stream = 0;
  for (Worker* worker = workers; worker; worker = worker->next) {
    worker->job = &job;
    worker->stream = ++stream;
    store_and_wake(worker->has_job, 1);
  }
  const int before = set_threads ? set_threads(threads) : 0;
  work(0);
  if (set_threads) set_threads(before);
  for (Worker* worker = workers; worker; worker = worker->next) {
    spin_until([&] { return worker->has_job.load(std::memory_order_acquire) == 0; });
    while (worker->has_job.load(std::memory_order_acquire) != 0) worker->has_job.wait(1, std::memory_order_acquire);
  }
  give_back(workers);
  return true;
}

void StreamThreads::serve(Worker& worker) {
  for (;;) {
    while (worker.has_job.load(std::memory_order_acquire) == 0) worker.has_job.wait(0, std::memory_order_acquire);
    const Job& job = *worker.job;
    if (job.set_threads) job.set_threads(job.threads);
    job.work(worker.stream);
    store_and_wake(worker.has_job, 0);
  }
}

// A list of `count` workers that are nobody else's; null when there are not enough.
StreamThreads::Worker* StreamThreads::take(int count) {
  Worker* taken = nullptr;
  for (int i = 0; i < count; ++i) {
    Worker* worker = nullptr;
    {
      const std::lock_guard lock(mutex_);
      worker = idle_;
      if (worker) idle_ = worker->next;
    }
    if (!worker) {
      auto made = std::make_unique<Worker>();
      try {
        std::thread([&served = *made] { serve(served); }).detach();
      } catch (const std::system_error&) {
        give_back(taken);
        return nullptr;
      }
      worker = made.release();  // its thread has it for good
    }
    worker->next = taken;
    taken = worker;
  }
  return taken;
}

void StreamThreads::give_back(Worker* workers) {
  if (!workers) return;
  Worker* last = workers;
  while (last->next) last = last->next;
  const std::lock_guard lock(mutex_);
  last->next = idle_;
  idle_ = workers;
}

}  // namespace autograph
