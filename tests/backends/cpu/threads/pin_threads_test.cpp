// Which processors threads may use while they are bound, and afterwards.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/pin_threads.h"

namespace autograph {
namespace {

int usable_by_this_thread() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof mask, &mask);
  return CPU_COUNT(&mask);
}

// Processors to which some thread of this process is bound alone.
std::set<std::string> bound_processors() {
  std::set<std::string> bound;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream status(task.path() / "status");
    const std::string key = "Cpus_allowed_list:\t";
    for (std::string line; std::getline(status, line);) {
      if (!line.starts_with(key)) continue;
      const std::string list = line.substr(key.size());
      if (list.find_first_of(",-") == std::string::npos) bound.insert(list);
    }
  }
  return bound;
}

TEST(PinThreads, BindsATeamAndReleasesItsCaller) {
  const int usable = usable_by_this_thread();
  if (usable < 2) GTEST_SKIP() << "one processor";
  pin_cpu_threads(2);
  EXPECT_EQ(usable_by_this_thread(), 1);
  set_cpu_threads(2);
  const bool has_teams = set_cpu_threads(2) == 2;
  EXPECT_EQ(bound_processors().size(), has_teams ? 2U : 1U);
  unpin_cpu_thread();
  EXPECT_EQ(usable_by_this_thread(), usable);
  unpin_cpu_thread();
  EXPECT_EQ(usable_by_this_thread(), usable);
}

TEST(PinThreads, LeavesThreadsAloneThatWouldShareProcessors) {
  const int usable = usable_by_this_thread();
  pin_cpu_threads(usable + 1);
  EXPECT_EQ(usable_by_this_thread(), usable);
  unpin_cpu_thread();
}

// Threads of streams are started by a thread that is bound, and must not be bound to its processor.
TEST(PinThreads, StreamsGetProcessorsOfTheirOwn) {
  const int usable = usable_by_this_thread();
  if (usable < 2) GTEST_SKIP() << "one processor";
  const int threads = usable / 2;
  int own[2] = {0, 0};
  int first[2] = {-1, -1};
  const auto look = [&](int stream) {
    own[stream] = usable_by_this_thread();
    cpu_set_t mask;
    sched_getaffinity(0, sizeof mask, &mask);
    for (int cpu = CPU_SETSIZE - 1; cpu >= 0; --cpu) {
      if (CPU_ISSET(cpu, &mask)) first[stream] = cpu;
    }
  };
  pin_cpu_threads(usable);
  const StreamPins pins;
  pins.bind_stream(1, threads);
  look(1);
  pins.release_stream();
  EXPECT_EQ(usable_by_this_thread(), usable);
  unpin_cpu_thread();
  pin_cpu_threads(usable);
  look(0);
  unpin_cpu_thread();
  EXPECT_EQ(own[0], 1);
  EXPECT_EQ(own[1], 1);
  EXPECT_NE(first[0], first[1]);
}

TEST(PinThreads, RunsOfStreamsLeaveTheCallerAsItWas) {
  const int usable = usable_by_this_thread();
  pin_cpu_threads(usable);
  int seen[2] = {0, 0};
  // More threads than processors: nobody is bound but the caller.
  EXPECT_TRUE(run_cpu_streams(2, usable, [&](int stream) { seen[stream] = usable_by_this_thread(); }));
  unpin_cpu_thread();
  EXPECT_EQ(usable_by_this_thread(), usable);
  if (usable > 1) {
    EXPECT_EQ(seen[0], 1);
    EXPECT_EQ(seen[1], usable);
  }
}

}  // namespace
}  // namespace autograph
