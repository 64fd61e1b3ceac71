#include "runtime/choose_kernels.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/parallel_for.h"
#include "runtime/step_error.h"
#include "schedule/choice_problem.h"

namespace autograph {
namespace {

// Fewer steps than this are not worth a thread.
constexpr size_t kStepsPerThread = 8;
constexpr uint32_t kNoStep = std::numeric_limits<uint32_t>::max();

// What reorders of one tensor cost, between options most of which have few layouts among them.
class KnownReorders {
 public:
  // Less than 0 where it is not known yet.
  double& of(SlotIndex slot, int threads, Layout from, Layout to) {
    if (slot != slot_ || threads != threads_) {
      slot_ = slot;
      threads_ = threads;
      for (auto& row : us_) row.fill(-1);
    }
    return us_[static_cast<size_t>(from)][static_cast<size_t>(to)];
  }

 private:
  static constexpr size_t kLayouts = static_cast<size_t>(Layout::blocked16) + 1;
  SlotIndex slot_ = kNoSlot;
  int threads_ = 0;
  std::array<std::array<double, kLayouts>, kLayouts> us_{};
};

class KernelChooser {
 public:
  KernelChooser(const Plan& plan, const Graph& graph, const ChooseOptions& options)
      : plan_(plan),
        graph_(graph),
        options_(options),
        writer_(plan.slots.size(), kNoStep),
        num_uses_(count_uses(plan)),
        is_bound_(plan.slots.size(), false) {
    for (const Tensor& weight : plan.weights) constant_bytes_ += weight.size_bytes();
    for (const StateContents& state : options.states) constant_bytes_ += state.tensor.size_bytes();
  }

  std::vector<StepChoice> run(std::vector<StepLayouts>& layouts) {
    ask_all();
    find_writers();
    for (uint32_t n = 0; n < plan_.steps.size(); ++n) add_pairs(n);
    const std::vector<size_t> choice = problem_.solve();
    layouts.assign(plan_.steps.size(), {});
    std::vector<StepChoice> result;
    for (size_t n = 0; n < plan_.steps.size(); ++n) result.push_back(take(n, choice[n], layouts[n]));
    return result;
  }

 private:
  // The candidates for a step become the options of a variable. Steps that are not fixed have one, row-major.
  void ask_all() {
    const size_t count = plan_.steps.size();
    candidates_.resize(count);
    costs_.resize(count);
    const int wanted = std::min(options_.threads, 1 + static_cast<int>(count / kStepsPerThread));
    parallel_for(
        count, options_.cost.is_concurrent() ? wanted : 1,
        [&](size_t n) {
          options_.host_threads.set(options_.threads_of(plan_.steps[n]));
          options_.cost.begin_step(n, count);
          ask(n);
        },
        options_.team);
    for (const auto& costs : costs_) problem_.add_variable(costs);
  }

  void ask(size_t n) {
    const Step& step = plan_.steps[n];
    // Nested graphs bring their kernel along.
    if (step.kind == StepKind::fixed && !graph_.node(step.node).op().evaluate) {
      const Node& node = graph_.node(step.node);
      const StepCall types(plan_, step, options_.states);
      const KernelCall call{.op = node.op(),
                            .attributes = node.attributes(),
                            .inputs = types.inputs,
                            .outputs = types.outputs,
                            .constants = types.constants,
                            .threads = options_.threads_of(step),
                            .exact = options_.exact,
                            .plan_constant_bytes = constant_bytes_};
      try {
        candidates_[n] = options_.catalog.candidates(call);
        if (options_.judge) options_.judge->drop_wrong(call, candidates_[n]);
        costs_[n] = candidate_costs(call, candidates_[n].candidates);
      } catch (...) {
        rethrow_with_place(describe(graph_, step.node));
      }
    }
    if (costs_[n].empty()) costs_[n].push_back(0);
  }

  // Those that stand by keep their price; the others are asked about when there are several.
  std::vector<double> candidate_costs(const KernelCall& call, const std::vector<KernelCandidate>& candidates) {
    std::vector<double> costs;
    std::vector<KernelCandidate> asked_about;
    std::vector<size_t> numbers;
    for (size_t i = 0; i < candidates.size(); ++i) {
      costs.push_back(candidates[i].variant.cost_us);
      if (costs[i] >= kLastResortUs) continue;
      asked_about.push_back(candidates[i]);
      numbers.push_back(i);
    }
    if (asked_about.size() < 2) return costs;
    const std::vector<double> asked = options_.cost.candidates_us(options_.catalog, call, asked_about);
    for (size_t k = 0; k < numbers.size(); ++k) costs[numbers[k]] = asked[k];
    return costs;
  }

