#include "engine/tune_in_network.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/seeded_inputs.h"
#include "base/hash.h"
#include "base/stopwatch.h"
#include "graph/attribute_hash.h"
#include "runtime/threads/core_gate.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// Plans that are compiled and run, at most; the choice is rarely new after that.
constexpr size_t kMaxPlans = 8;
// Two plans run in turns. The first run of a turn finds the caches as the other plan left them.
constexpr int kMinRounds = 5;
constexpr int kMaxRounds = 9;
constexpr int kMinRunsOfTurn = 2;
constexpr double kTurnUs = 4e4;
constexpr double kEnoughUs = 1.5e6;
// No other plan is tried after that.
constexpr double kMaxUs = 30e6;

// Of the names of networks among measurements.
constexpr const char* kPrefix = "network ";

// A plan that is run to see what its steps take.
class Candidate {
 public:
  Candidate(const Device& device, std::shared_ptr<const CompiledPlan> compiled, const std::vector<Datum>& inputs)
      : compiled_(std::move(compiled)), launchable_(device.record(compiled_)) {
    for (size_t i = 0; i < inputs.size(); ++i) launchable_->bind_input(i, inputs[i]);
    for (size_t k = 0; k < compiled_->plan.outputs.size(); ++k) {
      const SlotIndex slot = compiled_->plan.outputs[k].slot;
      outputs_.push_back(
          Tensor::empty(compiled_->plan.slots[slot].type.dtype(), compiled_->slot_dims[slot], device.memory()));
      launchable_->bind_output(k, outputs_.back());
    }
  }

  const std::shared_ptr<const CompiledPlan>& compiled() const { return compiled_; }

  // Runs for a while. What a step took is its least time: that is what others on the machine disturb least.
  void take_turn(const RunOptions& options) {
    const CoreGate::Pass pass(CoreGate::of_process(), compiled_->num_threads);
    const Stopwatch turn;
    for (int run = 0; run < kMinRunsOfTurn || turn.us() < kTurnUs; ++run) {
      least_us_ = std::min(least_us_, launchable_->time_us(options, nullptr));
      const std::vector<StepProfile>& profile = launchable_->profile();
      for (size_t i = 0; i < profile.size(); ++i) step_us_[i] = std::min(step_us_[i], profile[i].duration_us);
    }
  }

  void forget_times() {
    least_us_ = std::numeric_limits<double>::max();
    step_us_.assign(compiled_->plan.steps.size(), std::numeric_limits<double>::max());
  }

  // A moment in which nothing disturbs any step is rare, one for each step is not. Where steps run at the same time,
  // their sum says nothing.
  double whole_us() const {
    if (!compiled_->plan.stages.empty()) return least_us_;
    return std::accumulate(step_us_.begin(), step_us_.end(), 0.0);
  }

  // Tells what the steps took, each time multiplied by `scale`.
  void report(InNetworkCost& cost, double scale) const {
    size_t number = 0;  // of steps that are not reorders
    for (size_t i = 0; i < step_us_.size(); ++i) {
      if (compiled_->plan.steps[i].is_reorder()) continue;
      if (compiled_->candidates[i].kernel) cost.observe(number, compiled_->candidates[i], scale * step_us_[i]);
      ++number;
    }
  }

  // By step, reorders not counted.
  std::vector<KernelCandidate> candidates() const {
    std::vector<KernelCandidate> candidates;
    for (size_t i = 0; i < compiled_->candidates.size(); ++i) {
      if (!compiled_->plan.steps[i].is_reorder()) candidates.push_back(compiled_->candidates[i]);
    }
    return candidates;
  }

  // Equal for plans with equal steps.
  std::string signature() const {
    std::string text;
    for (const Step& step : compiled_->plan.steps) text += step.kernel + ";";
    return text;
  }

 private:
  std::shared_ptr<const CompiledPlan> compiled_;
  std::shared_ptr<Launchable> launchable_;
  std::vector<Tensor> outputs_;
  double least_us_ = 0;          // of a whole run
  std::vector<double> step_us_;  // by step
};

void run_in_turns(Candidate& a, Candidate& b, const RunOptions& options) {
  a.forget_times();
  b.forget_times();
  const Stopwatch watch;
  for (int round = 0; round < kMaxRounds && (round < kMinRounds || watch.us() < kEnoughUs); ++round) {
    a.take_turn(options);
    b.take_turn(options);
  }
}

// Can a plan be run here, and would its steps tell what they took?
bool can_run(const CompiledPlan& compiled) {
  const Graph& graph = *compiled.graph;
  const std::vector<ValueId> roots = graph.roots();
  const auto has_plain_type = [&](ValueId v) { return graph.type(v).is_tensor() && is_plain(graph.type(v)); };
  return !compiled.has_dynamic_steps && std::all_of(graph.inputs().begin(), graph.inputs().end(), has_plain_type) &&
         std::all_of(graph.states().begin(), graph.states().end(), has_plain_type) &&
         std::all_of(roots.begin(), roots.end(), has_plain_type);
}

