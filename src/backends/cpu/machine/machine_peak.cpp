// Threads work side by side in chunks of a fraction of a millisecond and note when each chunk began and ended. The
// speed at a moment is the sum over threads of the speed of the chunk that each is in; the best moment counts. Other
// programs that take a processor away for a while make some chunks long, but leave the best moment as it is.
#include "autograph/machine_peak.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <functional>
#include <limits>
#include <thread>

#include "autograph/cpu_count.h"
#include "autograph/tensor.h"
#include "backends/cpu/machine/cache_sizes.h"
#include "backends/cpu/machine/peak_loops.h"

namespace autograph {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kAttempt{12};  // for each figure, where nothing disturbs
constexpr int kComputeAttempts = 40;               // at most, on a busy machine
constexpr int kMemoryAttempts = 5;
constexpr size_t kFewestChunks = 3;              // of each thread, however long they take
constexpr size_t kChunkBytes = size_t{2} << 20;  // 10 microseconds in L1, some hundred in memory
constexpr size_t kChunkIterations = 20'000;      // of the multiply-add loop: about 50 microseconds
constexpr size_t kFloatsUnrolled = 512;          // what the loops ask `count` to be a multiple of

struct Chunk {
  Clock::time_point begin;
  Clock::time_point end;
  double units = 0;

  double units_per_second() const { return units / std::max(std::chrono::duration<double>(end - begin).count(), 1e-9); }
};

using Work = std::function<double(int thread, size_t chunk)>;

// Speed of one thread at a moment; 0 outside its chunks.
double speed_at(const std::vector<Chunk>& chunks, Clock::time_point moment) {
  const auto is_over = [](const Chunk& chunk, Clock::time_point when) { return chunk.end < when; };
  const auto found = std::lower_bound(chunks.begin(), chunks.end(), moment, is_over);
  return found != chunks.end() && found->begin <= moment ? found->units_per_second() : 0;
}

// Moves the calling thread to the processor with this number among those that the process may use: on a busy machine
// two threads may else share one for long. Where it is not allowed, the system chooses.
void pin_to_processor(int number) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != number) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
}

std::vector<std::vector<Chunk>> run_chunks(int threads, const Work& work) {
  std::vector<std::vector<Chunk>> chunks(static_cast<size_t>(threads));
  std::barrier barrier(threads);
  const auto run = [&](int thread) {
    std::vector<Chunk>& own = chunks[static_cast<size_t>(thread)];
    pin_to_processor(thread);
    barrier.arrive_and_wait();
    const Clock::time_point stop = Clock::now() + kAttempt;
    while (own.size() < kFewestChunks || Clock::now() < stop) {
      const Clock::time_point begin = Clock::now();
      const double units = work(thread, own.size());
      own.push_back({begin, Clock::now(), units});
    }
  };
  std::vector<std::thread> team;  // without the caller, whose processors stay as they are
  for (int thread = 0; thread < threads; ++thread) team.emplace_back(run, thread);
  for (std::thread& thread : team) thread.join();
  return chunks;
}

// Units of work per second of `threads` threads at the best moment; `work(thread, chunk)` returns the units it did.
// Tried again where the threads hardly ever ran at once: then their own best chunks add up to much more.
double best_speed(int threads, int attempts, const Work& work) {
  constexpr double kUndisturbed = 0.95;
  double together = 0;
  double apart = 0;
  for (int attempt = 0; attempt < attempts && together <= kUndisturbed * apart; ++attempt) {
    const std::vector<std::vector<Chunk>> chunks = run_chunks(threads, work);
    for (const Chunk& chunk : chunks[0]) {
      double sum = 0;
      for (const auto& thread : chunks) sum += speed_at(thread, chunk.begin + (chunk.end - chunk.begin) / 2);
      together = std::max(together, sum);
    }
    double sum_of_best = 0;
    for (const auto& thread : chunks) {
      double best = 0;
      for (const Chunk& chunk : thread) best = std::max(best, chunk.units_per_second());
      sum_of_best += best;
    }
    apart = std::max(apart, sum_of_best);
  }
  return together;
}

double measure_gflops(int threads) {
  const auto work = [](int, size_t) {
    run_fma_loop(kChunkIterations);
    return fma_loop_flops() * static_cast<double>(kChunkIterations);
  };
  return best_speed(threads, kComputeAttempts, work) / 1e9;
}