  // Slots that are viewed under other dims, or leave the run, must come out row-major.
  void find_writers() {
    for (uint32_t n = 0; n < plan_.steps.size(); ++n) {
      for (const SlotIndex s : plan_.steps[n].outputs) writer_[s] = n;
    }
    for (SlotIndex s = 0; s < plan_.slots.size(); ++s) {
      if (plan_.slots[s].root != s) bind(plan_.slots[s].root);
    }
    for (const PlanOutput& output : plan_.outputs) bind(plan_.slots[output.slot].root);
  }

  void bind(SlotIndex s) {
    if (is_bound_[s] || writer_[s] == kNoStep || plan_.steps[writer_[s]].kind != StepKind::fixed) return;
    is_bound_[s] = true;
    const uint32_t writer = writer_[s];
    const size_t slot = output_number(writer, s);
    const size_t sink = problem_.add_variable({0.0});
    std::vector<double> costs;
    for (size_t i = 0; i < problem_.num_options(writer); ++i) {
      costs.push_back(reorder_us(writer, s, output_layout(writer, i, slot), Layout::row_major));
    }
    problem_.add_pair(writer, sink, costs);
  }

  size_t output_number(uint32_t step, SlotIndex s) const {
    const auto& outputs = plan_.steps[step].outputs;
    return static_cast<size_t>(std::find(outputs.begin(), outputs.end(), s) - outputs.begin());
  }

  Layout output_layout(uint32_t step, size_t option, size_t slot) const {
    const auto& candidates = candidates_[step].candidates;
    return option < candidates.size() ? candidates[option].variant.output(slot) : Layout::row_major;
  }

  Layout input_layout(uint32_t step, size_t option, size_t slot) const {
    const auto& candidates = candidates_[step].candidates;
    return option < candidates.size() ? candidates[option].variant.input(slot) : Layout::row_major;
  }

  // In the stream of step `n`.
  double reorder_us(uint32_t n, SlotIndex s, Layout from, Layout to) {
    const Type& type = plan_.slots[s].type;
    if (from == to || is_same_order(from, to, type.shape().static_dims())) return 0;
    const int threads = options_.threads_of(plan_.steps[n]);
    double& us = reorders_.of(s, threads, from, to);
    if (us < 0) {
      options_.host_threads.set(threads);
      us = options_.cost.reorder_us(options_.catalog, {type, from, to, threads});
    }
    return us;
  }

  // What it costs to bring the inputs of a step into the layouts that its options want.
  void add_pairs(uint32_t n) {
    const Step& step = plan_.steps[n];
    if (step.kind != StepKind::fixed) return;
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      const SlotIndex s = step.inputs[k];
      if (s == kNoSlot) continue;
      const uint32_t writer = writer_[s];
      if (writer == kNoStep) {
        add_source(n, k, s);
      } else if (plan_.steps[writer].kind == StepKind::fixed) {
        add_pair(writer, n, k, s);
      }
    }
  }

  // Inputs, weights and views are row-major.
  void add_source(uint32_t n, size_t k, SlotIndex s) {
    std::vector<double> costs;
    for (size_t j = 0; j < problem_.num_options(n); ++j) {
      costs.push_back(reorder_us(n, s, Layout::row_major, input_layout(n, j, k)));
    }
    if (std::all_of(costs.begin(), costs.end(), [](double c) { return c == 0; })) return;
    problem_.add_pair(n, problem_.add_variable({0.0}), costs);
  }

  void add_pair(uint32_t writer, uint32_t n, size_t k, SlotIndex s) {
    const size_t slot = output_number(writer, s);
    std::vector<double> costs;
    bool any = false;
    for (size_t i = 0; i < problem_.num_options(writer); ++i) {
      for (size_t j = 0; j < problem_.num_options(n); ++j) {
        costs.push_back(reorder_us(n, s, output_layout(writer, i, slot), input_layout(n, j, k)) -
                        joined_us(writer, i, n, j, s));
        any = any || costs.back() != 0;
      }
    }
    if (any) problem_.add_pair(writer, n, costs);
  }

