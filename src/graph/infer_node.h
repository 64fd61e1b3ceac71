// Runs an op's infer function for one node.
#pragma once

#include <string>
#include <vector>

#include "autograph/op_def.h"
#include "autograph/verify.h"

namespace autograph {

/// Output types of a node; `known` adds elements of non-constant values that are known (may be null).
std::vector<Type> infer_node(const OpDef& op, const Graph& graph, const std::vector<ValueId>& inputs,
                             const Attributes& attributes, size_t num_outputs, const std::string& where,
                             const KnownValues* known = nullptr);

/// As above from types and elements alone; `values` is parallel to `input_types`, absent tensors where unknown.
std::vector<Type> infer_call(const OpDef& op, std::vector<Type> input_types, const std::vector<Tensor>& values,
                             const Attributes& attributes, size_t num_outputs, const std::string& where);

}  // namespace autograph