// Working sets of all threads, one behind the other in a buffer. A chunk goes over a small set several times, or over a
// part of a large one; a copy goes from the first half of a set to the second.
class StreamingTest {
 public:
  StreamingTest(Tensor& buffer, int threads, size_t bytes_per_thread)
      : data_(buffer.mutable_data<float>()),
        threads_(threads),
        parts_(std::max<size_t>(bytes_per_thread / kChunkBytes, 1)),
        repeats_(std::max<size_t>(kChunkBytes / bytes_per_thread, 1)),
        part_floats_(bytes_per_thread / parts_ / sizeof(float) / (2 * kFloatsUnrolled) * (2 * kFloatsUnrolled)) {}

  double read_gb_per_s() const {
    return speed([&](const float* set, size_t part) { run_read_loop(set + part * part_floats_, part_floats_); });
  }

  double copy_gb_per_s() const {
    const size_t half_part = part_floats_ / 2;
    return speed([&, half_part](float* set, size_t part) {
      run_copy_loop(set + part * half_part, set + (parts_ + part) * half_part, half_part);
    });
  }

 private:
  // `once(set, part)` touches every byte of a part once.
  template <class F>
  double speed(const F& once) const {
    const auto work = [&](int thread, size_t chunk) {
      float* set = data_ + static_cast<size_t>(thread) * parts_ * part_floats_;
      for (size_t i = 0; i < repeats_; ++i) once(set, chunk % parts_);
      return static_cast<double>(repeats_ * part_floats_ * sizeof(float));
    };
    return best_speed(threads_, kMemoryAttempts, work) / 1e9;
  }

  float* data_;
  int threads_;
  size_t parts_;
  size_t repeats_;
  size_t part_floats_;
};

struct Level {
  const char* name;
  size_t working_set;  // bytes for each thread
  size_t capacity;
};

// Levels of the hierarchy for `threads` threads. L3 and memory are shared by all of them, L1 and L2 are their own.
std::vector<Level> levels_for(int threads) {
  constexpr size_t kLeast = size_t{64} << 20;
  constexpr size_t kMost = size_t{512} << 20;
  const auto sharers = static_cast<size_t>(threads);
  const size_t l1 = cache_bytes(_SC_LEVEL1_DCACHE_SIZE, size_t{32} << 10);
  const size_t l2 = std::max(cache_bytes(_SC_LEVEL2_CACHE_SIZE, size_t{256} << 10), l1);
  const size_t l3 = third_cache_bytes();
  std::vector<Level> levels = {{"L1", l1 / 2, l1}, {"L2", l2 / 2, l2}};
  if (l3 / 4 / sharers > l2) levels.push_back({"L3", l3 / 4 / sharers, l3 / sharers});
  levels.push_back({"memory", std::clamp(16 * l3, kLeast, kMost) / sharers, std::numeric_limits<size_t>::max()});
  return levels;
}

std::vector<int> thread_counts(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count *= 2) counts.push_back(count);
  counts.push_back(most);
  return counts;
}

}  // namespace

double MachinePeak::gflops(int threads) const {
  double result = 0;
  for (const ComputePeak& peak : compute) {
    if (peak.threads <= threads) result = peak.gflops;
  }
  return result;
}

const MemoryPeak* MachinePeak::level_for(double bytes, int threads) const {
  int measured = 0;
  for (const MemoryPeak& peak : memory) {
    if (peak.threads <= threads) measured = std::max(measured, peak.threads);
  }
  for (const MemoryPeak& peak : memory) {
    if (peak.threads == measured && bytes / threads <= static_cast<double>(peak.capacity_per_thread)) return &peak;
  }
  return nullptr;
}

MachinePeak measure_machine_peak(int threads) {
  const int most = threads > 0 ? std::min(threads, usable_cpu_count()) : usable_cpu_count();
  MachinePeak peak;
  peak.isa = peak_loop_isa();
  for (const int count : thread_counts(most)) peak.compute.push_back({count, measure_gflops(count)});
  const size_t largest = levels_for(1).back().working_set;
  Tensor buffer = Tensor::empty(DType::f32, {static_cast<int64_t>(largest / sizeof(float))});
  // Written, not only allocated: untouched pages all read from one page of zeros.
  std::fill_n(buffer.mutable_data<float>(), largest / sizeof(float), 1.0F);
  for (const int count : most > 1 ? std::vector<int>{1, most} : std::vector<int>{1}) {
    for (const Level& level : levels_for(count)) {
      const StreamingTest test(buffer, count, level.working_set);
      peak.memory.push_back(
          {level.name, count, level.working_set, level.capacity, test.read_gb_per_s(), test.copy_gb_per_s()});
    }
  }
  return peak;
}

}  // namespace autograph
