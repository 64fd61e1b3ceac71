#include "autograph/rules.h"
#include "optimize/rules/rule.h"

namespace autograph {

RuleInfo describe(const Rule& rule) {
  return {std::string(rule.name), std::string(rule.before), std::string(rule.after), std::string(rule.guard_doc),
          std::string(to_string(rule.kind))};
}

std::vector<RuleInfo> list_rules() {
  std::vector<RuleInfo> list;
  for (const Rule& rule : all_rules()) list.push_back(describe(rule));
  return list;
}

}  // namespace autograph
