// Calls an op that is defined by its body in other ops.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// Fills the outputs of a call of `op`, which has a decompose function, by the references of the ops in its body.
/// Throws UnsupportedError where the body has ops without one (nested graphs, shapes that depend on elements).
void call_body(const OpDef& op, const OpCall& call);

}  // namespace autograph
