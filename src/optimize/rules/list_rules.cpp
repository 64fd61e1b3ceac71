#include "autograph/rules.h"
#include "optimize/rules/rule.h"

namespace autograph {

std::string_view to_string(RuleClass kind) {
  switch (kind) {
    case RuleClass::shrinks: return "shrinks";
    case RuleClass::canonicalizes: return "canonicalizes";
    case RuleClass::search_only: return "search_only";
    case RuleClass::always_pays: return "always_pays";
    case RuleClass::spreads: return "spreads";
  }
  return "?";
}

RuleInfo describe(const Rule& rule) {
  return {std::string(rule.name), std::string(rule.before), std::string(rule.after), std::string(rule.guard_doc),
          rule.kind};
}

std::vector<RuleInfo> list_rules() {
  std::vector<RuleInfo> list;
  for (const Rule& rule : all_rules()) list.push_back(describe(rule));
  return list;
}

}  // namespace autograph