class Tuner {
 public:
  Tuner(const Device& device, const std::shared_ptr<const Graph>& graph, const KnownValues& known,
        const PlanOptions& plan_options, const RunOptions& run_options, InNetworkCost& cost,
        const CompileOptions& options)
      : device_(device),
        graph_(graph),
        known_(known),
        plan_options_(plan_options),
        run_options_(run_options),
        cost_(cost),
        options_(options) {
    plan_options_.release_from = nullptr;
    run_options_.profile = true;
    run_options_.check_nan = false;
    run_options_.watch = nullptr;  // times are those of all threads
  }

  std::shared_ptr<const CompiledPlan> run() {
    std::shared_ptr<const CompiledPlan> alone = compile_with(&cost_);
    if (!can_run(*alone)) return alone;
    try {
      inputs_ = seeded_inputs(*graph_);
      for (const ValueId state : graph_->states()) inputs_.emplace_back(graph_->value(state).initial());
      // Where the device reads them: copies do not count.
      for (Datum& input : inputs_) input = input.tensor().to(device_.memory());
      best_ = std::make_unique<Candidate>(device_, alone, inputs_);
      seen_.insert(best_->signature());
      const Stopwatch watch;
      try_candidate(compile_with(nullptr));
      while (seen_.size() < kMaxPlans && watch.us() < kMaxUs && may_go_on()) {
        if (!try_candidate(compile_with(&cost_))) break;
      }
    } catch (const Error&) {
      return alone;  // inputs out of a hat are none for this graph
    }
    if (seen_.size() > 1) cost_.keep(best_->candidates(), best_us_, !may_go_on());
    return best_->compiled();
  }

 private:
  std::shared_ptr<const CompiledPlan> compile_with(KernelCost* cost) {
    plan_options_.cost = cost;
    return compile_plan(graph_, known_, plan_options_);
  }

  bool may_go_on() const { return !options_.expert.may_try || options_.expert.may_try(KernelTrial::measure, ""); }

  // Takes the plan when it is faster; false when it is not new.
  bool try_candidate(std::shared_ptr<const CompiledPlan> compiled) {
    auto candidate = std::make_unique<Candidate>(device_, std::move(compiled), inputs_);
    const size_t num_run = seen_.size();
    if (!seen_.insert(candidate->signature()).second) return false;
    if (options_.on_tune) options_.on_tune({num_run, kMaxPlans, num_run, true});
    run_in_turns(*best_, *candidate, run_options_);
    // The machine may be slower now than when others ran: all times are told as if the best plan took what it did at
    // first.
    if (num_run == 1) best_us_ = best_->whole_us();
    const double scale = best_us_ / best_->whole_us();
    best_->report(cost_, scale);
    candidate->report(cost_, scale);
    if (candidate->whole_us() >= best_->whole_us()) return true;
    best_us_ = scale * candidate->whole_us();
    best_ = std::move(candidate);
    return true;
  }

  const Device& device_;
  const std::shared_ptr<const Graph>& graph_;
  const KnownValues& known_;
  PlanOptions plan_options_;
  RunOptions run_options_;
  InNetworkCost& cost_;
  const CompileOptions& options_;
  std::vector<Datum> inputs_;
  std::set<std::string> seen_;  // signatures of the plans that have been run
  std::unique_ptr<Candidate> best_;
  double best_us_ = 0;
};

}  // namespace

std::string network_key(const Graph& graph, const CompileOptions& options, int threads) {
  Hasher hasher;
  std::vector<int64_t> number(graph.value_capacity(), -1);
  int64_t count = 0;
  const auto add_new = [&](ValueId v) {
    number[v.index] = count++;
    hasher.add(to_string(graph.type(v)));
  };
  for (const ValueId v : graph.inputs()) add_new(v);
  for (const ValueId v : graph.constants()) add_new(v);
  for (const ValueId v : graph.states()) add_new(v);
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    hasher.add(node.op().name);
    add_attributes(hasher, node.attributes());
    for (const ValueId v : node.inputs()) hasher.add(v.is_valid() ? number[v.index] : int64_t{-1});
    for (const ValueId v : node.outputs()) add_new(v);
  }
  for (const ValueId v : graph.roots()) hasher.add(number[v.index]);
  if (options.expert.schedule && !options.expert.schedule->is_sequential())
    hasher.add(to_string(*options.expert.schedule, graph));
  return fmt::format("{}{} t{} {}{}", kPrefix, to_string(hasher.finish()), threads, to_string(options.precision),
                     options.exact ? " exact" : "");
}

bool has_network(const KernelTimes& times) {
  const auto first = times.lower_bound(kPrefix);
  return first != times.end() && first->first.starts_with(kPrefix);
}

std::shared_ptr<const CompiledPlan> tune_in_network(const Device& device, const std::shared_ptr<const Graph>& graph,
                                                    const KnownValues& known, PlanOptions plan_options,
                                                    RunOptions run_options, InNetworkCost& cost,
                                                    const CompileOptions& options) {
  std::shared_ptr<const CompiledPlan> best;
  if (!cost.is_kept()) best = Tuner(device, graph, known, plan_options, run_options, cost, options).run();
  if (best && !plan_options.release_from) return best;
  best.reset();  // its packed weights, before they are packed again
  plan_options.cost = &cost;
  return compile_plan(graph, known, plan_options);
}

}  // namespace autograph
