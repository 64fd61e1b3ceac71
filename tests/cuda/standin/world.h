// What the stand-in of the driver consists of.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/standin/standin.h"

namespace autograph::standin {

struct FakeStream;
struct FakeCapture;

/// A place in a stream that work may have come to.
struct Mark {
  FakeStream* stream = nullptr;
  bool is_reached = false;
  double time_us = 0;
};

struct FakeEvent {
  unsigned flags = 0;
  std::shared_ptr<Mark> mark;            // of the last record; null: none
  std::shared_ptr<FakeCapture> capture;  // where the last record was captured
  std::set<size_t> nodes;                // and behind which of its nodes
};

struct Work {
  std::function<void()> run;        // may be empty
  std::shared_ptr<Mark> marks;      // reached afterwards
  std::shared_ptr<Mark> waits_for;  // reached before
};

struct FakeStream {
  std::deque<Work> queue;
  std::shared_ptr<FakeCapture> capture;  // null: none
  std::set<size_t> last;                 // nodes of the capture that the next one comes after
};

struct GraphNode {
  std::function<void()> run;
  std::set<size_t> after;
};

struct FakeGraph {
  std::vector<GraphNode> nodes;
};

struct FakeCapture {
  FakeStream* origin = nullptr;
  std::thread::id thread;
  std::set<FakeStream*> streams;
  FakeGraph graph;
  bool is_invalid = false;
};

struct FakeModule {
  void* library = nullptr;
  int file = -1;
};

struct FakeFunction {
  FakeModule* module = nullptr;
  std::string name;
  size_t num_parameters = 0;
  void (*run)(void** parameters, unsigned groups, unsigned group_size) = nullptr;
};

/// Memory of the device: addresses to give away, and what lies behind them, with a page that faults at its end.
struct Allocation {
  char* data = nullptr;
  size_t bytes = 0;
  void* mapping = nullptr;
  size_t mapped_bytes = 0;
};

/// One for the process; never destroyed. Every function of the driver locks it.
class World {
 public:
  static World& get();

  std::recursive_mutex mutex;
  Counts counts;
  std::vector<std::string> misuses;
  std::vector<std::string> record;
  bool keeps_record = false;
  cuda::CUresult lost = cuda::CUDA_SUCCESS;  // what every call gives after a kernel has gone wrong
  double now_us = 0;

  std::map<uintptr_t, Allocation> allocations;
  std::map<uintptr_t, size_t> pinned;
  std::set<FakeStream*> streams;
  std::set<FakeEvent*> events;
  std::set<FakeModule*> modules;
  std::set<FakeGraph*> graphs;
  std::map<std::pair<FakeModule*, std::string>, std::unique_ptr<FakeFunction>> functions;
  std::map<std::thread::id, std::shared_ptr<FakeCapture>> captures;  // by the thread that began them

  void note(const std::string& misuse) { misuses.push_back(misuse); }
  void add_to_record(const std::string& work) {
    if (keeps_record) record.push_back(work);
  }
  /// The memory behind an address of the device, or of page-locked memory; null where `bytes` are not there.
  void* find(uintptr_t address, size_t bytes) const;
  size_t bytes_in_use() const;

  void run_next(FakeStream& stream);
  void run_until(const Mark& mark);
  void drain(FakeStream& stream);
  /// All streams, the last one first.
  void drain_all();
  void run_graph(const FakeGraph& graph);
  cuda::CUresult enqueue(FakeStream& stream, std::function<void()> work);
  /// Is this thread capturing? What may not be called then makes the capture invalid.
  bool breaks_capture();
};

/// The number in an environment variable.
long long setting(const char* name, long long otherwise);

}  // namespace autograph::standin
