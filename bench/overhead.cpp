// Executor overhead: a chain of 10,000 adds of four elements each, nanoseconds per node, as JSON. With so little
// arithmetic the time is that of dispatch. Exit status 1 when the result is wrong or a node takes 1,000 ns or more.
#include <fmt/core.h>

#include <vector>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "measure.h"

namespace {

constexpr int kNodes = 10'000;
constexpr int kRounds = 20;
constexpr double kTargetNs = 1000;

autograph::Graph chain_of_adds() {
  using autograph::Var;
  autograph::Graph graph("chain");
  const Var one = autograph::input(graph, autograph::DType::f32, {4}, "one");
  Var x = one;
  for (int i = 0; i < kNodes; ++i) x = autograph::apply(autograph::get_op("add"), {x, one});
  graph.add_output(x.id());
  return graph;
}

}  // namespace

int main() {
  using autograph::best_milliseconds;
  using autograph::Tensor;
  autograph::CompileOptions options;
  options.threads = 1;
  options.expert.disabled_passes = {"fuse_elementwise"};  // what one node takes is the question
  autograph::Graph graph = chain_of_adds();
  autograph::Executable executable;
  const double compile_ms =
      autograph::milliseconds([&] { executable = autograph::compile(std::move(graph), options); });

  const std::vector<Tensor> tensors{Tensor::of<float>({4}, {1, 1, 1, 1})};
  const std::vector<autograph::Datum> datums{tensors[0]};
  std::vector<Tensor> outputs{Tensor::zeros(autograph::DType::f32, {4})};
  constexpr double kNsPerMs = 1e6;
  const double run_into_ns =
      best_milliseconds(kRounds, [&] { executable.run_into(tensors, outputs); }) * kNsPerMs / kNodes;
  float from_run = 0;
  const double run_ns =
      best_milliseconds(kRounds, [&] { from_run = executable.run(datums)[0].tensor().data<float>()[0]; }) * kNsPerMs /
      kNodes;

  const float expected = kNodes + 1;
  const bool right = outputs[0].data<float>()[0] == expected && from_run == expected;
  const bool on_target = run_into_ns < kTargetNs && run_ns < kTargetNs;
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"overhead\", \"nodes\": {}, \"compile_ms\": {:.1f}, \"run_into_ns_per_node\": "
      "{:.1f}, "
      "\"run_ns_per_node\": {:.1f}, \"arena_bytes\": {}, \"right\": {}, \"on_target\": {}}}\n",
      kNodes, compile_ms, run_into_ns, run_ns, executable.memory().arena_bytes, right, on_target);
  return right && on_target ? 0 : 1;
}
