// The ledger of one node: finding the node by what the user calls it, and telling, from what was tried and what ran on
// the device, what became of every rewrite there.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "engine/prepare_graph.h"
#include "engine/strategies/strategy.h"

namespace autograph {
namespace {

constexpr size_t kNamesOfHint = 3;

// Names that passes have joined: "a + b".
std::vector<std::string> split_origins(const std::string& name) {
  constexpr std::string_view kJoint = " + ";
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = name.find(kJoint); end != std::string::npos; end = name.find(kJoint, begin)) {
    parts.push_back(name.substr(begin, end - begin));
    begin = end + kJoint.size();
  }
  parts.push_back(name.substr(begin));
  return parts;
}

// The nearest name; where none is near, those that share its last part, or else the first: some that there are.
std::string name_hint(const std::string& name, const std::vector<std::string>& known) {
  const std::string near = did_you_mean(name, known);
  if (!near.empty() || known.empty()) return near;
  const std::string last = name.substr(name.rfind('/') + 1);
  std::vector<std::string> some;
  for (const bool must_share : {true, false}) {
    for (const std::string& one : known) {
      const bool is_fit = !one.empty() && (!must_share || one.find(last) != std::string::npos);
      if (is_fit && some.size() < kNamesOfHint) some.push_back(one);
    }
    if (!some.empty()) break;
  }
  return fmt::format(" (of {}, it has such as {})", known.size(), printable(bracketed(some)));
}

// The origins of the node that `name` stands for: the node's own name, or that of one of its outputs.
std::vector<std::string> origins_named(const Graph& graph, const std::string& name) {
  std::set<std::string> known;
  std::vector<std::string> found;
  const std::vector<std::string> asked = split_origins(name);
  const auto is_asked = [&](const std::string& candidate) {
    return std::find(asked.begin(), asked.end(), candidate) != asked.end();
  };
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    bool is_meant = false;
    for (const ValueId v : node.outputs()) {
      known.insert(graph.value(v).name());
      is_meant = is_meant || (!graph.value(v).name().empty() && graph.value(v).name() == name);
    }
    for (const std::string& origin : node.provenance().origins()) {
      known.insert(origin);
      if (is_meant || is_asked(origin)) found.push_back(origin);
    }
  }
  AG_CHECK_USER(!found.empty(), ValueError, "[search] node: the model has no node '{}'{}", name,
                name_hint(name, {known.begin(), known.end()}));
  return found;
}

LedgerEntry entry_of(const RewriteStep& step, RewriteFate fate) {
  LedgerEntry entry;
  entry.rule = step.rule->name;
  entry.nodes = step.origins;
  entry.fate = fate;
  entry.predicted_us = step.gain_us;
  return entry;
}

bool is_same(const LedgerEntry& entry, std::string_view rule, const std::vector<std::string>& nodes) {
  return entry.rule == rule && entry.nodes == nodes;
}

void measure(LedgerEntry& entry, const StrategyContext::TrialOutcome& outcome) {
  if (outcome.fate == RewriteFate::not_verified) return;
  entry.measured_us = outcome.gain_us;
  entry.shared_by = outcome.fresh;
}

// Of two trials with the same rewrite the one that took less time tells more.
void take_trial(LedgerEntry& entry, const StrategyContext::TrialOutcome& outcome) {
  if (entry.fate == RewriteFate::not_verified) entry.fate = outcome.fate;
  if (outcome.fate == RewriteFate::not_verified || (entry.measured_us && *entry.measured_us >= outcome.gain_us)) return;
  measure(entry, outcome);
}

// Notes the first pass behind which no node stands for the one that was asked about.
class RemovalWatch {
 public:
  RemovalWatch(const Ledger& ledger, std::string& removed_by) : ledger_(ledger), removed_by_(removed_by) {}

  void operator()(const PassDef& pass, const Graph& graph) const {
    if (removed_by_.empty() && !ledger_.concerns(graph, graph.nodes())) {
      removed_by_ = fmt::format("pass {} ({})", pass.name, pass.doc);
    }
  }

 private:
  const Ledger& ledger_;
  std::string& removed_by_;
};

}  // namespace

std::string_view to_string(RewriteFate fate) {
  switch (fate) {
    case RewriteFate::kept: return "kept";
    case RewriteFate::lost_trial: return "lost trial";
    case RewriteFate::not_verified: return "not verified";
    case RewriteFate::not_chosen: return "not chosen";
    case RewriteFate::behind_limit: return "behind the limit";
  }
  return "?";
}

void require_node(const Graph& graph, const std::string& name) { origins_named(graph, name); }

