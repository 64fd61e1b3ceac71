#include "cuda/standin/world.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <utility>

namespace autograph::standin {

World& World::get() {
  static auto* world = new World;
  return *world;
}

void* World::find(uintptr_t address, size_t bytes) const {
  auto piece = allocations.upper_bound(address);
  if (piece != allocations.begin()) {
    --piece;
    const size_t offset = address - piece->first;
    if (offset + bytes <= piece->second.bytes && (bytes > 0 || offset < piece->second.bytes)) {
      return piece->second.data + offset;
    }
  }
  auto host = pinned.upper_bound(address);
  if (host == pinned.begin()) return nullptr;
  --host;
  return address - host->first + bytes <= host->second ? reinterpret_cast<void*>(address) : nullptr;
}

size_t World::bytes_in_use() const {
  size_t bytes = 0;
  for (const auto& [address, piece] : allocations) bytes += piece.bytes;
  return bytes;
}

void World::run_next(FakeStream& stream) {
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (work.waits_for) run_until(*work.waits_for);
  if (work.run && lost == cuda::CUDA_SUCCESS) work.run();
  now_us += 1;
  if (!work.marks) return;
  work.marks->is_reached = true;
  work.marks->time_us = now_us;
}

void World::run_until(const Mark& mark) {
  while (!mark.is_reached) run_next(*mark.stream);
}

void World::drain(FakeStream& stream) {
  while (!stream.queue.empty()) run_next(stream);
}

void World::drain_all() {
  for (auto stream = streams.rbegin(); stream != streams.rend(); ++stream) drain(**stream);
}

// Of the nodes that may come next always the one that was captured last: what an edge is missing for comes too early.
// AG_STANDIN_FIRST=1: the one that was captured first.
void World::run_graph(const FakeGraph& graph) {
  const bool first = setting("AG_STANDIN_FIRST", 0) != 0;
  const size_t count = graph.nodes.size();
  std::set<size_t> done;
  while (done.size() < count) {
    for (size_t k = 0; k < count; ++k) {
      const size_t n = first ? k : count - 1 - k;
      const auto& after = graph.nodes[n].after;
      if (done.count(n) || !std::includes(done.begin(), done.end(), after.begin(), after.end())) continue;
      if (lost == cuda::CUDA_SUCCESS) graph.nodes[n].run();
      done.insert(n);
      break;
    }
  }
}

cuda::CUresult World::enqueue(FakeStream& stream, std::function<void()> work) {
  if (!stream.capture) {
    stream.queue.push_back({std::move(work), nullptr, nullptr});
    if (setting("CUDA_LAUNCH_BLOCKING", 0) != 0) drain(stream);
    return lost;
  }
  if (stream.capture->thread != std::this_thread::get_id()) return cuda::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  std::vector<GraphNode>& nodes = stream.capture->graph.nodes;
  nodes.push_back({std::move(work), stream.last});
  stream.last = {nodes.size() - 1};
  return cuda::CUDA_SUCCESS;
}

bool World::breaks_capture() {
  const auto capture = captures.find(std::this_thread::get_id());
  if (capture == captures.end()) return false;
  capture->second->is_invalid = true;
  note("a call that may not be made while the thread captures");
  return true;
}

long long setting(const char* name, long long otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

Counts counts() {
  World& world = World::get();
  const std::lock_guard lock(world.mutex);
  Counts counts = world.counts;
  counts.allocations = world.allocations.size();
  counts.pinned = world.pinned.size();
  counts.streams = world.streams.size();
  counts.events = world.events.size();
  counts.modules = world.modules.size();
  counts.graphs = world.graphs.size();
  return counts;
}

std::vector<std::string> take_misuses() {
  World& world = World::get();
  const std::lock_guard lock(world.mutex);
  return std::exchange(world.misuses, {});
}

void keep_record(bool keeps) {
  World& world = World::get();
  const std::lock_guard lock(world.mutex);
  world.keeps_record = keeps;
}

std::vector<std::string> take_record() {
  World& world = World::get();
  const std::lock_guard lock(world.mutex);
  return std::exchange(world.record, {});
}

cuda::CUresult enqueue(cuda::CUstream stream, std::function<void()> work) {
  World& world = World::get();
  const std::lock_guard lock(world.mutex);
  auto* fake = reinterpret_cast<FakeStream*>(stream);
  if (!world.streams.count(fake)) {
    world.note("work for a stream that is not there");
    return cuda::CUDA_ERROR_INVALID_HANDLE;
  }
  return world.enqueue(*fake, std::move(work));
}

void* at(const void* address, size_t bytes) {
  World& world = World::get();
  const std::lock_guard lock(world.mutex);
  void* memory = world.find(reinterpret_cast<uintptr_t>(address), bytes);
  if (!memory) world.note("memory that is not there");
  return memory;
}

}  // namespace autograph::standin
