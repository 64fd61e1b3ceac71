// dead_code: removes nodes that no output depends on and constants that nothing reads. Graph inputs stay.
#include "optimize/passes/passes.h"

namespace autograph {

bool dead_code(Graph& graph, PassContext&) { return graph.erase_dead() > 0; }

}  // namespace autograph
