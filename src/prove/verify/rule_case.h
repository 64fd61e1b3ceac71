// One case of a rule: finds the rule in a graph, applies it to a copy, and compares what both compute.
#pragma once

#include <string>

#include "prove/verify/exact/exact_interpreter.h"
#include "prove/verify/instance.h"

namespace autograph {

/// What came out of one case.
struct CaseResult {
  size_t applied = 0;  ///< Matches that were applied.
  size_t exact = 0;    ///< Of them, those compared exactly ...
  size_t floats = 0;   ///< ... and in floats.
  size_t exact_failures = 0;
  size_t float_failures = 0;
  bool on_integers = false;  ///< Exactly only where functions are what they are, on integers.
  std::string problem;       ///< The first difference or failure; "" when there was none.
};

/// Applies every match of `matcher` in the instance, each to a copy of its own.
CaseResult check_case(const RuleMatcher& matcher, const RuleInstance& instance, uint64_t seed);

}  // namespace autograph
