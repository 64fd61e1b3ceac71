// The processors of the machine, lent to runs: runs at the same time never have more threads at work than there are
// processors, since teams of threads that push each other aside take many times as long as they would one after the
// other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace autograph {

/// Runs wait in the order in which they come.
class CoreGate {
 public:
  explicit CoreGate(int cores) : free_(cores), cores_(cores) {}

  /// Holds `threads` processors, or all when that is more; waits until they are free.
  class Pass {
   public:
    Pass(CoreGate& gate, int threads);
    ~Pass();
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    CoreGate& gate_;
    int threads_;
  };

  /// The gate of this process: as many processors as it may use.
  static CoreGate& of_process();
  /// How many there are.
  int cores() const { return cores_; }

 private:
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  int free_;
  const int cores_;
  uint64_t next_ticket_ = 0;
  uint64_t serving_ = 0;
};

}  // namespace autograph
