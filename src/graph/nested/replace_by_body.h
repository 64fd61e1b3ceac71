// Replaces a function op by its body.
#pragma once

#include "autograph/graph.h"

namespace autograph {

/// Replaces `id`, whose op has a decompose function, by the nodes of its body, which get its provenance; the values
/// that take over get the names of the outputs where they have none. Throws InternalError when the body leaves out an
/// output that is read.
void replace_by_body(Graph& graph, NodeId id);

}  // namespace autograph
