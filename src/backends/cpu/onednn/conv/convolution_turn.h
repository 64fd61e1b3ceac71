// Who may make descriptors of convolutions now.
#pragma once

#include "backends/cpu/onednn/primitive_kernel.h"

namespace autograph::onednn {

/// Held by a thread while oneDNN makes it descriptors of convolutions, or of what it computes as one, with weights of
/// this type; waits while others do so with another type.
///
/// oneDNN 2.6 keeps how many channels lie together in the weights of the convolution in work, which follows from their
/// type, in a variable of the process (last_ic_block_size of jit_brgemm_conv_utils.cpp, of each thread since 2.7.3):
/// two threads at once get kernels that give other numbers.
class ConvolutionTurn {
 public:
  explicit ConvolutionTurn(DataType weights);
  ~ConvolutionTurn();
  ConvolutionTurn(const ConvolutionTurn&) = delete;
  ConvolutionTurn& operator=(const ConvolutionTurn&) = delete;
};

}  // namespace autograph::onednn
