#include "cli/options/search_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "autograph/error.h"
#include "autograph/prove.h"
#include "base/check.h"
#include "base/printable.h"
#include "base/text/read_number.h"
#include "cli/interrupt.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

int checked_count(int64_t value, int64_t least, const char* what) {
  constexpr int64_t kMost = 1'000'000;
  AG_CHECK_USER(value >= least && value <= kMost, UserError, "[cli] {}: expected {}..{}, got {}", what, least, kMost,
                value);
  return static_cast<int>(value);
}

std::optional<double> given_alpha(const std::string& text) {
  if (text == "auto") return std::nullopt;
  const auto alpha = read_number<double>(text);
  AG_CHECK_USER(alpha && *alpha >= 0, UserError, "[cli] alpha: expected auto or a number of 0 or more, got '{}'", text);
  return alpha;
}

// Others have no part in Algorithm 1.
void check_literal(const SearchOptions& options) {
  const bool can_be = options.strategy == Strategy::paper || options.strategy == Strategy::search ||
                      options.strategy == Strategy::autograph;
  AG_CHECK_USER(!options.literal || can_be, UserError,
                "[cli] literal: expected --strategy paper, search or autograph, got '{}' (Algorithm 1 as it stands is "
                "--strategy paper)",
                to_string(options.strategy));
}

// "searching: 120 candidates, cost 2310 -> 1980 us (-14.3 %), 42 s left"
std::string progress_text(const SearchProgress& progress) {
  std::string text = fmt::format("{}: {} candidates", progress.phase, progress.candidates);
  if (progress.best_cost_us > 0 && progress.start_cost_us > 0) {
    text += fmt::format(", cost {:.0f} -> {:.0f} us ({:+.1f} %)", progress.start_cost_us, progress.best_cost_us,
                        (progress.best_cost_us / progress.start_cost_us - 1) * 100);
  }
  const double left = std::max(0.0, progress.budget_seconds - progress.seconds);
  return text + fmt::format(", {:.0f} s left", left);
}

struct RuleSum {
  std::string rule;
  int64_t count = 0;
  double gain_us = 0;
};

std::vector<RuleSum> sums_by_rule(const SearchReport& report) {
  std::map<std::string, RuleSum> sums;
  for (const AppliedRule& applied : report.rules_applied) {
    RuleSum& sum = sums[applied.rule];
    sum.rule = applied.rule;
    ++sum.count;
    sum.gain_us += applied.gain_us;
  }
  std::vector<RuleSum> list;
  for (auto& [rule, sum] : sums) list.push_back(std::move(sum));
  std::stable_sort(list.begin(), list.end(), [](const RuleSum& a, const RuleSum& b) { return a.count > b.count; });
  return list;
}

std::string rewrites_text(const SearchReport& report, bool escapes) {
  if (report.rules_applied.empty()) return "no rewrites: the passes alone made the graph\n";
  Table rewrites({{"#", true}, {"rule"}, {"gain us", true}, {"where"}});
  for (size_t i = 0; i < report.rules_applied.size(); ++i) {
    const AppliedRule& applied = report.rules_applied[i];
    rewrites.add({fmt::format("{}", i + 1), applied.rule, fmt::format("{:.2f}", applied.gain_us), applied.where});
  }
  Table sums({{"rule"}, {"times", true}, {"gain us", true}});
  for (const RuleSum& sum : sums_by_rule(report)) {
    sums.add({sum.rule, fmt::format("{}", sum.count), fmt::format("{:.2f}", sum.gain_us)});
  }
  return rewrites.to_string(escapes) + "\n" + sums.to_string(escapes) +
         "\ngains are by the cost model, at the moment of the rewrite; one that costs makes way for another\n";
}

std::string verdict_of(const TrialResult& trial) {
  if (!trial.is_right) return "other numbers";
  return trial.accepted ? "accepted" : "";
}

std::string trials_text(const SearchReport& report, bool escapes) {
  if (report.trials.empty()) return "";
  Table table({{"trial", true},
               {"rewrites", true},
               {"streams", true},
               {"cost us", true},
               {"predicted ms", true},
               {"latency ms", true},
               {"best until then", true},
               {"rounds won", true},
               {""}});
  for (size_t i = 0; i < report.trials.size(); ++i) {
    const TrialResult& trial = report.trials[i];
    table.add({fmt::format("{}", i + 1), fmt::format("{}", trial.rewrites), fmt::format("{}", trial.streams),
               fmt::format("{:.1f}", trial.cost_us), fmt::format("{:.3f}", trial.predicted_us / 1e3),
               fmt::format("{:.3f}", trial.latency_ms), fmt::format("{:.3f}", trial.best_ms),
               fmt::format("{:.0f} %", trial.wins * 100), verdict_of(trial)});
  }
  return "\non the device, in turns with the best until then:\n\n" + table.to_string(escapes);
}

