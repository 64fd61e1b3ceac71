#include "cli/execute.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "base/join.h"
#include "base/time_in_turns.h"
#include "cli/machine.h"
#include "cli/options/search_flags.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

// Runs into the same output tensors every time; falls back to run() where outputs are no tensors of known shape.
class Repeater {
 public:
  Repeater(const Executable& executable, const std::vector<Datum>& inputs) : executable_(executable), inputs_(inputs) {
    const Outputs first = executable.run(inputs);
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

void show_tuning(Session& session, CompileOptions& options) {
  options.on_tune = [&session](const TuneProgress& at) {
    const auto* words = at.in_network ? "running plans to choose kernels, {} run" : "choosing kernels, {} measured";
    session.progress(fmt::format(fmt::runtime(words), at.measured),
                     static_cast<double>(at.done) / static_cast<double>(at.all));
  };
}

// A plan brings its device and its ways with it, unless a flag says otherwise.
CompileOptions plan_options(const Session& session, const PlanOrigin& origin, CompileOptions options) {
  if (!session.is_given("device")) options.device = origin.device;
  if (!session.is_given("threads")) {
    options.threads = std::min(origin.threads, plan_origin(options, "").threads);
  }
  options.exact = options.exact || origin.exact;
  if (!session.is_given("precision")) options.precision = origin.precision;
  return options;
}

Executable compile_elsewhere(Session& session, const SavedPlan& plan, const CompileOptions& options, Revalidation how) {
  session.progress("checking the plan on this machine", -1);
  Revalidated checked = revalidate(plan, options, how);
  session.end_progress();
  if (!checked.difference.ok) {
    throw Error(ExitCode::mismatch, fmt::format("[plan] numbers: the plan gives others here than where it was made: {}",
                                                checked.difference.why));
  }
  if (!checked.kept_schedule) {
    session.warn(
        fmt::format("one stream is faster here, so that it is used: {} instead of {} (autograph optimize "
                    "finds the best for this machine)",
                    human_ms(checked.plain_ms), human_ms(checked.saved_ms)));
  }
  return std::move(checked.executable);
}

CompiledModel compile_plan(Session& session, const SavedPlan& plan, const RunOptions& run, const CompileHow& how) {
  const std::string made_by(to_string(plan.optimized.report.strategy));
  if (!run.strategy.empty() && run.strategy != made_by) {
    session.warn(fmt::format("strategy '{}' is not used: the plan was made by '{}'", run.strategy, made_by));
  }
  CompileOptions options = plan_options(session, plan.origin, compile_options(run));
  options.profile = how.profile;
  show_tuning(session, options);
  CompiledModel compiled{.executable = {},
                         .strategy = made_by,
                         .device = options.device,
                         .streams = plan.optimized.schedule.width(),
                         .report = plan.optimized.report};
  const std::vector<std::string> elsewhere = differences(plan.origin, plan_origin(options, ""));
  const Stopwatch watch;
  if (elsewhere.empty()) {
    compiled.executable = compile(plan, options);
  } else {
    session.warn(fmt::format("the plan was made elsewhere, so that it is checked here: {}", join(elsewhere, "; ")));
    compiled.executable = compile_elsewhere(session, plan, options, how.revalidation);
  }
  session.end_progress();
  session.log("compile", fmt::format("{}, plan by {}: {} nodes in {:.1f} ms", options.device, compiled.strategy,
                                     plan.optimized.graph.num_nodes(), watch.ms()));
  return compiled;
}

constexpr double kBf16Error = 1.0 / 256;
constexpr double kF16Error = 1.0 / 2048;

// What a graph has that is computed coarsely.
struct Roundings {
  double products = 0;
  double half_nodes = 0;
  double half_error = 0;  // of one of them
  bool is_quantized = false;
};

// Nodes of saved plans may be groups, whose bodies are graphs.
void count_roundings(const Graph& graph, Roundings& found) {
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (node.op().traits.anchor) ++found.products;
    for (const ValueId v : node.outputs()) {
      const DType dtype = graph.type(v).is_tensor() ? graph.type(v).dtype() : DType::undefined;
      if (dtype != DType::f16 && dtype != DType::bf16) continue;
      ++found.half_nodes;
      found.half_error = std::max(found.half_error, dtype == DType::f16 ? kF16Error : kBf16Error);
    }
    found.is_quantized =
        found.is_quantized || node.op().name == "quantize_linear" || node.op().name.starts_with("qlinear_");
    if (node.op().name == "fused") count_roundings(*node.attributes().get<GraphRef>("body"), found);
  }
}

}  // namespace

void warn_where_nothing_is_kept(const Session& session, const RunOptions& options) {
  const CacheState cache = cache_state(options.cache_dir);
  if (!cache.problem.empty()) session.warn(fmt::format("what is measured is not kept: {}", cache.problem));
}

void check_tolerance(const Tolerance& given) {
  AG_CHECK_USER(given.rtol >= 0, UserError, "[cli] rtol: expected 0 or more, got {}", given.rtol);
  AG_CHECK_USER(given.atol >= 0 || given.atol == Tolerance().atol, UserError, "[cli] atol: expected 0 or more, got {}",
                given.atol);
}

RunOptions with_plan(const Session& session, const LoadedModel& loaded, RunOptions options) {
  if (loaded.plan && !session.is_given("precision")) options.precision = to_string(loaded.plan->origin.precision);
  return options;
}