void StrategyContext::open_ledger(const Graph& graph) {
  if (!search_.why.empty()) ledger_.emplace(origins_named(graph, search_.why));
}

void StrategyContext::note_trial(const std::vector<RewriteStep>& steps, const TrialOutcome& outcome) {
  if (!ledger_) return;
  std::vector<RewriteStep> concerned;
  for (const RewriteStep& step : steps) {
    if (ledger_->concerns(step.origins)) concerned.push_back(step);
  }
  if (!concerned.empty()) tried_.emplace_back(std::move(concerned), outcome);
}

Graph StrategyContext::simplify(Graph graph) {
  std::function<void(const PassDef&, const Graph&)> watch;
  if (ledger_) watch = RemovalWatch(*ledger_, removed_by_);
  const double begin = seconds();
  Graph simplified = prepare_graph(std::move(graph), device_, compile_, PassHalf::simplify, nullptr, watch);
  simplify_seconds_ = seconds() - begin;
  return simplified;
}

std::string StrategyContext::removed_by(const Proposal& found) const {
  std::string by = removed_by_;
  if (!by.empty()) return by;
  if (ledger_->concerns(found.simplified, found.simplified.nodes())) {
    prepare_graph(found.simplified, device_, compile_, PassHalf::finish, nullptr, RemovalWatch(*ledger_, by));
    return by;
  }
  for (const RewriteStep& step : found.steps) {
    if (ledger_->concerns(step.origins)) by = fmt::format("rule {}", step.rule->name);
  }
  return by;
}

NodeLedger StrategyContext::node_ledger(const Proposal& found) const {
  NodeLedger ledger;
  ledger.node = search_.why;
  const Graph& finished = found.finished;
  for (const NodeId id : finished.topological_order()) {
    if (!ledger_->concerns(finished, {&id, 1})) continue;
    ledger.became.push_back(
        fmt::format("{}: {}", finished.node(id).op().name, finished.node(id).provenance().to_string()));
  }
  if (ledger.became.empty()) ledger.removed_by = removed_by(found);
  for (const RewriteStep& step : found.steps) {
    if (!ledger_->concerns(step.origins)) continue;
    LedgerEntry entry = entry_of(step, RewriteFate::kept);
    // The trial in which it became part of the best.
    const auto won = std::find_if(tried_.begin(), tried_.end(), [&](const auto& trial) {
      return trial.second.fate == RewriteFate::kept &&
             std::any_of(trial.first.begin(), trial.first.end(),
                         [&](const RewriteStep& other) { return is_same(entry, other.rule->name, other.origins); });
    });
    if (won != tried_.end()) measure(entry, won->second);
    ledger.entries.push_back(std::move(entry));
  }
  const auto num_kept = static_cast<std::ptrdiff_t>(ledger.entries.size());
  const auto known_entry = [&](std::string_view rule, const std::vector<std::string>& nodes) {
    return std::find_if(ledger.entries.begin(), ledger.entries.end(),
                        [&](const LedgerEntry& entry) { return is_same(entry, rule, nodes); });
  };
  for (const auto& [with, outcome] : tried_) {
    for (const RewriteStep& step : with) {
      const auto known = known_entry(step.rule->name, step.origins);
      if (known - ledger.entries.begin() < num_kept && known != ledger.entries.end()) continue;
      if (known != ledger.entries.end()) {
        take_trial(*known, outcome);
        continue;
      }
      // What became the best, and then was not the end: it lost against what came after.
      ledger.entries.push_back(
          entry_of(step, outcome.fate == RewriteFate::kept ? RewriteFate::lost_trial : outcome.fate));
      measure(ledger.entries.back(), outcome);
    }
  }
  for (const Ledger::Tried& tried : ledger_->tried()) {
    const auto known = known_entry(tried.rule, tried.origins);
    if (known != ledger.entries.end() && known->objective.empty()) {
      known->times = std::max(known->times, tried.times);
      continue;
    }
    LedgerEntry entry;
    entry.rule = tried.rule;
    entry.nodes = tried.origins;
    entry.fate = tried.is_affordable ? RewriteFate::not_chosen : RewriteFate::behind_limit;
    entry.objective = tried.objective;
    entry.predicted_us = tried.gain_us;
    entry.times = tried.times;
    ledger.entries.push_back(std::move(entry));
  }
  std::stable_sort(ledger.entries.begin() + num_kept, ledger.entries.end(),
                   [](const LedgerEntry& a, const LedgerEntry& b) { return a.predicted_us > b.predicted_us; });
  return ledger;
}

}  // namespace autograph
