// Executor overhead: a chain of 10,000 tiny adds, nanoseconds per node, as JSON.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"

int main() {
  using namespace autograph;  // NOLINT: a program, not a header
  constexpr int kNodes = 10'000;
  constexpr int kRounds = 20;
  Graph graph("chain");
  const Var one = input(graph, DType::f32, {4}, "one");
  Var x = one;
  for (int i = 0; i < kNodes; ++i) x = apply(get_op("add"), {x, one});
  graph.add_output(x.id());

  const auto start = std::chrono::steady_clock::now();
  CompileOptions options;
  options.threads = 1;
  const Executable executable = compile(std::move(graph), options);
  const std::chrono::duration<double, std::milli> compile_ms = std::chrono::steady_clock::now() - start;

  const std::vector<Tensor> inputs{Tensor::of<float>({4}, {1, 1, 1, 1})};
  std::vector<Tensor> outputs{Tensor::zeros(DType::f32, {4})};
  double best_ns = 1e300;
  for (int round = 0; round < kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    executable.run_into(inputs, outputs);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best_ns = std::min(best_ns, took.count());
  }
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"overhead\", \"nodes\": {}, \"compile_ms\": {:.1f}, \"ns_per_node\": {:.1f}, "
      "\"arena_bytes\": {}, \"right\": {}}}\n",
      kNodes, compile_ms.count(), best_ns / kNodes, executable.memory().arena_bytes,
      outputs[0].data<float>()[0] == kNodes + 1);
  return 0;
}
