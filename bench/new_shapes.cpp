// What a new shape costs: one executable of a model with symbolic extents runs with one extent after the other; each
// time the first run, which makes the plan, is compared with those that follow.
//
//   bench_new_shapes MODEL.onnx EXTENT[+EXTENT..]=16,32,48 [NAME=NUMBER ..]
//
// Prints one JSON line per value: {"extent": .., "first_ms": .., "passes_ms": .., "plan_ms": .., "steady_ms": ..,
// "ratio": first / steady}; passes and plan are parts of the first run.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/seeded_inputs.h"

namespace {

using namespace autograph;

constexpr int kRepeats = 15;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = 0; end != std::string::npos; begin = end + 1) {
    end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == std::string::npos ? end : end - begin));
  }
  return parts;
}

double ms_of_run(const Executable& program, const std::vector<Datum>& inputs) {
  const auto start = std::chrono::steady_clock::now();
  program.run(inputs);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

int measure(int argc, char** argv) {
  if (argc < 3) throw UserError("[bench_new_shapes] arguments: expected MODEL EXTENT=N,N,..", ExitCode::usage);
  const Graph graph = load_onnx(argv[1]).graph;
  SeedOptions seed;
  for (int k = 3; k < argc; ++k) {
    const auto parts = split(argv[k], '=');
    seed.dims[parts.at(0)] = std::stoll(parts.at(1));
  }
  const auto varied = split(argv[2], '=');
  const Executable program = compile(graph, {});
  for (const std::string& value : split(varied.at(1), ',')) {
    for (const std::string& name : split(varied.at(0), '+')) seed.dims[name] = std::stoll(value);
    const std::vector<Datum> inputs = seeded_inputs(graph, seed);
    const double first = ms_of_run(program, inputs);
    const CompileReport report = program.compile_report();
    double passes = 0;
    for (const PassReport& pass : report.passes) passes += pass.ms;
    std::vector<double> steady;
    for (int k = 0; k < kRepeats; ++k) steady.push_back(ms_of_run(program, inputs));
    std::nth_element(steady.begin(), steady.begin() + kRepeats / 2, steady.end());
    const double median = steady[kRepeats / 2];
    fmt::print(
        "{{\"extent\": {}, \"first_ms\": {:.2f}, \"passes_ms\": {:.2f}, \"plan_ms\": {:.2f}, \"steady_ms\": {:.2f}, "
        "\"ratio\": {:.2f}}}\n",
        value, first, passes, report.plan_ms, median, first / median);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measure(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
