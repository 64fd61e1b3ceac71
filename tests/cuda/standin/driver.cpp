// The stand-in of libcuda.so.1. Settings: AG_STANDIN_DRIVER (11040: the version), AG_STANDIN_DEVICES (how many),
// AG_STANDIN_ARCHITECTURE (70), AG_STANDIN_MEMORY (bytes), AG_STANDIN_GRAPHS (0: no room for one), AG_STANDIN_FIRST,
// AG_STANDIN_FAIL_LAUNCH (the number of the kernel that reads where nothing is).
#include <dlfcn.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cuda/standin/world.h"

namespace autograph::cuda {
namespace {

using standin::Allocation;
using standin::FakeCapture;
using standin::FakeEvent;
using standin::FakeFunction;
using standin::FakeGraph;
using standin::FakeModule;
using standin::FakeStream;
using standin::Mark;
using standin::setting;
using standin::World;

constexpr size_t kPage = 4096;
constexpr char kMagic[] = "standin program ";

// Locks the world for a call.
class Call {
 public:
  Call() : world(World::get()), lock_(world.mutex) {}
  World& world;

  FakeStream* stream(CUstream handle) { return known(world.streams, reinterpret_cast<FakeStream*>(handle), "stream"); }
  FakeEvent* event(CUevent handle) { return known(world.events, reinterpret_cast<FakeEvent*>(handle), "event"); }

