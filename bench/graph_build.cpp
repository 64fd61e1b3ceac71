// Graph construction: 100,000 nodes built, verified and printed, milliseconds each, as JSON.
#include <fmt/core.h>

#include <chrono>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/text.h"
#include "autograph/verify.h"

namespace {

template <class F>
double milliseconds(F&& f) {
  const auto start = std::chrono::steady_clock::now();
  f();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

}  // namespace

int main() {
  using namespace autograph;  // NOLINT: a program, not a header
  constexpr int kNodes = 100'000;
  Graph graph("chain");
  const double build_ms = milliseconds([&] {
    const Var one = input(graph, DType::f32, {Dim::symbol("batch"), 4}, "one");
    Var x = one;
    for (int i = 0; i < kNodes; ++i) x = apply(get_op(i % 2 ? "add" : "mul"), {x, one});
    graph.add_output(x.id());
  });
  const double verify_ms = milliseconds([&] { verify(graph); });
  size_t text_bytes = 0;
  const double print_ms = milliseconds([&] { text_bytes = print_text(graph).size(); });
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"graph_build\", \"nodes\": {}, \"build_ms\": {:.1f}, \"verify_ms\": {:.1f}, "
      "\"print_ms\": {:.1f}, \"text_bytes\": {}}}\n",
      kNodes, build_ms, verify_ms, print_ms, text_bytes);
  return 0;
}
