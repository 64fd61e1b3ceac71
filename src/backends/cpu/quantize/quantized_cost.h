// How long products of bytes take, and what they stand for takes in floats.
#pragma once

#include "backends/cpu/quantize/quantized_call.h"

namespace autograph {

/// Estimates for one thread, fitted to networks on a CPU with AVX2 alone. With VNNI integers are always faster. Both
/// grow with the rows of the result in the same way, so that which one is less does not depend on them: a pass that
/// does not know all extents yet decides as the kernel does later.
class QuantizedCost {
 public:
  QuantizedCost(const QuantizedCall& product, bool has_vnni);

  /// Reading windows, multiplying them and quantizing the sums.
  double integer_ns() const;
  /// Dequantizing, a product or convolution by the fastest algorithm there is, and quantizing.
  double float_ns() const;

 private:
  bool has_vnni_;
  double x_elements_, y_elements_;
  double rows_, depth_;
  double runs_ = 1;   // of a row, that lie apart in memory
  double saved_ = 1;  // by Winograd's algorithm: how many times fewer products
};

}  // namespace autograph
