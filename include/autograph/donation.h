// Memory of an input that a run may write an output to.
#pragma once

#include <cstddef>

namespace autograph {

/// Leave to write output `output` over input `input`, both counted as the graph counts them.
struct Donation {
  size_t input = 0;   ///< Its elements are lost in the run.
  size_t output = 0;  ///< Of the same dtype and shape.
};

}  // namespace autograph
