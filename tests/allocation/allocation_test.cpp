// A warm run_into allocates nothing (but for what a library does inside its kernels: oneDNN 2 allocates its argument
// list in every call, so the graphs here use kernels of our own). This program counts allocations by replacing operator
// new, which is why it is a program of its own.
#include <gtest/gtest.h>
#include <link.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "allocation/counters.h"
#include "autograph/autodiff.h"
#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"

namespace {

std::atomic<int64_t> allocations{0};
std::atomic<int64_t> allocations_of_onednn{0};

// Where the code of libdnnl lies; nowhere in a program without it.
struct CodeOfOnednn {
  uintptr_t begin = 0, end = 0;

  CodeOfOnednn() {
    dl_iterate_phdr(
        [](dl_phdr_info* library, size_t, void* found) {
          if (!std::strstr(library->dlpi_name, "libdnnl")) return 0;
          for (int i = 0; i < library->dlpi_phnum; ++i) {
            const auto& part = library->dlpi_phdr[i];
            if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
            auto& code = *static_cast<CodeOfOnednn*>(found);
            code.begin = library->dlpi_addr + part.p_vaddr;
            code.end = code.begin + part.p_memsz;
          }
          return 1;
        },
        this);
  }
  bool has(const void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address);
    return begin <= at && at < end;
  }
};

// `caller` is where the operator returns to.
void* allocate(size_t bytes, size_t alignment, const void* caller) {
  static const CodeOfOnednn kOnednn;
  ++allocations;
  if (kOnednn.has(caller)) ++allocations_of_onednn;
  const size_t rounded = (bytes + alignment) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded);
}

void* counted(size_t bytes, size_t alignment, const void* caller) {
  if (void* memory = allocate(bytes, alignment, caller)) return memory;
  throw std::bad_alloc();
}

constexpr size_t kUsual = alignof(std::max_align_t);

}  // namespace

int64_t autograph::num_allocations() { return allocations; }
int64_t autograph::num_allocations_of_onednn() { return allocations_of_onednn; }

// The operators below belong together; the compiler, which inlines only some of them, takes them for a mismatch.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

void* operator new(size_t bytes) { return counted(bytes, kUsual, __builtin_return_address(0)); }
void* operator new[](size_t bytes) { return counted(bytes, kUsual, __builtin_return_address(0)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, kUsual, __builtin_return_address(0));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(bytes, static_cast<size_t>(alignment), __builtin_return_address(0));
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

int64_t allocations_of_warm_runs(const Executable& executable, const std::vector<Tensor>& inputs,
                                 std::vector<Tensor> outputs) {
  for (int warm_up = 0; warm_up < 2; ++warm_up) executable.run_into(inputs, outputs);
  const int64_t before = num_allocations();
  for (int round = 0; round < 10; ++round) executable.run_into(inputs, outputs);
  return num_allocations() - before;
}

int64_t allocations_of_warm_runs(const Executable& executable) {
  const Tensor x = Tensor::zeros(DType::f32, {4, 8});
  return allocations_of_warm_runs(executable, {x}, {x.clone(), x.clone()});
}

// A scan along axis 0 of x[16,4,8] whose steps are stacked along axis 1, and what flows back into x.
Graph loop_and_its_gradient() {
  Graph graph("scan");
  const Var x = input(graph, DType::f32, {16, 4, 8}, "x");
  Graph body("body");
  const Var state = input(body, DType::f32, {4, 8}, "state"), slice = input(body, DType::f32, {4, 8}, "slice");
  const Var next = tanh(mul(add(state, slice), slice));
  body.add_output(next.id());
  body.add_output(next.id());
  const Var first = constant(graph, Tensor::zeros(DType::f32, {4, 8}));
  const std::vector<int64_t> axes{1};
  const std::vector<Var> outputs = scan({first}, {x}, body, {}, {{"scan_output_axes", axes}});
  graph.add_output(outputs[1].id(), "y");
  graph.add_output(vjp({outputs[1]}, {outputs[1]}, {x})[0].id(), "gx");
  return graph;
}

// The loop of the branch that is taken runs x times.
Graph loop_in_a_branch() {
  Graph graph("if");
  const Var condition = input(graph, DType::boolean, {}, "condition");
  const Var turns = input(graph, DType::i64, {}, "turns"), x = input(graph, DType::f32, {4, 8}, "x");
  Graph body("body"), taken("then"), other("else");
  input(body, DType::i64, {}, "turn");
  body.add_output(input(body, DType::boolean, {}, "condition").id());
  body.add_output(tanh(input(body, DType::f32, {4, 8}, "state")).id());
  const Var limit = input(taken, DType::i64, {}, "turns"), state = input(taken, DType::f32, {4, 8}, "x");
  taken.add_output(loop(limit, Var(), {state}, body, {})[0].id());
  input(other, DType::i64, {}, "turns");
  other.add_output(input(other, DType::f32, {4, 8}, "x").id());
  graph.add_output(if_else(condition, taken, other, {turns, x})[0].id(), "y");
  return graph;
}

TEST(Allocation, TheCounterCounts) {
  const int64_t before = num_allocations();
  const Tensor tensor = Tensor::zeros(DType::f32, {4});
  EXPECT_GT(num_allocations(), before);
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

TEST(Allocation, WarmRunIntoOfALoopAndItsGradientAllocatesNothing) {
  CompileOptions options;
  options.threads = 1;
  const Tensor x = Tensor::zeros(DType::f32, {16, 4, 8}), y = Tensor::zeros(DType::f32, {4, 16, 8});
  EXPECT_EQ(allocations_of_warm_runs(compile(loop_and_its_gradient(), options), {x}, {y, x.clone()}), 0);
}

TEST(Allocation, WarmRunIntoOfALoopInABranchAllocatesNothing) {
  CompileOptions options;
  options.threads = 1;
  const Executable executable = compile(loop_in_a_branch(), options);
  const Tensor x = Tensor::zeros(DType::f32, {4, 8});
  for (const bool condition : {true, false}) {
    const std::vector<Tensor> inputs{Tensor::scalar(condition), Tensor::scalar(int64_t{7}), x};
    EXPECT_EQ(allocations_of_warm_runs(executable, inputs, {x.clone()}), 0) << condition;
  }
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
