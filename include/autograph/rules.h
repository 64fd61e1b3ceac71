// The rewrite rules of the search: what they are.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace autograph {

/// When a rule may be used.
enum class RuleClass : uint8_t {
  shrinks,        ///< Fewer nodes or less work in every case.
  canonicalizes,  ///< One of several equal forms.
  search_only,    ///< May pay or not: the search decides.
  always_pays,    ///< A pass does it everywhere, on symbolic extents too; the search never sees it.
  spreads,        ///< More work in all, in parts that run side by side: tried where a device has room for them.
};

/// "shrinks", "canonicalizes", "search_only", "always_pays", "spreads".
std::string_view to_string(RuleClass kind);

/// A rule as it is written down.
struct RuleInfo {
  std::string name;         ///< "family.what".
  std::string pattern;      ///< What it looks for, one statement a node.
  std::string replacement;  ///< What it puts there; for people where a function makes it.
  std::string guard;        ///< What it demands besides; "" when the pattern says it all.
  RuleClass kind = RuleClass::search_only;
};

/// All rules, by family.
std::vector<RuleInfo> list_rules();

}  // namespace autograph
