// Proving and testing rewrite rules, and finding new ones. A library of its own, which programs that only run graphs
// need not link: autograph::prove.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/rule_set.h"
#include "autograph/rules.h"

namespace autograph {

/// How to verify rules.
struct VerifyRulesOptions {
  std::vector<std::string> names = {};  ///< Rules to verify; empty: all.
  size_t cases = 200;                   ///< Cases to which a rule applies, for each rule, where they are drawn.
  size_t exhaustive_limit = 1500;       ///< Up to so many combinations of shapes and attributes are all tried.
  double seconds = 10;                  ///< For each rule: tests stop after it, however many cases there were.
  bool smt = true;                      ///< Also ask the theorem prover.
  double smt_seconds = 2;               ///< For each rule.
  uint64_t seed = 1;                    ///< Of everything that is drawn.
  int threads = 1;
  /// Told the number of rules done, of all, and the name of one that is being verified; on one thread at a time.
  std::function<void(size_t done, size_t all, const std::string& rule)> on_progress = nullptr;
  std::function<bool()> is_cancelled = nullptr;  ///< Asked often; true ends with the rules done so far.
};

/// What the theorem prover says of a rule.
enum class Proof : uint8_t {
  proved,       ///< On one instance: for all shapes for which the same calls are legal.
  not_proved,   ///< Not within the time.
  not_covered,  ///< The rule has ops of which no axiom speaks.
  not_built,    ///< This build has no prover.
  not_asked,    ///< VerifyRulesOptions::smt is off.
};

/// "proved", "not proved", "not covered", "not built", "not asked".
std::string_view to_string(Proof proof);

/// What verifying a rule found. Before and after were compared in every case.
struct RuleReport {
  RuleInfo rule;
  size_t exact_cases = 0;     ///< Compared exactly, modulo a prime.
  size_t float_cases = 0;     ///< Compared in floats.
  size_t exact_failures = 0;  ///< Exact cases in which both differ.
  size_t float_failures = 0;  ///< Float cases in which both differ by more than rounding explains.
  size_t refused_cases = 0;   ///< Legal graphs like the pattern that the rule left alone, as it may.
  bool exhaustive = false;    ///< All combinations were tried; else a sample was drawn.
  bool on_integers = false;   ///< Needs properties of functions such as relu and max: exact on small integers.
  Proof smt = Proof::not_asked;
  double seconds = 0;
  std::string problem;  ///< Why it failed; "" when the rule is right as far as could be tested.
  std::string example;  ///< The smallest graph on which it failed, as text.
  bool is_verified() const { return problem.empty(); }
};

/// Verifies rules: exactly, in floats and by theorem prover. Throws ValueError with the nearest name for an unknown
/// one.
std::vector<RuleReport> verify_rules(const VerifyRulesOptions& options = {});

/// How to look for new rules.
struct GenerateRulesOptions {
  int max_ops = 3;                    ///< Of each side.
  std::vector<std::string> ops = {};  ///< Families to use: see generator_ops(); empty: all.
  size_t max_graphs = 2'000'000;      ///< Enumeration stops there.
  double seconds = 600;               ///< And there.
  size_t cases = 60;                  ///< To verify each rule found, see VerifyRulesOptions.
  uint64_t seed = 1;
  int threads = 1;
  /// What is being done, and how much of it: 0 to 1, or less than 0 when that is not known.
  std::function<void(const std::string& what, double fraction)> on_progress = nullptr;
  std::function<bool()> is_cancelled = nullptr;
};

/// A rule that was found.
struct GeneratedRule {
  RuleReport report;
  int ops_before = 0;
  int ops_after = 0;
  std::vector<std::string> outputs = {};     ///< Values that both sides make.
  bool finite_only = false;                  ///< True of finite numbers alone: infinities or NaN spread further.
  bool is_covered = false;                   ///< Hand-written rules lead from its pattern to its replacement.
  std::vector<std::string> covered_by = {};  ///< Which ones, in order.
};

/// What looking for rules found.
struct GeneratedRules {
  std::vector<GeneratedRule> rules;  ///< Verified ones, smaller first.
  size_t graphs = 0;                 ///< Enumerated.
  size_t classes = 0;                ///< Of graphs that compute the same.
  size_t candidates = 0;             ///< Pairs of such graphs that were left after pruning.
  size_t consequences = 0;           ///< Of them, those that follow from smaller rules.
  size_t rejected = 0;   ///< Of the rest, those that failed verification: true for the sizes enumerated only.
  bool complete = true;  ///< Neither limit was met.
  double seconds = 0;
};

/// Names of the families of ops that the generator knows.
std::vector<std::string> generator_ops();

/// Enumerates small graphs, groups those that compute the same, and makes rules of pairs that are not consequences of
/// others. Throws ValueError for an unknown family.
GeneratedRules generate_rules(const GenerateRulesOptions& options = {});

/// The rules as the text of a rules file (rule_set.h), with comments.
std::string print_rules(const GeneratedRules& rules);

/// Verifies the rules of a set, as verify_rules() does, and seals those that are right. Reports are in its order.
std::vector<RuleReport> verify_rules(RuleSet& rules, const VerifyRulesOptions& options = {});

/// Reads a rules file. Rules that were changed since they were verified, or never were, are verified now. Throws
/// FormatError or IoError when it cannot be read, ValueError naming the first rule that is wrong.
std::shared_ptr<const RuleSet> load_rules(const std::string& path, const VerifyRulesOptions& options = {});

}  // namespace autograph
