// The bytes that windows of a convolution read, as columns of a matrix [channel and tap, output pixel].
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/kernel.h"
#include "ops/window/window_geometry.h"

namespace autograph {

/// The windows of a convolution with one to three spatial dims: input 0 by the kernel of input 1.
class IntegerWindows {
 public:
  explicit IntegerWindows(const KernelCall& call);

  int64_t pixels() const { return pixels_; }        ///< Of a channel of the output.
  int64_t inputs() const { return inputs_; }        ///< Of a channel of the input.
  int64_t taps() const { return taps_; }            ///< Of a window.
  int64_t row() const { return axes_.back().out; }  ///< Output pixels of a row.

  /// to[i] = what `tap` of the window of output pixel begin + i reads of a channel, with the bits of `turn` turned
  /// round; `outside` in the padding.
  void fill(const uint8_t* channel, int64_t tap, int64_t begin, int64_t count, uint8_t turn, uint8_t outside,
            uint8_t* to) const;

 private:
  std::vector<WindowAxis> axes_;  // depth, height, width
  int64_t pixels_ = 1, inputs_ = 1, taps_ = 1;
};

}  // namespace autograph