constexpr const char* kLedgerLegend =
    "\npredicted: gain by the cost model when it was tried, less than 0 where it costs\n"
    "of: what that is a gain of\n"
    "measured: gain on the device of the graph that had it over the best until then, together with the other rewrites\n"
    "  of that graph; what lost a trial made it slower by that\n"
    "tried: how often; parts are searched again and again\n"
    "behind the limit: the graph it makes costs more than --gamma times the best one, which may be another than the "
    "one\n"
    "  it was tried on\n";

}  // namespace

std::vector<Option> search_option_table(SearchFlags& flags) {
  SearchOptions& options = flags.options;
  return {
      {.names = "--alpha",
       .value_name = "X",
       .doc = "Weight of the critical path beside the sum of all costs; auto: what fits the graphs measured on this "
              "device so far best, or 1 where these are few.",
       .target = &flags.alpha},
      {.names = "--gamma",
       .value_name = "X",
       .doc = "Keep candidates up to this times the best cost; 1.05 when not given.",
       .target = &options.gamma},
      {.names = "--keep",
       .value_name = "N",
       .doc = "Candidates kept of each part, and tried on the device; 6 when not given.",
       .target = &flags.keep},
      {.names = "--rounds", .value_name = "N", .doc = "Rounds at most; 3 when not given.", .target = &flags.rounds},
      {.names = "--max-streams",
       .value_name = "N",
       .doc = "Streams at most; 0: one for each processor that may be used.",
       .target = &flags.max_streams},
      {.names = "--candidates",
       .value_name = "N",
       .doc = "Stop after looking at about N graphs instead of after --budget seconds: on a simulated device the same "
              "model, cache, seed and N then give the same plan. 0, the default: the budget decides.",
       .target = &flags.candidates},
      {.names = "--literal",
       .doc = "Search as the paper's Algorithm 1 stands, without what was added to it: what --strategy paper does.",
       .target = &options.literal},
      {.names = "--equality-graphs",
       .doc = "Search parts by equality graphs as well, in half of the time that backtracking has for them otherwise.",
       .target = &options.use_equality},
      {.names = "--disable-rule",
       .value_name = "NAME",
       .doc = "Leave out a rule; may be repeated.",
       .target = &options.disabled_rules},
      {.names = "--rules",
       .value_name = "FILE",
       .doc =
           "Try the rules of a file as well (`autograph rules generate -o FILE`); those that nobody verified as they "
           "stand are verified first.",
       .target = &flags.rules,
       .kind = ValueKind::file},
  };
}

SearchOptions search_options(const SearchFlags& flags, const RunOptions& run) {
  constexpr double kMostSeconds = 30.0 * 86400;
  AG_CHECK_USER(run.budget_seconds > 0 && run.budget_seconds <= kMostSeconds, UserError,
                "[cli] budget: expected more than 0 and up to {} seconds, got {}", kMostSeconds, run.budget_seconds);
  AG_CHECK_USER(flags.options.gamma >= 1, UserError, "[cli] gamma: expected 1 or more, got {}", flags.options.gamma);
  SearchOptions options = flags.options;
  options.alpha = given_alpha(flags.alpha);
  options.keep = checked_count(flags.keep, 1, "keep");
  options.rounds = checked_count(flags.rounds, 1, "rounds");
  options.max_streams = checked_count(flags.max_streams, 0, "max-streams");
  if (!flags.rules.empty()) options.rules = load_rules(flags.rules);
  options.candidates = checked_count(flags.candidates, 0, "candidates");
  options.strategy = strategy_of(run);
  check_literal(options);
  options.budget_seconds = run.budget_seconds;
  options.seed = static_cast<uint64_t>(run.seed);
  // Who names another strategy wants to see what it does.
  options.never_slower = options.strategy == Strategy::autograph;
  return options;
}

std::shared_ptr<const Truth> find_truth(Session& session, const Graph& graph, const std::vector<Datum>& inputs,
                                        const CompileOptions& compile, const SearchOptions& options) {
  session.progress("running the reference", -1);
  TruthLimits limits = truth_limits(options);
  limits.is_cancelled = InterruptScope::was_interrupted;
  auto truth = std::make_shared<const Truth>(Truth::of(graph, inputs, compile, limits));
  session.end_progress();
  return truth;
}

Optimized search(Session& session, const LoadedModel& loaded, const CompileOptions& compile,
                 const SearchOptions& options) {
  SearchOptions with_progress = options;
  // What a model runs may depend on what it is given: inputs drawn for the search might take a branch that fails.
  if (with_progress.inputs.empty()) with_progress.inputs = loaded.inputs;
  with_progress.on_progress = [&session](const SearchProgress& progress) {
    session.progress(progress_text(progress), -1);
  };
  with_progress.is_cancelled = [] { return InterruptScope::was_interrupted(); };
  const InterruptScope scope;
  Optimized found = optimize(bound_graph(loaded), compile, with_progress);
  session.end_progress();
  const SearchReport& report = found.report;
  session.log("search", fmt::format("{}: {} candidates, {} measured, {} parts, {} rewrites, cost {:.1f} -> {:.1f} us, "
                                    "{} in {:.1f} s",
                                    to_string(report.strategy), report.candidates, report.measured, report.partitions,
                                    report.rules_applied.size(), report.cost_before_us, report.cost_after_us,
                                    to_string(report.stop_reason), report.search_seconds));
  return found;
}

