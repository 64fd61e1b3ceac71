// The whole way from a graph to something that runs, on one page: compile() checks, build() walks. Nothing here
// searches.
#include "autograph/compile.h"

#include <chrono>

#include "autograph/devices.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "cost/measured_cost.h"
#include "engine/check/attestation.h"
#include "engine/executable.h"
#include "engine/nested/nested_kernel.h"
#include "engine/thread_scope.h"
#include "engine/tune_in_network.h"

namespace autograph {

Executable compile(Graph graph, const CompileOptions& options) {
  AG_CHECK_USER(options.threads >= 0, ValueError, "[compile] threads: expected 0 or more, got {}", options.threads);
  get_device(options.device, options.precision);
  verify(graph);
  if (options.expert.schedule) {
    const std::string fault = find_fault(*options.expert.schedule, graph);
    AG_CHECK_USER(fault.empty(), ValueError, "[compile] schedule: {}", fault);
  }
  return Executable(std::make_unique<Executable::Impl>(std::move(graph), options, Nesting::none));
}

// The whole way from a graph to what runs it: passes, types, nested graphs, then schedule, kernels and memory.
std::shared_ptr<PlanEntry> Executable::Impl::build(Graph graph, const std::vector<Type>& types,
                                                   std::vector<StateContents> contents) const {
  CompileReport report;
  if (!options_.expert.schedule) {
    graph = prepare_graph(std::move(graph), device_, options_, PassHalf::both, &report.passes, nullptr, &flushed_);
  }
  const KnownValues known = infer_types(graph);
  auto nested_graphs = compile_nested(graph);
  const auto typed = std::make_shared<Graph>(std::move(graph));
  // Of a graph whose extents may change other plans are made, and looking for NaNs reads weights, too.
  const bool release = options_.release_weights && options_.check_nan == NanCheck::off && !graph_;
  const auto start = std::chrono::steady_clock::now();
  auto plan = make_plan(typed, known, release ? typed.get() : nullptr, std::move(contents));
  report.plan_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return std::make_shared<PlanEntry>(std::move(plan), types, std::move(nested_graphs), shared_.arenas,
                                     std::move(report));
}

std::shared_ptr<const CompiledPlan> Executable::Impl::make_plan(const std::shared_ptr<const Graph>& graph,
                                                                const KnownValues& known, Graph* release_from,
                                                                std::vector<StateContents> contents) const {
  const ThreadScope threads(device_, threads_);
  PlanOptions options{device_.catalog(),      threads_,    options_.memory_budget_bytes, options_.exact,
                      device_.host_threads(), release_from};
  options.memory = device_.memory();
  options.keeps_inputs = options_.check_nan != NanCheck::off;
  if (is_nested()) {
    options.states = std::move(contents);
  } else if (!device_.memory()) {
    options.states = known_states(*graph);
  }
  options.schedule = options_.expert.schedule.get();
  if (!is_nested()) options.donations = options_.donations;
  options.judge = run_options_.judge;
  options.nested = [this](const KernelCall& call) {
    return make_nested_kernel(call, device_, [this](const GraphRef& nested) { return nested_of(nested); });
  };
  if (!release_from) options.packed = shared_.packed.get();
  // Before the first plan has run there are no threads yet.
  if (has_plans()) {
    options.team = [&threads = device_.host_threads()](int count, int threads_of_each, FunctionRef<void(int)> work) {
      return threads.run_streams(count, threads_of_each, work);
    };
  }
  if (!options_.tune || !device_.properties().can_time_kernels) return compile_plan(graph, known, options);
  MeasurementCache cache(cache_folder_of(options_));
  OnMeasure on_measure;
  if (options_.on_tune) {
    on_measure = [this](size_t step, size_t num_steps, size_t measured) {
      options_.on_tune({step, num_steps, measured, false});
    };
  }
  const auto may_measure = [this] {
    return !options_.expert.may_try || options_.expert.may_try(KernelTrial::measure, "");
  };
  MeasuredCost cost(device_, cache, on_measure, may_measure);
  if (options_.expert.kernel_times) cost.know(*options_.expert.kernel_times);
  std::shared_ptr<const CompiledPlan> plan;
  // A plan file's choice stands; what a search had no time to finish is tuned again when there is some.
  const bool is_given = options_.expert.kernel_times && has_network(*options_.expert.kernel_times);
  const bool may_run = options_.expert.tune_in_network && !is_nested() && may_measure();
  InNetworkCost in_network(cost, is_nested() ? "" : network_key(*graph, options_, threads_), may_run && !is_given);
  // What this very network was tuned to before holds, whether or not plans may be run now.
  if (may_run || in_network.is_kept()) {
    plan = tune_in_network(device_, graph, known, options, run_options_, in_network, options_);
  } else {
    options.cost = &cost;
    plan = compile_plan(graph, known, options);
  }
  const std::lock_guard lock(mutex_);
  kernel_times_ = cost.used();
  return plan;
}

}  // namespace autograph
