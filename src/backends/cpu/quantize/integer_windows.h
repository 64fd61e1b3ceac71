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

  /// An output pixel by its coordinates.
  struct Pixel {
    int64_t d, h, w;
  };
  Pixel pixel(int64_t number) const;

  /// to[i] = what `tap` of the window of output pixel begin + i reads of a channel, with the bits of `turn` turned
  /// round; `outside` in the padding.
  void fill(const uint8_t* channel, int64_t tap, const Pixel& begin, int64_t count, uint8_t turn, uint8_t outside,
            uint8_t* to) const;

 private:
  // Of a window: the inputs that it reads for the first outputs of each axis, and which outputs of a row, [first,
  // last), have theirs inside. Found once, since divisions take as long as copying a row.
  struct Tap {
    int64_t d, h, w;
    int64_t first, last;
  };
  Tap tap_of(int64_t number) const;

  std::vector<WindowAxis> axes_;  // depth, height, width
  int64_t pixels_ = 1, inputs_ = 1, taps_ = 1;
  std::vector<Tap> tap_list_;
};

}  // namespace autograph
