// Contrib ops as a file has them: the importer's own table spells them out in the graph of idioms.
#pragma once

#include <string_view>
#include <vector>

#include "random_graph/idioms/idiom_graph.h"

namespace autograph {

/// Outputs of a node of com.microsoft; Var() among the inputs where one is not given. Invalid are those outputs that
/// the body does not give.
std::vector<Var> contrib_outputs(IdiomGraph& g, std::string_view op, const std::vector<Var>& inputs,
                                 Attributes attributes = {}, size_t num_outputs = 1);

/// Output 0.
Var contrib(IdiomGraph& g, std::string_view op, const std::vector<Var>& inputs, Attributes attributes = {});

}  // namespace autograph
