// Choosing the cheapest graph among all that an equality graph stands for. Costs are those of whole graphs: shared
// nodes count once, the critical path and what neighbours make of a node as in any other search. So no sum over trees
// is minimised: a choice is improved by one rewrite after the other, whichever were made on the way to them.
#pragma once

#include <vector>

#include "optimize/search/equality/rewrite_space.h"

namespace autograph {

/// Terms of the form with the shortest critical path, where every term takes what it took when it was met first:
/// exact, as the longest way to a value is that to the slowest input and the term itself, whoever shares what.
std::vector<TermId> shortest_path_terms(const RewriteSpace& space);

/// Improves the best forms of the space, and that of the shortest path, as long as one rewrite more helps. What is met
/// is offered to RewriteSpace::best().
void extract(RewriteSpace& space);

}  // namespace autograph
