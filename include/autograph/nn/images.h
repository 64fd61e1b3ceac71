// Layers that move or resample the pixels of x [n, c, spatial...].
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/nn/layers.h"
#include "autograph/nn/module.h"

namespace autograph::nn {

/// torch.nn.ZeroPad, ConstantPad, ReflectionPad, ReplicationPad and CircularPad: `pads` are those before and behind the
/// last axis, then those of the one before it and so on, or one number for both sides of each spatial axis. `value`
/// stands in for zeros.
class Pad : public Module {
 public:
  explicit Pad(Sizes pads, PaddingMode mode = PaddingMode::zeros, double value = 0);
  Var forward(const Var& x) override;

 private:
  Sizes pads_;
  PaddingMode mode_;
  double value_;
};

/// [n, c * factor^2, h, w] to [n, c, h * factor, w * factor].
struct PixelShuffle : Function {
  explicit PixelShuffle(int64_t factor);
};
/// Back.
struct PixelUnshuffle : Function {
  explicit PixelUnshuffle(int64_t factor);
};
/// The first channel of each group, then the second of each, and so on.
struct ChannelShuffle : Function {
  explicit ChannelShuffle(int64_t groups);
};

/// How elements between those of x are found.
enum class Sampling : uint8_t { nearest, linear, cubic };

/// To which extents images are brought: one of both lists, with a number for each spatial axis or one for all.
struct UpsampleSettings {
  std::vector<double> factor = {};
  Sizes size = {};
  Sampling mode = Sampling::nearest;
  bool align_corners = false;  ///< The outermost elements lie on each other; not of nearest ones.
};

/// torch.nn.Upsample and functional.interpolate, without antialiasing; smaller images, too.
class Upsample : public Module {
 public:
  explicit Upsample(UpsampleSettings settings);
  Var forward(const Var& x) override;

 private:
  UpsampleSettings settings_;
};

}  // namespace autograph::nn
