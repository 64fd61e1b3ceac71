#include "cost/in_network_cost.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/op_def.h"
#include "base/median.h"

namespace autograph {
namespace {

// What is added to candidates that were not kept: more than all reorders that another choice could save.
constexpr double kNotKeptUs = kLastResortUs / 1e2;
// So many observations of an op say how its kernels fare in this network.
constexpr size_t kEnoughObservations = 3;

std::string name_of(const KernelCandidate& candidate) {
  std::string name = candidate.name();
  for (const Layout layout : candidate.variant.inputs) name += fmt::format(" {}", static_cast<int>(layout));
  return name;
}

}  // namespace

InNetworkCost::InNetworkCost(MeasuredCost& alone, std::string network, bool goes_on)
    : alone_(alone), network_(std::move(network)) {
  const auto was_cut = [&] { return alone_.find(key_of_cut()).value_or(0) > 0; };
  is_kept_ = alone_.find(network_).has_value() && !(goes_on && was_cut());
}

void InNetworkCost::begin_step(size_t step, size_t num_steps) {
  step_ = step;
  alone_.begin_step(step, num_steps);
}

std::string InNetworkCost::key_of(size_t step, const KernelCandidate& candidate) const {
  return fmt::format("{} step {} | {}", network_, step, name_of(candidate));
}

std::vector<double> InNetworkCost::candidates_us(const KernelCatalog& catalog, const KernelCall& call,
                                                 std::span<const KernelCandidate> candidates) {
  std::vector<double> costs;
  if (is_kept_) {
    for (const KernelCandidate& candidate : candidates) {
      const auto kept_us = alone_.find(key_of(step_, candidate));
      costs.push_back(kept_us ? *kept_us : kNotKeptUs + candidate.variant.cost_us);
    }
    return costs;
  }
  costs = alone_.candidates_us(catalog, call, candidates);
  StepCosts& step = steps_[step_];
  step.op = call.op.name;
  for (size_t i = 0; i < candidates.size(); ++i) step.alone_us[name_of(candidates[i])] = costs[i];
  const double factor = in_network_over_alone(step.op);
  for (size_t i = 0; i < candidates.size(); ++i) {
    const auto observed = step.observed_us.find(name_of(candidates[i]));
    costs[i] = observed != step.observed_us.end() ? observed->second.value() : costs[i] * factor;
  }
  return costs;
}

double InNetworkCost::reorder_us(const KernelCatalog& catalog, const ReorderCall& call) {
  return is_kept_ ? KernelCost::reorder_us(catalog, call) : alone_.reorder_us(catalog, call);
}

void InNetworkCost::observe(size_t step, const KernelCandidate& candidate, double us) {
  const auto found = steps_.find(step);
  if (found == steps_.end() || !found->second.alone_us.contains(name_of(candidate))) return;
  over_alone_.clear();
  Mean& mean = found->second.observed_us[name_of(candidate)];
  mean.sum += us;
  ++mean.count;
}

// How much longer kernels of an op take in the network than alone: what has not run there is expected to do alike.
double InNetworkCost::in_network_over_alone(const std::string& op) {
  // All steps are looked through: once for an op, not once for each step.
  const auto [known, is_new] = over_alone_.try_emplace(op);
  if (is_new) known->second = compute_in_network_over_alone(op);
  return known->second;
}

double InNetworkCost::compute_in_network_over_alone(const std::string& op) const {
  std::vector<double> of_op;
  std::vector<double> of_all;
  for (const auto& [number, step] : steps_) {
    for (const auto& [name, us] : step.observed_us) {
      const double alone_us = step.alone_us.at(name);
      if (alone_us <= 0 || alone_us >= kLastResortUs) continue;
      of_all.push_back(us.value() / alone_us);
      if (step.op == op) of_op.push_back(of_all.back());
    }
  }
  const std::vector<double>& ratios = of_op.size() >= kEnoughObservations ? of_op : of_all;
  return ratios.empty() ? 1 : median(ratios);
}

void InNetworkCost::keep(const std::vector<KernelCandidate>& candidates, double whole_us, bool is_cut) {
  for (size_t n = 0; n < candidates.size(); ++n) {
    const auto step = steps_.find(n);
    if (step == steps_.end() || !candidates[n].kernel) continue;
    const auto observed = step->second.observed_us.find(name_of(candidates[n]));
    if (observed != step->second.observed_us.end()) alone_.keep(key_of(n, candidates[n]), observed->second.value());
  }
  alone_.keep(network_, whole_us);
  alone_.keep(key_of_cut(), is_cut ? 1 : 0);
  is_kept_ = true;
}

}  // namespace autograph
