// Small graphs in which the pattern of a rule occurs, or nearly does: the cases that a rule is tested on.
#pragma once

#include <optional>
#include <vector>

#include "optimize/rules/pattern/pattern.h"
#include "optimize/rules/rule.h"
#include "prove/verify/draft/choices.h"

namespace autograph {

struct RuleInstance {
  Graph graph;
  std::vector<bool> positive_inputs;  ///< Parallel to the graph's inputs: elements must be positive.
  size_t num_elements = 0;            ///< Of all values: how large the case is.
};

/// One instance of `pattern`, the pattern of `rule`, made by `choices`; nothing when the calls are not legal. Variables
/// may stand for the same value, weights may be computed, attributes that the pattern does not name may be set, values
/// inside may be read from outside, inputs may depend on other parts of the pattern: what the matcher has to refuse is
/// among the instances. Weights and other constants are small integers.
std::optional<RuleInstance> make_instance(const Rule& rule, const Pattern& pattern, Choices& choices);

}  // namespace autograph
