// Values that a rule wants one behind the other along an axis, with as little moved as possible: where all of them are
// made alike, what makes them is done once for all, and only what that reads is joined; pieces of one split are what
// was split; products and convolutions of one input are one with all the weights. What is left is a concat.
#pragma once

#include <cstdint>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

/// How values are to be joined: a plan, so that a rule can say what goes before it adds anything.
struct Joint {
  enum class Kind : uint8_t { concat, split_input, elementwise, product, convolution };
  Kind kind = Kind::concat;
  int64_t axis = 0;
  std::vector<ValueId> values = {};
  std::vector<NodeId> makers = {};   ///< Of the values; none for a concat and for what was split.
  std::vector<Joint> operands = {};  ///< Of elementwise ops.
};

/// `values` have static types that differ in `axis` alone (from the front). Makers are taken along only where nothing
/// else reads the values.
Joint plan_joint(const Graph& graph, const std::vector<ValueId>& values, int64_t axis);

/// Tells the builder what goes.
void include(RuleBuilder& builder, const Joint& joint);

/// Adds what the plan says.
ValueId make(RuleBuilder& builder, const Joint& joint);

}  // namespace autograph
