#include "cli/execute.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograph/error.h"
#include "base/check.h"
#include "base/join.h"

namespace autograph::cli {
namespace {

// Runs into the same output tensors every time; falls back to run() where outputs are no tensors of known shape.
class Repeater {
 public:
  Repeater(const Executable& executable, const std::vector<Datum>& inputs) : executable_(executable), inputs_(inputs) {
    const std::vector<Datum> first = executable.run(inputs);
    const auto is_tensor = [](const Datum& datum) { return datum.is_tensor(); };
    in_place_ =
        std::all_of(inputs.begin(), inputs.end(), is_tensor) && std::all_of(first.begin(), first.end(), is_tensor);
    if (!in_place_) return;
    for (const Datum& datum : inputs) tensors_.push_back(datum.tensor());
    for (const Datum& datum : first) outputs_.push_back(datum.tensor().clone());
    try {
      executable.run_into(tensors_, outputs_);
    } catch (const ShapeError&) {
      in_place_ = false;  // an output's shape depends on data
    }
  }

  void run() {
    if (in_place_) {
      executable_.run_into(tensors_, outputs_);
    } else {
      executable_.run(inputs_);
    }
  }

 private:
  const Executable& executable_;
  const std::vector<Datum>& inputs_;
  bool in_place_ = false;
  std::vector<Tensor> tensors_;
  std::vector<Tensor> outputs_;
};

}  // namespace

CompileOptions compile_options(const RunOptions& options) {
  AG_CHECK_USER(options.threads >= 0 && options.threads <= 4096, UserError, "[cli] threads: expected 0..4096, got {}",
                options.threads);
  AG_CHECK_USER(options.memory_budget_mib >= 0, UserError, "[cli] memory-budget: expected 0 or more, got {}",
                options.memory_budget_mib);
  const std::vector<std::string> strategies = available_strategies();
  if (std::find(strategies.begin(), strategies.end(), options.strategy) == strategies.end()) {
    throw UnsupportedError(
        fmt::format("[cli] strategy: this build has {}, got '{}'", join(strategies, ", "), options.strategy));
  }
  CompileOptions result;
  result.device = options.device;
  result.strategy = options.strategy;
  result.threads = static_cast<int>(options.threads);
  result.memory_budget_bytes = static_cast<size_t>(options.memory_budget_mib) << 20;
  result.optimize = !options.no_optimize;
  result.check_nan = options.check_nan;
  result.disabled_passes = options.disabled_passes;
  result.release_weights = true;
  result.tune = options.tune;
  result.cache_folder = options.cache_dir;
  result.exact = options.exact;
  return result;
}

Executable compile_logged(Session& session, Graph graph, CompileOptions options) {
  options.on_tune = [&session](size_t step, size_t num_steps, size_t measured) {
    session.progress(fmt::format("choosing kernels, {} measured", measured),
                     static_cast<double>(step) / static_cast<double>(num_steps));
  };
  const size_t before = graph.num_nodes();
  const Stopwatch watch;
  Executable executable = compile(std::move(graph), options);
  session.end_progress();
  session.log("compile", fmt::format("{}, {}: {} nodes became {} in {:.1f} ms", options.device, options.strategy,
                                     before, executable.graph().num_nodes(), watch.ms()));
  return executable;
}

void log_plan(const Session& session, const Executable& executable) {
  if (session.logs("kernels")) {
    for (const KernelChoice& choice : executable.kernel_choices()) {
      const std::string refused = choice.refusals.empty() ? "" : " (" + join(choice.refusals, "; ") + ")";
      session.log("kernels", fmt::format("{} {}: {}{}", choice.op, choice.node, choice.kernel, refused));
    }
  }
  if (session.logs("plan")) {
    const std::string plan = executable.print_plan();
    for (size_t begin = 0; begin < plan.size();) {
      const size_t end = std::min(plan.find('\n', begin), plan.size());
      session.log("plan", std::string_view(plan).substr(begin, end - begin));
      begin = end + 1;
    }
  }
}

double Latency::quantile(double q) const {
  if (sorted_ms.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(sorted_ms.size())));
  return sorted_ms[std::clamp<size_t>(rank, 1, sorted_ms.size()) - 1];
}

double Latency::mean() const {
  if (sorted_ms.empty()) return 0;
  return std::accumulate(sorted_ms.begin(), sorted_ms.end(), 0.0) / static_cast<double>(sorted_ms.size());
}

Latency measure(Session& session, const Executable& executable, const std::vector<Datum>& inputs, int64_t warmup,
                double seconds) {
  constexpr size_t kFewest = 3;
  Repeater repeater(executable, inputs);
  for (int64_t i = 0; i < warmup; ++i) {
    session.progress("warming up", static_cast<double>(i) / static_cast<double>(warmup));
    repeater.run();
  }
  Latency latency;
  const Stopwatch total;
  while (latency.sorted_ms.size() < kFewest || total.ms() < seconds * 1000) {
    const Stopwatch watch;
    repeater.run();
    latency.sorted_ms.push_back(watch.ms());
    session.progress("measuring", seconds > 0 ? total.ms() / (seconds * 1000) : 1.0);
  }
  session.end_progress();
  std::sort(latency.sorted_ms.begin(), latency.sorted_ms.end());
  return latency;
}

Json latency_json(const Latency& latency) {
  return Json::object({{"min", latency.quantile(0)},
                       {"median", latency.quantile(0.5)},
                       {"p90", latency.quantile(0.9)},
                       {"p99", latency.quantile(0.99)},
                       {"mean", latency.mean()}});
}

}  // namespace autograph::cli
