// Graph construction at scale: 100,000 nodes built, verified, printed, parsed back and hashed, milliseconds each, as
// JSON. Exit status 1 when the parsed graph differs or building, verifying or printing takes a second or more.
#include <fmt/core.h>

#include <algorithm>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "measure.h"

namespace {

constexpr int kNodes = 100'000;
constexpr double kTargetMs = 1000;

void build(autograph::Graph& graph) {
  using autograph::Var;
  const Var one = autograph::input(graph, autograph::DType::f32, {autograph::Dim::symbol("batch"), 4}, "one");
  Var x = one;
  for (int i = 0; i < kNodes; ++i) x = autograph::apply(autograph::get_op(i % 2 ? "add" : "mul"), {x, one});
  graph.add_output(x.id());
}

}  // namespace

int main() {
  using autograph::milliseconds;
  autograph::Graph graph("chain");
  const double build_ms = milliseconds([&] { build(graph); });
  const double verify_ms = milliseconds([&] { autograph::verify(graph); });
  std::string text;
  const double print_ms = milliseconds([&] { text = autograph::print_text(graph); });
  autograph::Graph parsed;
  const double parse_ms = milliseconds([&] { parsed = autograph::parse_text(text); });
  autograph::Hash128 hash;
  const double hash_ms = milliseconds([&] { hash = autograph::structural_hash(graph); });

  const bool right = autograph::structural_hash(parsed) == hash;
  const bool on_target = std::max({build_ms, verify_ms, print_ms}) < kTargetMs;
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"graph_build\", \"nodes\": {}, \"build_ms\": {:.1f}, \"verify_ms\": {:.1f}, "
      "\"print_ms\": {:.1f}, \"parse_ms\": {:.1f}, \"hash_ms\": {:.1f}, \"text_bytes\": {}, \"right\": {}, "
      "\"on_target\": {}}}\n",
      kNodes, build_ms, verify_ms, print_ms, parse_ms, hash_ms, text.size(), right, on_target);
  return right && on_target ? 0 : 1;
}