CompileOptions compile_options(const RunOptions& options) {
  const int threads = checked_threads(options.threads);
  strategy_of(options);  // throws when there is none of this name
  CompileOptions result;
  result.device = options.device;
  result.threads = threads;
  result.expert.pin_threads = options.pin;
  result.expert.fixed_threads = options.fixed_threads;
  result.memory_budget_bytes = bytes_of_budget(options.memory_budget_mib);
  result.expert.use_passes = !options.no_optimize;
  result.check_nan = options.check_nan.check();
  result.expert.disabled_passes = options.disabled_passes;
  result.release_weights = !options.keeps_weights;
  result.tune = options.tune;
  result.attest = options.attest;
  result.cache_folder = options.cache_dir;
  result.precision = precision_named(options.precision);
  result.exact = options.exact;
  return result;
}

// Rounding two factors to bf16 changes their product by up to 2^-8 of its size, in either direction. Errors of products
// in a row are independent: they grow as the square root of their number. A quantized result may be off by one step of
// 255 where its value lies in the middle between two; what follows passes that on, and adds its own. A model in f16 or
// bf16 is rounded by the reference after every node, but at the end alone by kernels that compute in f32.
Tolerance tolerance_for(const Graph& graph, const RunOptions& options, Tolerance given) {
  constexpr double kQuantizedShare = 8.0 / 255;
  Roundings found;
  count_roundings(graph, found);
  if (options.precision == "bf16") {
    given.share = std::max(given.share, kBf16Error * std::sqrt(std::max(found.products, 1.0)));
  }
  given.share = std::max(given.share, found.half_error * std::sqrt(found.half_nodes));
  if (found.is_quantized) {
    given.share = std::max(given.share, kQuantizedShare);
    given.byte_steps = 8;
  }
  return given;
}

Executable compile_logged(Session& session, Graph graph, CompileOptions options) {
  show_tuning(session, options);
  const size_t before = graph.num_nodes();
  const Stopwatch watch;
  Executable executable = compile(std::move(graph), options);
  session.end_progress();
  session.log("compile", fmt::format("{}: {} nodes became {} in {:.1f} ms", options.device, before,
                                     executable.graph().num_nodes(), watch.ms()));
  return executable;
}

CompiledModel compile_model(Session& session, LoadedModel& loaded, const RunOptions& run, const CompileHow& how) {
  if (loaded.plan) {
    loaded.model.graph = Graph();
    return compile_plan(session, *loaded.plan, run, how);
  }
  CompileOptions options = compile_options(run);
  options.profile = how.profile;
  const Strategy strategy = strategy_of(run);
  const bool measures = run.tune || run.attest || strategy != Strategy::sequential;
  if (measures) warn_where_nothing_is_kept(session, run);
  CompiledModel compiled{.executable = {}, .strategy = std::string(to_string(strategy)), .device = options.device};
  if (strategy == Strategy::sequential) {
    compiled.executable = compile_logged(session, std::move(loaded.model.graph), options);
    return compiled;
  }
  CompileOptions searching = options;
  searching.profile = false;
  Optimized found = search(session, loaded, searching, search_options(SearchFlags(), run));
  if (found.report.stop_reason == StopReason::cancelled)
    throw Error(ExitCode::interrupted, "[search] it was interrupted");
  compiled.streams = found.schedule.width();
  compiled.executable = compile(found, options);
  compiled.report = std::move(found.report);
  return compiled;
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
  if (const auto simulated_ms = executable.simulated_latency_ms()) return {{*simulated_ms}};
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

RoundTimes rounds_in_turns(Session& session, const std::vector<Contestant>& contestants, double seconds,
                           const std::function<void()>& renew) {
  // Short ones: what disturbs a shared machine lasts for seconds, and should hit all contestants of a round.
  constexpr int kRounds = 24;
  const int rounds = renew ? kRoundsOfOneMaking : kRounds;
  RoundTimes all(contestants.size());
  for (int done = 0; done < kRounds; done += rounds) {
    if (done > 0) renew();
    std::vector<std::unique_ptr<Repeater>> repeaters;
    for (const Contestant& contestant : contestants) {
      repeaters.push_back(std::make_unique<Repeater>(*contestant.executable, *contestant.inputs));
    }
    std::vector<std::function<void()>> runs;
    for (const auto& repeater : repeaters) runs.emplace_back([&repeater] { repeater->run(); });
    Turns turns{.seconds = seconds * rounds / kRounds, .min_rounds = rounds, .max_rounds = rounds};
    turns.is_enough = [&](const RoundTimes& times) {
      session.progress("measuring in turns",
                       static_cast<double>(static_cast<size_t>(done) + times[0].size()) / kRounds);
      return false;
    };
    const RoundTimes times = time_in_turns(runs, turns);
    for (size_t i = 0; i < all.size(); ++i) all[i].insert(all[i].end(), times[i].begin(), times[i].end());
  }
  session.end_progress();
  return all;
}

std::vector<double> measure_in_turns(Session& session, const std::vector<Contestant>& contestants, double seconds) {
  return medians(rounds_in_turns(session, contestants, seconds));
}

Json latency_json(const Latency& latency) {
  return Json::object({{"min", latency.quantile(0)},
                       {"median", latency.quantile(0.5)},
                       {"p90", latency.quantile(0.9)},
                       {"p99", latency.quantile(0.99)},
                       {"mean", latency.mean()}});
}

}  // namespace autograph::cli
