// Models of the zoo on a device beside the processor, whose kernels the tests compare with the reference: one JSON
// line for each model and strategy, so that a run that was cut off, or that a fault of the device ended, goes on where
// it was.
//
//     bench_device_models DEVICE FILE STRATEGY[,STRATEGY...] MODEL...
//
// FILE is read first, as bench_device_ops does. Each plan runs some times, of which the later ones replay what the
// first ones recorded, and every run is compared: `max_rel` is the largest difference over the largest magnitude of the
// output. `ms` is the fastest run, from the host and back to it. Exit code: 0 all done, 75 more to do (call it again),
// 7 no such device, 2 usage.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/search.h"
#include "autograph/seeded_inputs.h"
#include "autograph/zoo.h"
#include "base/stopwatch.h"
#include "begun_lines.h"

namespace autograph {
namespace {

constexpr int kRuns = 10;
constexpr double kTolerance = 1e-3;
constexpr double kSearchSeconds = 5;

struct Model {
  explicit Model(const std::string& name) : graph(build_zoo_model(name)), inputs(seeded_inputs(graph)) {
    expected = compile(graph, {}).run(inputs);
  }
  Graph graph;
  std::vector<Datum> inputs;
  std::vector<Datum> expected;
};

Executable compile_as(const Model& model, Strategy strategy, const CompileOptions& options) {
  if (strategy == Strategy::sequential) return compile(model.graph, options);
  SearchOptions search;
  search.strategy = strategy;
  search.budget_seconds = kSearchSeconds;
  search.never_slower = false;  // what is asked for is what shall run
  search.verify = false;
  search.inputs = model.inputs;
  return compile(optimize(model.graph, options, search), options);
}

BegunLines::Result run_model(const Model& model, Strategy strategy, const std::string& device) {
  CompileOptions options;
  options.device = device;
  BegunLines::Result result;
  try {
    const Stopwatch compiling;
    const Executable there = compile_as(model, strategy, options);
    const double compile_ms = compiling.ms();
    std::map<std::string, size_t> kernels;
    for (const KernelChoice& choice : there.kernel_choices()) ++kernels[choice.kernel];
    double max_rel = 0;
    double least_ms = std::numeric_limits<double>::infinity();
    for (int run = 0; run < kRuns && result.detail.empty(); ++run) {
      const Stopwatch watch;
      const std::vector<Datum> actual = there.run(model.inputs);
      least_ms = std::min(least_ms, watch.ms());
      const Difference difference = compare_all(actual, model.expected, {.rtol = kTolerance});
      max_rel = std::max(max_rel, difference.max_rel);
      if (!difference.ok) result.detail = fmt::format("run {}: {}", run + 1, difference.why);
    }
    result.status = result.detail.empty() ? "right" : "wrong";
    result.more = fmt::format("\"max_rel\":{:.3g},\"compile_ms\":{:.1f},\"ms\":{:.4f},", max_rel, compile_ms, least_ms);
    std::string counts;
    for (const auto& [kernel, count] : kernels) counts += fmt::format("{} {} ", count, kernel);
    result.more += fmt::format("\"kernels\":{},", Json(counts).dump(0));
  } catch (const Error& error) {
    result.status = "error";
    result.detail = error.what();
  }
  return result;
}

int main_of(const std::string& device, const std::string& path, const std::vector<Strategy>& strategies,
            std::span<char*> models) {
  if (!find_device(device)) return kNoDevice;
  BegunLines lines(path);
  for (const char* name : models) {
    std::optional<Model> model;
    for (const Strategy strategy : strategies) {
      const std::string key = fmt::format("\"model\":\"{}\",\"strategy\":\"{}\",", name, to_string(strategy));
      const bool goes_on = lines.once(key, [&] {
        if (!model) model.emplace(name);
        return run_model(*model, strategy, device);
      });
      if (!goes_on) return kMoreToDo;
    }
  }
  return 0;
}

std::vector<Strategy> strategies_in(const std::string& list) {
  std::vector<Strategy> strategies;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    strategies.push_back(strategy_named(list.substr(begin, end - begin)));
    begin = end + 1;
  }
  return strategies;
}

}  // namespace
}  // namespace autograph

int main(int argc, char** argv) {
  using namespace autograph;
  if (argc < 5) {
    fmt::print(stderr, "usage: {} DEVICE FILE STRATEGY[,STRATEGY...] MODEL...\n", argv[0]);
    return 2;
  }
  try {
    return main_of(argv[1], argv[2], strategies_in(argv[3]), {argv + 4, static_cast<size_t>(argc) - 4});
  } catch (const Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 2;
  }
}
