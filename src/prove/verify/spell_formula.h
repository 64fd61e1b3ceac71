// A formula of a pattern as nodes: one of the many ways in which a model may spell it.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "optimize/rules/pattern/formula.h"
#include "prove/verify/draft/choices.h"

namespace autograph {

/// What stands for variables and parameters, by index. Numbers become constants of `dtype`.
struct FormulaArguments {
  std::vector<ValueId> values;
  std::vector<double> parameters;
  DType dtype = DType::f32;
};

/// Adds the nodes of the formula, with operands swapped, products regrouped, divisions for products and powers for
/// divisions as `choices` decide at random; as it was written while all combinations are tried. Returns the results of
/// all nodes, the formula's own last.
std::vector<ValueId> spell_formula(Graph& graph, const FormulaStep& written, const FormulaArguments& arguments,
                                   Choices& choices);

}  // namespace autograph
