// The bytes that windows of a convolution read of channels-last images: a row [tap, channel] for each output pixel.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/quantize/quantized_call.h"
#include "ops/window/window_geometry.h"

namespace autograph {

/// The windows of an ungrouped convolution with one to three spatial dims.
class PixelWindows {
 public:
  explicit PixelWindows(const QuantizedCall& conv);

  int64_t pixels() const { return images_ * pixels_; }         ///< Of the output.
  int64_t row_bytes() const { return row_taps_ * channels_; }  ///< Of all taps.

  /// Rows are runs of bytes that begin so far behind their start, one behind the other.
  const std::vector<int64_t>& runs() const { return runs_; }
  /// Start of the row of output pixel `number` of all images; null when padding is among what it reads.
  const uint8_t* start(const uint8_t* images, int64_t number) const;

  /// Writes the row of output pixel `number` of all images, with `outside` for what is in the padding.
  void fill(const uint8_t* images, int64_t number, uint8_t outside, uint8_t* row) const;

 private:
  struct Position {
    int64_t image;
    int64_t d, h, w;  // of the input, where the window begins
  };
  Position position(int64_t number) const;

  std::vector<WindowAxis> axes_;  // depth, height, width
  int64_t images_, channels_;
  int64_t pixels_ = 1, inputs_ = 1;  // of an image
  int64_t row_taps_ = 1;
  std::vector<int64_t> runs_;
  bool are_in_place_ = true;  // one tap, neither strides nor padding: rows are pixels, found without divisions
};

}  // namespace autograph
