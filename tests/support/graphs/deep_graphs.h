// Networks of any depth whose layers are equal but for their weights: what searches of large graphs are tested on.
#pragma once

#include "autograph/graph.h"

namespace autograph {

/// A transformer with normalised branches and gated feed-forward layers (matmuls without bias, so that gate and value
/// read one tensor): about 23 nodes a layer before the passes.
Graph deep_transformer(int layers, int64_t width = 32, int64_t heads = 2, int64_t tokens = 8);

/// Blocks of parallel 1x1 and 3x3 convolutions of one input, joined and added to it: 7 nodes a block.
Graph deep_cnn(int blocks, int64_t channels = 8, int64_t extent = 8);

}  // namespace autograph
