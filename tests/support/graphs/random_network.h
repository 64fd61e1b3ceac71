// Random small image networks: what has layouts, parts in place, fused epilogues and branches.
#pragma once

#include <cstdint>

#include "autograph/graph.h"

namespace autograph {

/// A network of convolutions, pools, residuals, concats and squeeze-excites on one f32 input, the same for the same
/// seed.
Graph make_random_network(uint64_t seed);

}  // namespace autograph
