#include "base/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace autograph {

void parallel_for(size_t count, int threads, const std::function<void(size_t)>& work, const RunTeam& team) {
  std::atomic<size_t> next{0};
  std::mutex mutex;  // guards first_failed and error
  size_t first_failed = std::numeric_limits<size_t>::max();
  std::exception_ptr error;
  const auto try_piece = [&](size_t i) {
    try {
      work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (i > first_failed) return;
      first_failed = i;
      error = std::current_exception();
    }
  };
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) try_piece(i);
  };
  const size_t wanted = std::min(count, static_cast<size_t>(std::max(threads, 1)));
  if (wanted < 2 || !team || !team(static_cast<int>(wanted), 1, [&](int) { run(); })) {
    std::vector<std::thread> others;
    for (size_t t = 1; t < wanted; ++t) others.emplace_back(run);
    run();
    for (std::thread& thread : others) thread.join();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace autograph