  template <class T>
  T* known(const std::set<T*>& all, T* handle, const char* what) {
    if (all.count(handle)) return handle;
    world.note(fmt::format("a {} that is not there", what));
    return nullptr;
  }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Ends at a page that faults, as far as alignment lets it.
Allocation make_allocation(size_t bytes) {
  Allocation piece;
  piece.bytes = bytes;
  piece.mapped_bytes = rounded(bytes) + kPage;
  piece.mapping =
      ::mmap(nullptr, piece.mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* end = static_cast<char*>(piece.mapping) + rounded(bytes);
  ::mprotect(end, kPage, PROT_NONE);
  piece.data = end - (bytes + 63) / 64 * 64;
  // What nobody has written is NaN; larger ones would take too long to fill.
  constexpr size_t kMostPoisoned = size_t{64} << 20;
  if (bytes <= kMostPoisoned) std::memset(piece.data, 0xff, bytes);
  return piece;
}

void run_kernel(const FakeFunction& function, std::vector<void*> parameters, unsigned groups, unsigned size) {
  World& world = World::get();
  if (!world.modules.count(function.module)) {
    world.note(fmt::format("{} runs when its module is not there any more", function.name));
    return;
  }
  static long long number = 0;
  if (++number == setting("AG_STANDIN_FAIL_LAUNCH", -1)) {
    world.lost = CUDA_ERROR_ILLEGAL_ADDRESS;
    return;
  }
  for (void*& parameter : parameters) {
    if (!parameter) continue;
    void* memory = world.find(reinterpret_cast<uintptr_t>(parameter), 0);
    if (!memory) {
      world.note(fmt::format("{} is given memory that is not there", function.name));
      world.lost = CUDA_ERROR_ILLEGAL_ADDRESS;
      return;
    }
    parameter = memory;
  }
  world.add_to_record(function.name);
  function.run(parameters.data(), groups, size);
}

// Are all nodes that the streams of a capture ended with, or came from, before those that the origin ended with?
bool is_joined(const FakeCapture& capture) {
  std::set<size_t> before;
  std::vector<size_t> pending(capture.origin->last.begin(), capture.origin->last.end());
  while (!pending.empty()) {
    const size_t node = pending.back();
    pending.pop_back();
    if (!before.insert(node).second) continue;
    const auto& after = capture.graph.nodes[node].after;
    pending.insert(pending.end(), after.begin(), after.end());
  }
  return std::all_of(capture.streams.begin(), capture.streams.end(), [&](const FakeStream* stream) {
    return std::includes(before.begin(), before.end(), stream->last.begin(), stream->last.end());
  });
}

CUresult copy(CUstream stream, void* to, const void* from, size_t bytes, const char* name) {
  return standin::enqueue(stream, [=] {
    World::get().add_to_record(name);
    void* target = World::get().find(reinterpret_cast<uintptr_t>(to), bytes);
    const void* source = World::get().find(reinterpret_cast<uintptr_t>(from), bytes);
    if (target && source) std::memcpy(target, source, bytes);
    if (!target || !source) World::get().note("a copy of what is not there");
  });
}

}  // namespace

#define AG_EXPORT extern "C" AG_STANDIN

// ---- Devices -------------------------------------------------------------------------------------------------------

AG_EXPORT CUresult cuGetErrorName(CUresult code, const char** text) {
  switch (code) {
    case CUDA_SUCCESS: *text = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU: *text = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *text = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    default: *text = "CUDA_ERROR"; break;
  }
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the stand-in says";
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuInit(unsigned) {
  return setting("AG_STANDIN_DEVICES", 1) > 0 ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

AG_EXPORT CUresult cuDriverGetVersion(int* version) {
  *version = static_cast<int>(setting("AG_STANDIN_DRIVER", 13000));
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("AG_STANDIN_DEVICES", 1));
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuDeviceGet(CUdevice* device, int number) {
  *device = number;
  return number >= 0 && number < setting("AG_STANDIN_DEVICES", 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

AG_EXPORT CUresult cuDeviceGetName(char* name, int size, CUdevice) {
  std::strncpy(name, "Stand-in", static_cast<size_t>(size));
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) {
  const auto architecture = static_cast<int>(setting("AG_STANDIN_ARCHITECTURE", 90));
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = 48 * 1024; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = architecture / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = architecture % 10; break;
    default: return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  static char contexts[16];
  *context = reinterpret_cast<CUcontext>(&contexts[device]);
  return CUDA_SUCCESS;
}

namespace {
thread_local bool has_context = false;
}

AG_EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
  has_context = context != nullptr;
  return CUDA_SUCCESS;
}

// ---- Memory --------------------------------------------------------------------------------------------------------

AG_EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  Call call;
  *total = static_cast<size_t>(setting("AG_STANDIN_MEMORY", 4LL << 30));
  *free = *total - std::min(*total, call.world.bytes_in_use());
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  Call call;
  ++call.world.counts.allocated;
  if (!has_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  if (call.world.breaks_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  size_t free = 0;
  size_t total = 0;
  cuMemGetInfo_v2(&free, &total);
  if (bytes > free) return CUDA_ERROR_OUT_OF_MEMORY;
  void* reserved = ::mmap(nullptr, rounded(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  call.world.allocations[reinterpret_cast<uintptr_t>(reserved)] = make_allocation(bytes);
  *address = reinterpret_cast<CUdeviceptr>(reserved);
  return CUDA_SUCCESS;
}

// The driver waits for all work that may use it.
AG_EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  Call call;
  if (call.world.breaks_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  call.world.drain_all();
  const auto piece = call.world.allocations.find(address);
  if (piece == call.world.allocations.end()) {
    call.world.note("memory that is freed is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  ::munmap(piece->second.mapping, piece->second.mapped_bytes);
  ::munmap(reinterpret_cast<void*>(address), rounded(piece->second.bytes));
  call.world.allocations.erase(piece);
  return call.world.lost;
}

AG_EXPORT CUresult cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  Call call;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  if (call.world.breaks_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  *memory = std::malloc(bytes);
  call.world.pinned[reinterpret_cast<uintptr_t>(*memory)] = bytes;
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuMemFreeHost(void* memory) {
  Call call;
  if (call.world.breaks_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  call.world.drain_all();
  if (!call.world.pinned.erase(reinterpret_cast<uintptr_t>(memory))) {
    call.world.note("page-locked memory that is freed is not there");
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::free(memory);
  return call.world.lost;
}

// Of memory that is not page-locked the driver takes a copy at once.
AG_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  Call call;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  void* const target = reinterpret_cast<void*>(to);
  if (call.world.find(reinterpret_cast<uintptr_t>(from), bytes)) return copy(stream, target, from, bytes, "copy in");
  const std::string taken(static_cast<const char*>(from), bytes);
  return standin::enqueue(stream, [=] {
    World::get().add_to_record("copy in");
    if (void* memory = standin::at(target, bytes)) std::memcpy(memory, taken.data(), bytes);
  });
}

// To memory that is not page-locked it copies before the call returns.
AG_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Call call;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  const auto* source = reinterpret_cast<const void*>(from);
  if (call.world.find(reinterpret_cast<uintptr_t>(to), bytes)) return copy(stream, to, source, bytes, "copy out");
  if (call.world.breaks_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  FakeStream* fake = call.stream(stream);
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  call.world.drain(*fake);
  call.world.add_to_record("copy out");
  if (const void* memory = standin::at(source, bytes)) std::memcpy(to, memory, bytes);
  return call.world.lost;
}

AG_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Call call;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  return copy(stream, reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes, "copy");
}

// ---- Streams and events --------------------------------------------------------------------------------------------

AG_EXPORT CUresult cuStreamCreate(CUstream* stream, unsigned) {
  Call call;
  if (!has_context) return CUDA_ERROR_INVALID_CONTEXT;
  auto* fake = new FakeStream;
  call.world.streams.insert(fake);
  *stream = reinterpret_cast<CUstream>(fake);
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  Call call;
  FakeStream* fake = call.stream(stream);
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  if (fake->capture) call.world.note("a stream is destroyed while it captures");
  call.world.drain(*fake);
  call.world.streams.erase(fake);
  delete fake;
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  Call call;
  FakeStream* fake = call.stream(stream);
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  if (call.world.breaks_capture() || fake->capture) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  call.world.drain(*fake);
  return call.world.lost;
}

AG_EXPORT CUresult cuEventCreate(CUevent* event, unsigned flags) {
  Call call;
  auto* fake = new FakeEvent{flags, nullptr, nullptr, {}};
  call.world.events.insert(fake);
  *event = reinterpret_cast<CUevent>(fake);
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  Call call;
  FakeEvent* fake = call.event(event);
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  call.world.events.erase(fake);
  delete fake;
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  Call call;
  FakeEvent* fake = call.event(event);
  FakeStream* in = call.stream(stream);
  if (!fake || !in) return CUDA_ERROR_INVALID_HANDLE;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  fake->capture = in->capture;
  fake->nodes = in->last;
  fake->mark = nullptr;
  if (in->capture) return CUDA_SUCCESS;
  fake->mark = std::make_shared<Mark>(Mark{in});
  in->queue.push_back({nullptr, fake->mark, nullptr});
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  Call call;
  FakeEvent* fake = call.event(event);
  FakeStream* in = call.stream(stream);
  if (!fake || !in) return CUDA_ERROR_INVALID_HANDLE;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  if (fake->capture && fake->capture->origin) {
    if (in->capture && in->capture != fake->capture) return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    in->capture = fake->capture;
    in->capture->streams.insert(in);
    in->last.insert(fake->nodes.begin(), fake->nodes.end());
    return CUDA_SUCCESS;
  }
  if (fake->capture) {
    call.world.note("a stream waits for what was captured, and is nowhere");
    return CUDA_ERROR_CAPTURED_EVENT;
  }
  if (in->capture && fake->mark) {
    in->capture->is_invalid = true;
    call.world.note("what is captured waits for what is not");
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (fake->mark) in->queue.push_back({nullptr, nullptr, fake->mark});
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuEventElapsedTime(float* ms, CUevent begin, CUevent end) {
  Call call;
  const FakeEvent* from = call.event(begin);
  const FakeEvent* to = call.event(end);
  if (!from || !to) return CUDA_ERROR_INVALID_HANDLE;
  const bool has_time = from->mark && to->mark && !((from->flags | to->flags) & CU_EVENT_DISABLE_TIMING);
  if (!has_time) return from->capture || to->capture ? CUDA_ERROR_CAPTURED_EVENT : CUDA_ERROR_INVALID_HANDLE;
  if (!from->mark->is_reached || !to->mark->is_reached) return CUDA_ERROR_NOT_READY;
  *ms = static_cast<float>((to->mark->time_us - from->mark->time_us) / 1e3);
  return CUDA_SUCCESS;
}

// ---- Graphs --------------------------------------------------------------------------------------------------------

AG_EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, int mode) {
  Call call;
  FakeStream* fake = call.stream(stream);
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  if (mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL || fake->capture) return CUDA_ERROR_INVALID_VALUE;
  const auto thread = std::this_thread::get_id();
  fake->capture = std::make_shared<FakeCapture>(FakeCapture{fake, thread, {fake}, {}, false});
  fake->last.clear();
  call.world.captures[thread] = fake->capture;
  ++call.world.counts.captures;
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  Call call;
  *graph = nullptr;
  FakeStream* fake = call.stream(stream);
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  const std::shared_ptr<FakeCapture> capture = fake->capture;
  if (!capture || capture->origin != fake || capture->thread != std::this_thread::get_id()) {
    call.world.note("a capture is ended where it did not begin");
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  const bool joined = is_joined(*capture);
  for (FakeStream* each : capture->streams) {
    each->capture = nullptr;
    each->last.clear();
  }
  capture->origin = nullptr;  // events know that it has ended
  call.world.captures.erase(capture->thread);
  if (capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (!joined) {
    call.world.note("a captured stream was not joined");
    return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  }
  auto* made = new FakeGraph(std::move(capture->graph));
  call.world.graphs.insert(made);
  *graph = reinterpret_cast<CUgraph>(made);
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec* ready, CUgraph graph, unsigned long long) {
  Call call;
  FakeGraph* fake = call.known(call.world.graphs, reinterpret_cast<FakeGraph*>(graph), "graph");
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  if (setting("AG_STANDIN_GRAPHS", 1) == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  auto* made = new FakeGraph(*fake);
  call.world.graphs.insert(made);
  *ready = reinterpret_cast<CUgraphExec>(made);
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuGraphLaunch(CUgraphExec ready, CUstream stream) {
  Call call;
  FakeGraph* fake = call.known(call.world.graphs, reinterpret_cast<FakeGraph*>(ready), "graph");
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  ++call.world.counts.replays;
  // A copy: a graph that is destroyed afterwards is still launched.
  return standin::enqueue(stream, [graph = *fake] { World::get().run_graph(graph); });
}

AG_EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  Call call;
  FakeGraph* fake = call.known(call.world.graphs, reinterpret_cast<FakeGraph*>(graph), "graph");
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  call.world.graphs.erase(fake);
  delete fake;
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuGraphExecDestroy(CUgraphExec ready) { return cuGraphDestroy(reinterpret_cast<CUgraph>(ready)); }

// ---- Programs ------------------------------------------------------------------------------------------------------

AG_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  Call call;
  if (!has_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  if (call.world.breaks_capture()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  const char* text = static_cast<const char*>(image);
  int architecture = 0;
  size_t bytes = 0;
  if (std::strncmp(text, kMagic, sizeof(kMagic) - 1) != 0) return CUDA_ERROR_INVALID_IMAGE;
  if (std::sscanf(text + sizeof(kMagic) - 1, "sm_%d %zu\n", &architecture, &bytes) != 2)
    return CUDA_ERROR_INVALID_IMAGE;
  if (architecture != setting("AG_STANDIN_ARCHITECTURE", 90)) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  const char* library = std::strchr(text, '\n') + 1;
  const int fd = ::memfd_create("program", MFD_CLOEXEC);
  const bool is_written = ::write(fd, library, bytes) == static_cast<ssize_t>(bytes);
  void* handle = is_written ? ::dlopen(fmt::format("/proc/self/fd/{}", fd).c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!handle) {
    ::close(fd);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  // The file stays open: the loader takes files of one name for one.
  auto* fake = new FakeModule{handle, fd};
  call.world.modules.insert(fake);
  *module = reinterpret_cast<CUmodule>(fake);
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuModuleUnload(CUmodule module) {
  Call call;
  FakeModule* fake = call.known(call.world.modules, reinterpret_cast<FakeModule*>(module), "module");
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  call.world.drain_all();
  ::dlclose(fake->library);
  ::close(fake->file);
  std::erase_if(call.world.functions, [&](const auto& entry) { return entry.first.first == fake; });
  call.world.modules.erase(fake);
  delete fake;
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  Call call;
  FakeModule* fake = call.known(call.world.modules, reinterpret_cast<FakeModule*>(module), "module");
  if (!fake) return CUDA_ERROR_INVALID_HANDLE;
  auto& made = call.world.functions[{fake, name}];
  if (!made) {
    made = std::make_unique<FakeFunction>();
    made->module = fake;
    made->name = name;
    const auto* count =
        static_cast<const size_t*>(::dlsym(fake->library, fmt::format("standin_count_{}", name).c_str()));
    void* run = ::dlsym(fake->library, fmt::format("standin_run_{}", name).c_str());
    if (!count || !run) return CUDA_ERROR_NOT_FOUND;
    made->num_parameters = *count;
    made->run = reinterpret_cast<decltype(made->run)>(run);
  }
  *function = reinterpret_cast<CUfunction>(made.get());
  return CUDA_SUCCESS;
}

AG_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned groups, unsigned groups_y, unsigned groups_z,
                                  unsigned size, unsigned size_y, unsigned size_z, unsigned shared, CUstream stream,
                                  void** parameters, void**) {
  Call call;
  if (!has_context) return CUDA_ERROR_INVALID_CONTEXT;
  if (call.world.lost != CUDA_SUCCESS) return call.world.lost;
  const bool is_odd = groups_y != 1 || groups_z != 1 || size_y != 1 || size_z != 1 || shared != 0;
  if (is_odd || groups == 0 || size == 0 || size > 1024) return CUDA_ERROR_INVALID_VALUE;
  auto* fake = reinterpret_cast<FakeFunction*>(function);
  const bool is_known = std::any_of(call.world.functions.begin(), call.world.functions.end(),
                                    [&](const auto& entry) { return entry.second.get() == fake; });
  if (!is_known) {
    call.world.note("a kernel of a module that is not there");
    return CUDA_ERROR_INVALID_HANDLE;
  }
  std::vector<void*> values;
  for (size_t p = 0; p < fake->num_parameters; ++p) values.push_back(*static_cast<void**>(parameters[p]));
  ++call.world.counts.launches;
  return standin::enqueue(stream,
                          [function = *fake, values, groups, size] { run_kernel(function, values, groups, size); });
}

// What is defined here is what is declared there.
#define AG_SAME(name, result, parameters) static_assert(std::is_same_v<decltype(&name), result(*) parameters>);
AG_CUDA_FUNCTIONS(AG_SAME)

}  // namespace autograph::cuda

namespace autograph::standin {

std::string pack_program(int architecture, const std::string& library) {
  return fmt::format("{}sm_{} {}\n{}", cuda::kMagic, architecture, library.size(), library);
}

}  // namespace autograph::standin
