// The rewrite rules of the search: what they are.
#pragma once

#include <string>
#include <vector>

namespace autograph {

/// A rule as it is written down.
struct RuleInfo {
  std::string name;         ///< "family.what".
  std::string pattern;      ///< What it looks for, one statement a node.
  std::string replacement;  ///< What it puts there; for people where a function makes it.
  std::string guard;        ///< What it demands besides; "" when the pattern says it all.
  std::string kind;         ///< "shrinks", "canonicalizes", "search_only" or "spreads".
};

/// All rules, by family.
std::vector<RuleInfo> list_rules();

}  // namespace autograph
