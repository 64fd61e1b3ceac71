// Making plans, and looking at them again on another machine.
#include <algorithm>
#include <functional>

#include "autograph/cpu_count.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/plan_file.h"
#include "autograph/seeded_inputs.h"
#include "base/check.h"
#include "base/time_in_turns.h"
#include "engine/node_times.h"
#include "engine/strategies/trials/timed_run.h"
#include "engine/tune_in_network.h"

namespace autograph {
namespace {

constexpr double kTimingSeconds = 1;
constexpr int kFewestRounds = 5;

bool is_plain_tensor(const Datum& datum) { return datum.is_tensor() && datum.tensor().dtype() != DType::string; }

std::vector<Datum> probe_inputs(const Graph& graph, uint64_t seed, const std::map<std::string, Tensor>& defaults) {
  SeedOptions seeds;
  seeds.seed = seed;
  seeds.values = defaults;
  return seeded_inputs(graph, seeds);
}

std::vector<Datum> reference_outputs(const Graph& graph, CompileOptions options, const std::vector<Datum>& inputs) {
  options.device = "reference";
  options.precision = Precision::f32;
  options.expert.schedule = nullptr;
  options.expert.use_passes = false;
  options.tune = false;
  options.release_weights = false;
  options.states.reset();
  return compile(graph, options).run(inputs);
}

Optimized without_schedule(const SavedPlan& plan) { return {plan.optimized.graph, {}, plan.optimized.report}; }

Revalidated try_plan(const SavedPlan& plan, const CompileOptions& options, Revalidation how,
                     const Tolerance& tolerance) {
  const std::vector<Datum> inputs = probe_inputs(plan.optimized.graph, plan.probe.seed, plan.input_defaults);
  const std::vector<Datum> expected =
      plan.probe.outputs.empty() ? reference_outputs(plan.optimized.graph, options, inputs) : plan.probe.outputs;
  Revalidated result;
  result.executable = compile(plan, options);
  result.difference = compare_all(result.executable.run(inputs), expected, tolerance);
  // The clock of a simulated device is not the one on the wall.
  const bool can_gain = !plan.optimized.schedule.is_sequential() && !plan.optimized.report.simulated;
  if (how == Revalidation::numbers || !can_gain) return result;
  Executable plain = compile(without_schedule(plan), options);
  const Difference difference = compare_all(plain.run(inputs), expected, tolerance);
  const Device& device = get_device(options.device);
  const auto run_of = [&](const Executable& executable) {
    return [&] { return timed_run_ms(device, executable, inputs); };
  };
  const std::function<double()> runs[] = {run_of(result.executable), run_of(plain)};
  const std::vector<double> ms =
      medians(time_in_turns(runs, {.seconds = kTimingSeconds / 2, .min_rounds = kFewestRounds}));
  result.saved_ms = ms[0];
  result.plain_ms = ms[1];
  if (result.saved_ms <= result.plain_ms && result.difference.ok) return result;
  result.kept_schedule = false;
  result.difference = difference;
  result.executable = std::move(plain);
  return result;
}

}  // namespace

PlanOrigin plan_origin(const CompileOptions& options, const std::string& model) {
  const Device& device = get_device(options.device, options.precision);
  return {.version = AG_VERSION,
          .model = model,
          .device = options.device,
          .identity = device.identity(),
          .threads = options.threads > 0 ? options.threads : usable_cpu_count(),
          .tune = options.tune,
          .exact = options.exact,
          .precision = options.precision};
}

SavedPlan make_plan(Optimized optimized, const CompileOptions& options, const std::string& model, uint64_t seed,
                    const std::map<std::string, Tensor>& input_defaults) {
  CompileOptions profiled = options;
  profiled.profile = true;
  profiled.expert.use_passes = false;  // passes have been run
  profiled.release_weights = false;    // they are saved
  profiled.states.reset();             // the caller's stay as they are
  const Executable executable = compile(optimized, profiled);
  return make_plan(std::move(optimized), executable, options, model, seed, input_defaults);
}

SavedPlan make_plan(Optimized optimized, const Executable& executable, const CompileOptions& options,
                    const std::string& model, uint64_t seed, const std::map<std::string, Tensor>& input_defaults) {
  SavedPlan plan;
  plan.origin = plan_origin(options, model);
  plan.origin.tune = options.tune || optimized.report.tuned;
  plan.probe.seed = seed;
  plan.input_defaults = input_defaults;
  const std::vector<Datum> inputs = probe_inputs(optimized.graph, seed, input_defaults);
  plan.kernel_times = executable.kernel_times();
  plan.probe.outputs = executable.run(inputs);  // of the first run, before which states are what the graph says
  executable.run(inputs);                       // times are those of a warm run
  if (executable.graph().num_nodes() == optimized.graph.num_nodes()) {
    plan.node_us = node_times_us(executable.graph(), executable.profile());
  }
  if (!std::all_of(plan.probe.outputs.begin(), plan.probe.outputs.end(), is_plain_tensor)) plan.probe.outputs.clear();
  plan.optimized = std::move(optimized);
  return plan;
}

Executable compile(const SavedPlan& plan, CompileOptions options) {
  // Loading is no time to search: plans are run only where that had been worth it, or where tuning is asked for.
  options.expert.tune_in_network = options.expert.tune_in_network && (options.tune || has_network(plan.kernel_times));
  options.tune = options.tune || plan.origin.tune;
  // Tuning goes on from what the plan has.
  const bool times_hold = options.tune && plan_origin(options, "").identity == plan.origin.identity;
  if (times_hold) options.expert.kernel_times = std::make_shared<const KernelTimes>(plan.kernel_times);
  return compile(plan.optimized, options);
}

std::vector<std::string> differences(const PlanOrigin& saved, const PlanOrigin& here) {
  std::vector<std::string> list;
  const auto compare = [&](const char* what, const std::string& was, const std::string& is) {
    if (was != is) list.push_back(fmt::format("{} was {}, is {}", what, was, is));
  };
  compare("device", saved.device, here.device);
  compare("machine", saved.identity, here.identity);
  compare("threads", std::to_string(saved.threads), std::to_string(here.threads));
  compare("version", saved.version, here.version);
  return list;
}

Revalidated revalidate(const SavedPlan& plan, const CompileOptions& options, Revalidation how,
                       const Tolerance& tolerance) {
  if (plan.optimized.graph.states().empty()) return try_plan(plan, options, how, tolerance);
  CompileOptions trial = options;
  trial.states.reset();
  Revalidated result = try_plan(plan, trial, how, tolerance);  // leaves other states behind
  result.executable = result.kept_schedule ? compile(plan, options) : compile(without_schedule(plan), options);
  return result;
}

}  // namespace autograph