  // What is saved where option `i` of the writer puts its output into that of option `j` of step `n` (place_parts).
  double joined_us(uint32_t writer, size_t i, uint32_t n, size_t j, SlotIndex s) const {
    constexpr double kBytesPerUsAndThread = 12e3;  // as the kernel of concat has it
    if (i >= candidates_[writer].candidates.size() || j >= candidates_[n].candidates.size()) return 0;
    const KernelVariant& from = candidates_[writer].candidates[i].variant;
    const KernelVariant& to = candidates_[n].candidates[j].variant;
    if (from.output(0) != to.output(0)) return 0;
    if (!to.joins_parts && !(to.joins_rows && from.spaces_rows && num_uses_[s] == 1)) return 0;
    return static_cast<double>(plan_.slots[s].bytes) / (kBytesPerUsAndThread * options_.threads_of(plan_.steps[n]));
  }

  // The chosen candidate, and behind it those that could stand in without changing a layout.
  StepChoice take(size_t n, size_t chosen, StepLayouts& layouts) {
    StepChoice choice;
    choice.refusals = std::move(candidates_[n].refusals);
    const std::vector<KernelCandidate>& candidates = candidates_[n].candidates;
    if (candidates.empty()) return choice;
    layouts.inputs = candidates[chosen].variant.inputs;
    layouts.outputs = candidates[chosen].variant.outputs;
    std::vector<size_t> order;
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (i != chosen && has_layouts(plan_.steps[n], candidates[i].variant, layouts)) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return costs_[n][a] < costs_[n][b]; });
    choice.us = costs_[n][chosen];
    choice.least_us = *std::min_element(costs_[n].begin(), costs_[n].end());
    choice.candidates.push_back(candidates[chosen]);
    for (const size_t i : order) choice.candidates.push_back(candidates[i]);
    return choice;
  }

  static bool has_layouts(const Step& step, const KernelVariant& variant, const StepLayouts& layouts) {
    const KernelVariant wanted{.name = "", .inputs = layouts.inputs, .outputs = layouts.outputs};
    for (size_t k = 0; k < step.inputs.size(); ++k) {
      if (variant.input(k) != wanted.input(k)) return false;
    }
    for (size_t k = 0; k < step.outputs.size(); ++k) {
      if (variant.output(k) != wanted.output(k)) return false;
    }
    return true;
  }

  const Plan& plan_;
  const Graph& graph_;
  const ChooseOptions& options_;
  ChoiceProblem problem_;  // variable n is step n; sources and sinks follow
  std::vector<KernelCandidates> candidates_;
  std::vector<std::vector<double>> costs_;
  std::vector<uint32_t> writer_;  // by slot: the step that writes it
  std::vector<int> num_uses_;     // by slot
  std::vector<bool> is_bound_;    // by slot: it must come out row-major
  KnownReorders reorders_;
  size_t constant_bytes_ = 0;  // of the plan
};

}  // namespace

StepCall::StepCall(const Plan& plan, const Step& step, std::span<const StateContents> states)
    : constants(step.inputs.size()) {
  for (const SlotIndex s : step.inputs) inputs.push_back(s == kNoSlot ? Type() : plan.slots[s].type);
  for (const SlotIndex s : step.outputs) outputs.push_back(s == kNoSlot ? Type() : plan.slots[s].type);
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (const StateContents* state = known_state(plan, step.inputs[i], states)) {
      constants[i] = state->tensor.reshaped(inputs[i].shape().static_dims());
    }
    if (step.inputs[i] == kNoSlot || plan.slots[step.inputs[i]].place != Place::weight) continue;
    const Tensor& weight = plan.weights[plan.slots[step.inputs[i]].index];
    constants[i] = inputs[i].is_static() ? weight.reshaped(inputs[i].shape().static_dims()) : weight;
  }
}

std::vector<StepChoice> choose_kernels(const Plan& plan, const Graph& graph, const ChooseOptions& options,
                                       std::vector<StepLayouts>& layouts) {
  return KernelChooser(plan, graph, options).run(layouts);
}

}  // namespace autograph
