// Small convolutional networks for images of classes.
#pragma once

#include <cstdint>
#include <memory>

#include "autograph/nn/module.h"

namespace autograph {

/// What the images are, and how wide the network is.
struct ImageModelSizes {
  int64_t channels = 1;
  int64_t side = 28;
  int64_t classes = 10;
  double mean = 0;  ///< Of all pixels; they are normalised by the model itself.
  double deviation = 1;
  int64_t width = 32;  ///< Channels of the first convolution; twice as many in the second.
  int64_t hidden = 128;
  double dropout = 0.3;  ///< In front of the last layer.
};

/// Two convolutions with pools, two linear layers. Takes pixels in any shape that has channels * side * side of them.
std::unique_ptr<nn::Module> small_conv_net(const ImageModelSizes& sizes);

/// Three stages of two convolutions with batch norms, for colour images.
std::unique_ptr<nn::Module> vgg_like_net(const ImageModelSizes& sizes);

}  // namespace autograph
