// A warm run_into allocates nothing (but for what a library does inside its kernels: oneDNN 2 allocates its argument
// list in every call, so the graphs here use kernels of our own). This program counts allocations by replacing operator
// new, which is why it is a program of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"

namespace {

std::atomic<int64_t> allocations{0};

void* allocate(size_t bytes, size_t alignment) {
  ++allocations;
  const size_t rounded = (bytes + alignment) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded);
}

void* counted(size_t bytes, size_t alignment) {
  if (void* memory = allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The operators below belong together; the compiler, which inlines only some of them, takes them for a mismatch.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new[](size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<size_t>(alignment)); }
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return allocate(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace autograph {
namespace {

// Elementwise steps in and out of place, a row-wise kernel, a weight, and a value that is read twice.
Graph mixed_graph(const Dim& batch) {
  Graph graph("mixed");
  const Var x = input(graph, DType::f32, {batch, 8}, "x");
  const Var bias = constant(graph, Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8}));
  const Var sum = apply(get_op("add"), {x, bias});
  const Var r = relu(sum);
  graph.add_output(apply(get_op("layer_normalization"), {apply(get_op("mul"), {r, sum}), bias}).id(), "y");
  graph.add_output(r.id(), "z");
  return graph;
}

int64_t allocations_of_warm_runs(const Executable& executable) {
  const std::vector<Tensor> inputs{Tensor::zeros(DType::f32, {4, 8})};
  std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {4, 8}), Tensor::zeros(DType::f32, {4, 8})};
  for (int warm_up = 0; warm_up < 2; ++warm_up) executable.run_into(inputs, outputs);
  const int64_t before = allocations;
  for (int round = 0; round < 10; ++round) executable.run_into(inputs, outputs);
  return allocations - before;
}

TEST(Allocation, TheCounterCounts) {
  const int64_t before = allocations;
  const Tensor tensor = Tensor::zeros(DType::f32, {4});
  EXPECT_GT(allocations, before);
}

TEST(Allocation, WarmRunIntoOfAStaticGraphAllocatesNothing) {
  CompileOptions options;
  options.threads = 1;
  EXPECT_EQ(allocations_of_warm_runs(compile(mixed_graph(4), options)), 0);
}

TEST(Allocation, WarmRunIntoOfASymbolicGraphAllocatesNothing) {
  CompileOptions options;
  options.threads = 1;
  EXPECT_EQ(allocations_of_warm_runs(compile(mixed_graph(Dim::symbol("batch")), options)), 0);
}

// Streams of one thread, in the team of OpenMP, and of two, on threads of their own.
TEST(Allocation, WarmRunIntoWithStreamsAllocatesNothing) {
  for (const int threads : {1, 2}) {
    const Graph graph = mixed_graph(4);
    const std::vector<NodeId> nodes = graph.nodes();
    ASSERT_EQ(nodes.size(), 4U);
    const Schedule schedule{{{0, {{nodes[0]}}}, {threads, {{nodes[1]}, {nodes[2], nodes[3]}}}}};
    CompileOptions options;
    options.threads = 2;
    options.expert.fixed_threads = true;  // the first run with fewer makes what it needs
    options.expert.schedule = std::make_shared<const Schedule>(schedule);
    const Executable executable = compile(graph, options);
    ASSERT_NE(executable.print_plan().find("waits"), std::string::npos) << executable.print_plan();
    EXPECT_EQ(allocations_of_warm_runs(executable), 0);
  }
}

}  // namespace
}  // namespace autograph
