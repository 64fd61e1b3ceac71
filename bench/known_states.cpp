// What weights that are states cost beside constants: evaluates ONNX models both ways in turns, and right after a
// write.
//
//   bench_known_states THREADS MODEL.onnx...
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/seeded_inputs.h"
#include "autograph/train.h"

namespace {

using namespace autograph;

double least_us(const Executable& program, const std::vector<Datum>& inputs, int runs) {
  double least = std::numeric_limits<double>::max();
  for (int i = 0; i < runs; ++i) {
    const auto start = std::chrono::steady_clock::now();
    program.run(inputs);
    least =
        std::min(least, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  }
  return least;
}

// The same elements again: another version.
void write_all(StateStore store) {
  for (const std::string& name : store.names()) store.set(name, store.get(name));
}

void compare(const std::string& path, const CompileOptions& options) {
  constexpr int kRounds = 7, kRuns = 20;
  TrainableOptions trainable;
  trainable.batch_statistics = false;
  const Graph model = make_trainable(load_onnx(path).graph, trainable).graph;
  const std::vector<Datum> inputs = seeded_inputs(model);
  const Executable states = compile(model, options);
  Graph graph = states.graph();  // behind the same passes
  graph.freeze();
  CompileOptions as_it_is = options;
  as_it_is.expert.use_passes = false;
  const Executable frozen = compile(std::move(graph), as_it_is);
  double states_us = std::numeric_limits<double>::max(), frozen_us = states_us, written_us = states_us;
  for (int round = 0; round < kRounds; ++round) {
    write_all(states.states());
    written_us = std::min(written_us, least_us(states, inputs, 1));
    states_us = std::min(states_us, least_us(states, inputs, kRuns));
    frozen_us = std::min(frozen_us, least_us(frozen, inputs, kRuns));
  }
  fmt::print("{}: states {:.1f} us, {:.2f} of constants ({:.1f} us); right after a write {:.1f} us, {:.2f} of later\n",
             path, states_us, states_us / frozen_us, frozen_us, written_us, written_us / states_us);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) throw UserError("[bench_known_states] arguments: expected THREADS MODEL...", ExitCode::usage);
  CompileOptions options;
  options.threads = std::stoi(argv[1]);
  for (int i = 2; i < argc; ++i) compare(argv[i], options);
} catch (const Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return static_cast<int>(error.exit_code());
}
