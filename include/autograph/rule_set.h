// Rules beside the built-in ones: read from a file or made by generate_rules(), verified, for searches.
//
// A rules file is text that people can review:
//
//   # anything
//   rule generated.0001
//   before: s = add(a, b); y = add(s, c)
//   after: s = add(b, c); y = add(a, s)
//   class: search_only
//   verified: 132 exact 60 float 9f86d081884c7d659a2feaa0c55ad015
//
// Optional lines: `outputs: y0 y1` where there are several, `finite_only: true` for a rule that is true of finite
// numbers alone. The last word of `verified:` is a hash over all other lines of the rule and the tests that it passed:
// a rule that was changed since, or has no such line, is verified when the file is loaded.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "autograph/rules.h"

namespace autograph {

struct Rule;

/// How a rule was verified.
struct RuleEvidence {
  size_t exact_cases = 0;  ///< Compared exactly, modulo a prime.
  size_t float_cases = 0;  ///< Compared in floats of several dtypes, infinities and NaN among them.
  bool is_sealed = false;  ///< The hash in the file is that of the rule as it stands.
};

/// Immutable once made; searches share it.
class RuleSet {
 public:
  RuleSet();
  ~RuleSet();
  RuleSet(const RuleSet&) = delete;
  RuleSet& operator=(const RuleSet&) = delete;

  /// Adds a rule. Throws FormatError when its texts are no rule; ValueError when a rule here or a built-in one has its
  /// name.
  void add(const RuleInfo& rule, const std::vector<std::string>& outputs, bool finite_only,
           const RuleEvidence& evidence);
  size_t size() const;
  /// All, in order.
  std::vector<RuleInfo> list() const;
  /// The evidence of rule `index`.
  const RuleEvidence& evidence(size_t index) const;
  void set_evidence(size_t index, const RuleEvidence& evidence);
  /// The rule for matching; lives as long as the set.
  const Rule& rule(size_t index) const;
  /// Those of `names` alone, in the order of this set.
  std::shared_ptr<RuleSet> only(const std::vector<std::string>& names) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Reads the text of a rules file; `where` is its name in messages. Throws FormatError with the line. Does not verify.
std::shared_ptr<RuleSet> parse_rules(const std::string& text, const std::string& where);

/// The text of a rules file, sealed rules with their hash; `notes` are comments, one for each rule.
std::string print_rules(const RuleSet& rules, const std::string& comment = "",
                        const std::vector<std::string>& notes = {});

}  // namespace autograph
