// Checks a node against the schema of its op: attributes, number and kinds of inputs and outputs, dtypes.
#pragma once

#include <string>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// " (node "x")" or "", for the end of messages.
std::string node_suffix(const std::string& where);

/// Fills in defaults; throws ValueError or TypeError on unknown, missing, ill-typed or disallowed attributes.
void complete_attributes(const OpDef& op, Attributes& attributes, const std::string& where);

/// Throws as complete_attributes does, without changing anything; defaults must be there already.
void check_attributes(const OpDef& op, const Attributes& attributes, const std::string& where);

/// Number of outputs of a node when `asked` were asked for (-1: those the op always has); throws ValueError otherwise.
size_t resolve_num_outputs(const OpDef& op, int asked, const std::string& where);

/// Parameter that input or output `slot` belongs to: the last one repeats when it is variadic; null beyond the end.
const Param* find_param(const std::vector<Param>& params, size_t slot);

/// How many inputs come before those that there may be any number of.
size_t num_fixed_inputs(const OpDef& op);

/// Throws ValueError on a wrong number of inputs or a missing one, TypeError on dtypes outside the schema.
void check_inputs(const OpDef& op, const Graph& graph, const std::vector<ValueId>& inputs, const std::string& where);

/// Throws ValueError where an op with an effect calls itself pure: passes would make one of equal nodes, and compute
/// ahead what depends on constants alone, so that the effect happens once or at another time.
void check_effect(const OpDef& op, const std::string& where);

/// Throws TypeError when the dtypes of these input and output types break the schema's type variables.
void check_dtypes(const OpDef& op, const std::vector<Type>& inputs, const std::vector<Type>& outputs,
                  const std::string& where);

}  // namespace autograph
