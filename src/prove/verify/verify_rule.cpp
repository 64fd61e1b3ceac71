#include "prove/verify/verify_rule.h"

#include <algorithm>
#include <chrono>
#include <mutex>

#include "autograph/text.h"
#include "base/check.h"
#include "base/parallel_for.h"
#include "prove/verify/prove_rule.h"
#include "prove/verify/rule_case.h"

namespace autograph {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kAttemptsPerCase = 60;    // instances drawn for each one that the rule applies to
constexpr size_t kMinAttempts = 30000;     // for rules that seldom apply
constexpr size_t kMoreAfterProblem = 400;  // attempts to find a smaller counterexample
constexpr size_t kProofs = 2;
constexpr size_t kMaxPrintedElements = 64;  // of a constant in a counterexample

class RuleTest {
 public:
  RuleTest(const Rule& rule, const VerifyRulesOptions& options)
      : rule_(wherever_true(rule)),
        options_(options),
        rules_{&rule_},
        matcher_(rules_),
        pattern_(parse_pattern(rule.before)) {
    report_.rule = describe(rule);
    deadline_ = Clock::now() + std::chrono::microseconds(static_cast<int64_t>(options.seconds * 1e6));
  }

  RuleReport run() {
    const auto start = Clock::now();
    report_.exhaustive = try_all();
    // Where all combinations were tried, the random ones add what enumeration leaves out: odd readers, other constants.
    try_random(report_.exhaustive ? options_.cases / 4 : options_.cases);
    if (report_.problem.empty() && std::max(report_.exact_cases, report_.float_cases) < kMinCases) {
      report_.problem = fmt::format("applies to {} of {} instances: expected {} or more to tell anything", applied_,
                                    attempts_, kMinCases);
    }
    if (options_.smt) report_.smt = prove();
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    return std::move(report_);
  }

 private:
  bool is_over() const {
    return Clock::now() > deadline_ || (options_.is_cancelled && options_.is_cancelled()) ||
           (!report_.problem.empty() && attempts_ > problem_at_ + kMoreAfterProblem);
  }

  // All combinations, when there are few enough; they are counted first.
  bool try_all() {
    Choices count;
    size_t combinations = 0;
    do {
      make_instance(rule_, pattern_, count);
      if (++combinations > options_.exhaustive_limit || is_over()) return false;
    } while (count.next());
    Choices all;
    do {
      if (is_over()) return false;
      try_one(all);
    } while (all.next());
    return true;
  }

  void try_random(size_t cases) {
    Choices choices(options_.seed);
    const size_t enough = applied_ + cases;
    const size_t most = attempts_ + std::max(cases * kAttemptsPerCase, kMinAttempts);
    while (applied_ < enough && attempts_ < most && !is_over()) try_one(choices);
  }

  void try_one(Choices& choices) {
    ++attempts_;
    const auto instance = make_instance(rule_, pattern_, choices);
    if (!instance) return;
    const CaseResult result = check_case(matcher_, *instance, options_.seed + attempts_);
    applied_ += result.applied;
    report_.exact_cases += result.exact;
    report_.float_cases += result.floats;
    report_.exact_failures += result.exact_failures;
    report_.float_failures += result.float_failures;
    report_.refused_cases += result.applied == 0;
    report_.on_integers = report_.on_integers || result.on_integers;
    if (!result.problem.empty()) keep_problem(*instance, result.problem);
    if (result.applied > 0 && result.problem.empty()) keep_for_proof(*instance);
  }

  void keep_problem(const RuleInstance& instance, const std::string& problem) {
    if (report_.problem.empty()) problem_at_ = attempts_;
    if (!report_.problem.empty() && instance.num_elements >= problem_size_) return;
    problem_size_ = instance.num_elements;
    report_.problem = problem;
    report_.example = print_text(instance.graph, TextOptions{kMaxPrintedElements});
  }

  // The laws speak of matrices and images: instances whose inputs all have rank 2 or 4 are best, then small ones.
  void keep_for_proof(const RuleInstance& instance) {
    const Graph& graph = instance.graph;
    const bool is_plain = std::all_of(graph.inputs().begin(), graph.inputs().end(), [&](ValueId input) {
      const int64_t rank = graph.type(input).shape().rank();
      return rank == 2 || rank == 4;
    });
    const size_t badness = graph.num_nodes() + (is_plain ? 0 : 1000);
    const auto worse = std::find_if(samples_.begin(), samples_.end(), [&](const auto& s) { return s.first > badness; });
    if (worse == samples_.end() && samples_.size() == kProofs) return;
    samples_.emplace(worse, badness, graph);
    if (samples_.size() > kProofs) samples_.pop_back();
  }

  // On two instances at most: what is proved of one set of ranks and attributes is tested on all the others.
  Proof prove() {
    Proof proof = Proof::not_covered;
    for (const auto& [badness, graph] : samples_) {
      const std::vector<RuleMatch> matches = matcher_.find_all(graph);
      if (matches.empty()) continue;
      proof = prove_rule(matches.front(), options_.smt_seconds / kProofs);
      if (proof == Proof::proved || proof == Proof::not_built) break;
    }
    return proof;
  }

  const Rule rule_;
  const VerifyRulesOptions& options_;
  const Rule* rules_[1];
  RuleMatcher matcher_;
  Pattern pattern_;
  RuleReport report_;
  Clock::time_point deadline_;
  size_t attempts_ = 0;
  size_t applied_ = 0;
  size_t problem_at_ = 0;
  size_t problem_size_ = 0;
  std::vector<std::pair<size_t, Graph>> samples_;  // with how little they fit a proof, best first
};

}  // namespace

RuleReport verify_rule(const Rule& rule, const VerifyRulesOptions& options) { return RuleTest(rule, options).run(); }

std::string_view to_string(Proof proof) {
  switch (proof) {
    case Proof::proved: return "proved";
    case Proof::not_proved: return "not proved";
    case Proof::not_covered: return "not covered";
    case Proof::not_built: return "not built";
    case Proof::not_asked: return "not asked";
  }
  return "?";
}

std::vector<RuleReport> verify_rules(const VerifyRulesOptions& options) {
  std::vector<const Rule*> rules;
  for (const std::string& name : options.names) rules.push_back(&get_rule(name));
  if (rules.empty()) {
    for (const Rule& rule : all_rules()) rules.push_back(&rule);
  }
  std::vector<RuleReport> reports(rules.size());
  std::mutex mutex;
  size_t done = 0;
  parallel_for(rules.size(), options.threads, [&](size_t i) {
    if (options.is_cancelled && options.is_cancelled()) return;
    {
      const std::lock_guard lock(mutex);
      if (options.on_progress) options.on_progress(done, rules.size(), std::string(rules[i]->name));
    }
    reports[i] = verify_rule(*rules[i], options);
    const std::lock_guard lock(mutex);
    ++done;
  });
  std::erase_if(reports, [](const RuleReport& report) { return report.rule.name.empty(); });
  return reports;
}

}  // namespace autograph
