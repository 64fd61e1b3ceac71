// Tests and proves one rule.
#pragma once

#include "autograph/prove.h"
#include "optimize/rules/rule.h"

namespace autograph {

/// Tries the rule on small instances of its pattern: on all of them where they are few, else on some at random, and
/// asks the theorem prover when `options.smt`. A rule that applies to less than kMinCases instances fails: nothing is
/// known about it.
RuleReport verify_rule(const Rule& rule, const VerifyRulesOptions& options);

constexpr size_t kMinCases = 10;

}  // namespace autograph
