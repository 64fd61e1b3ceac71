// bench_capture: what the programs in examples/ compute, captured: milliseconds of the first call and of the slowest
// that captured (capture, compilation and a run), how many graphs there were, and a call once they are there beside the
// same call line by line. A line of JSON for each. Exit status 1 where a call that captured took a second.
#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/stopwatch.h"
#include "support/example_functions.h"

namespace autograph {
namespace {

constexpr int kRounds = 20;

double least_ms(const EagerFunction& function, const std::vector<Var>& inputs) {
  double least = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    function(inputs);
    least = std::min(least, watch.ms());
  }
  return least;
}

// The slowest call that captured, in milliseconds.
double measure(const Example& example) {
  const ExampleFunction captured = example.make(), by_run = example.make();
  Captured graph = capture(captured.function);
  double first_ms = 0, slowest_ms = 0;
  for (size_t i = 0; i < captured.calls.size(); ++i) {
    const int before = graph.num_captures();
    const Stopwatch watch;
    graph(captured.calls[i]);
    const double ms = watch.ms();
    if (i == 0) first_ms = ms;
    if (graph.num_captures() > before) slowest_ms = std::max(slowest_ms, ms);
  }
  const double ms = least_ms([&](const std::vector<Var>& x) { return graph(x); }, captured.calls.back());
  const double eager_ms = least_ms(by_run.function, by_run.calls.back());
  fmt::print(
      "{{\"schema\": 1, \"bench\": \"capture\", \"example\": \"{}\", \"first_ms\": {:.2f}, "
      "\"slowest_capture_ms\": {:.2f}, \"graphs\": {}, \"call_ms\": {:.4f}, \"line_by_line_ms\": {:.4f}}}\n",
      example.name, first_ms, slowest_ms, graph.num_captures(), ms, eager_ms);
  return slowest_ms;
}

}  // namespace
}  // namespace autograph

int main() {
  double slowest_ms = 0;
  for (const autograph::Example& example : autograph::example_functions()) {
    slowest_ms = std::max(slowest_ms, autograph::measure(example));
  }
  return slowest_ms < 1000 ? 0 : 1;
}
