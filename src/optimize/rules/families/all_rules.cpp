// The list of all rules, family by family.
#include <vector>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "optimize/rules/families/families.h"

namespace autograph {

std::span<const Rule> all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (const auto family : {arithmetic_rules,
                              activation_rules,
                              softmax_rules,
                              layer_norm_rules,
                              rms_norm_rules,
                              group_norm_rules,
                              squeeze_excite_rules,
                              simplification_rules,
                              mean_rules,
                              matmul_rules,
                              product_sum_rules,
                              conv_merge_rules,
                              conv_algebra_rules,
                              stack_rules,
                              embedding_rules,
                              recurrent_rules,
                              part_rules,
                              spread_rules,
                              pool_rules,
                              concat_rules,
                              slice_rules,
                              transpose_rules,
                              twin_rules}) {
      const std::span<const Rule> list = family();
      all.insert(all.end(), list.begin(), list.end());
    }
    return all;
  }();
  return rules;
}

std::vector<const Rule*> rules_for_search(bool exact) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : all_rules()) {
    if (rule.kind != RuleClass::always_pays && !(exact && rule.loses_digits)) rules.push_back(&rule);
  }
  return rules;
}

Rule wherever_true(Rule rule) {
  rule.may_pay = nullptr;
  return rule;
}

const Rule& get_rule(std::string_view name) {
  std::vector<std::string> names;
  for (const Rule& rule : all_rules()) {
    if (rule.name == name) return rule;
    names.emplace_back(rule.name);
  }
  throw ValueError(fmt::format("[rules] name: no rule '{}'{}", name, did_you_mean(std::string(name), names)));
}

}  // namespace autograph
