// Contrib ops as a file has them: the importer's own table spells them out in the graph of idioms.
#pragma once

#include <string_view>
#include <vector>

#include "io/onnx/contrib/contrib.h"
#include "random_graph/idioms/idiom_graph.h"

namespace autograph {

/// Outputs of a node of `domain`; Var() among the inputs where one is not given. Invalid are those outputs that
/// the body does not give.
std::vector<Var> contrib_outputs(IdiomGraph& g, std::string_view op, const std::vector<Var>& inputs,
                                 Attributes attributes = {}, size_t num_outputs = 1,
                                 std::string_view domain = io::kMicrosoft);

/// Output 0.
Var contrib(IdiomGraph& g, std::string_view op, const std::vector<Var>& inputs, Attributes attributes = {},
            std::string_view domain = io::kMicrosoft);

/// What contrib ops of f32 alone take.
Var in_f32(Var x);

}  // namespace autograph