Json rules_json(const SearchReport& report) {
  Json list = Json::array();
  for (const RuleSum& sum : sums_by_rule(report)) {
    list.push(Json::object({{"rule", sum.rule}, {"count", sum.count}, {"gain_us", sum.gain_us}}));
  }
  return list;
}

Json explain_json(const SearchReport& report) {
  Json list = Json::array();
  for (const AppliedRule& applied : report.rules_applied) {
    list.push(Json::object({{"rule", applied.rule}, {"where", applied.where}, {"gain_us", applied.gain_us}}));
  }
  return list;
}

Json trials_json(const SearchReport& report) {
  Json list = Json::array();
  for (const TrialResult& trial : report.trials) {
    list.push(Json::object({{"cost_us", trial.cost_us},
                            {"predicted_us", trial.predicted_us},
                            {"rewrites", trial.rewrites},
                            {"streams", trial.streams},
                            {"latency_ms", trial.latency_ms},
                            {"best_ms", trial.best_ms},
                            {"wins", trial.wins},
                            {"verified", trial.is_right},
                            {"accepted", trial.accepted}}));
  }
  return list;
}

std::string explain_text(const SearchReport& report, bool escapes) {
  return rewrites_text(report, escapes) + trials_text(report, escapes);
}

std::string ledger_text(const SearchReport& report, bool escapes) {
  const NodeLedger& ledger = *report.ledger;
  std::string became;
  for (const std::string& node : ledger.became) became += "  " + printable(node) + "\n";
  const auto names = [](const LedgerEntry& entry) {
    std::string text;
    for (const std::string& node : entry.nodes) text += (text.empty() ? "" : " | ") + node;
    return text;
  };
  const auto measured = [](const LedgerEntry& entry) {
    return entry.measured_us ? fmt::format("{:.1f}", *entry.measured_us) : std::string("-");
  };
  Table made({{"#", true}, {"rule"}, {"predicted us", true}, {"measured us", true}, {"with others", true}, {"nodes"}});
  Table lost(
      {{"rule"}, {"predicted us", true}, {"of"}, {"measured us", true}, {"tried", true}, {"why not"}, {"nodes"}});
  size_t num_made = 0;
  for (const LedgerEntry& entry : ledger.entries) {
    const std::string predicted = fmt::format("{:.2f}", entry.predicted_us);
    if (entry.fate == RewriteFate::kept) {
      made.add({fmt::format("{}", ++num_made), entry.rule, predicted, measured(entry),
                entry.shared_by > 1 ? fmt::format("{}", entry.shared_by - 1) : "-", names(entry)});
    } else {
      lost.add({entry.rule, predicted, entry.objective.empty() ? "-" : entry.objective, measured(entry),
                fmt::format("{}", entry.times), std::string(to_string(entry.fate)), names(entry)});
    }
  }
  std::string text = fmt::format("'{}' became{}\n", printable(ledger.node),
                                 !became.empty()             ? ":\n" + became
                                 : ledger.removed_by.empty() ? " nothing that runs"
                                                             : " nothing that runs: removed by " + ledger.removed_by);
  if (report.candidates == 0 && report.stop_reason == StopReason::budget) {
    return text + "the search ended before it tried any rewrite: it needs a larger --budget\n";
  }
  text += made.empty() ? "no rewrite made it: the passes alone did\n" : "made by\n\n" + made.to_string(escapes);
  text += lost.empty() ? "\nnothing else was tried there\n" : "\ntried there and lost\n\n" + lost.to_string(escapes);
  return made.empty() && lost.empty() ? text : text + kLedgerLegend;
}

Json ledger_json(const NodeLedger& ledger) {
  Json list = Json::array();
  for (const LedgerEntry& entry : ledger.entries) {
    list.push(Json::object({{"rule", entry.rule},
                            {"nodes", entry.nodes},
                            {"predicted_us", entry.predicted_us},
                            {"measured_us", entry.measured_us ? Json(*entry.measured_us) : Json()},
                            {"objective", entry.objective.empty() ? Json() : Json(entry.objective)},
                            {"shared_by", entry.shared_by},
                            {"accepted", entry.fate == RewriteFate::kept},
                            {"fate", std::string(to_string(entry.fate))},
                            {"times", entry.times}}));
  }
  return list;
}

}  // namespace autograph::cli
