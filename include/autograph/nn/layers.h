// Layers with the parameters, shapes and defaults of torch.nn.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "autograph/nn/module.h"

namespace autograph::nn {

/// One number for each spatial axis, or one for all of them.
using Sizes = std::vector<int64_t>;

/// x A^T + b: weight [out, in], bias [out]; x [..., in].
class Linear : public Module {
 public:
  Linear(int64_t in, int64_t out, bool bias = true);
  Var forward(const Var& x) override;

 private:
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

/// What stands around an image, under torch's names.
enum class PaddingMode : uint8_t {
  zeros,
  reflect,    ///< The image mirrored at its outermost elements.
  replicate,  ///< Its outermost elements.
  circular,   ///< Its other side.
};

/// How a convolution slides.
struct ConvSettings {
  Sizes stride = {1};
  Sizes padding = {0};
  Sizes dilation = {1};
  int64_t groups = 1;
  bool bias = true;
  Sizes output_padding = {0};                     ///< Of transposed convolutions: added at the end.
  PaddingMode padding_mode = PaddingMode::zeros;  ///< Transposed convolutions have zeros alone.
  /// Instead of `padding`: what keeps extents, torch's padding="same". Of convolutions with stride 1.
  bool keeps_extents = false;
};

/// Convolution of x [n, in, spatial...]: weight [out, in / groups, kernel...]. conv1d() and so on have the rank in
/// their name; this class takes it from the kernel, which has a number for each axis.
class Conv : public Module {
 public:
  Conv(int64_t in, int64_t out, Sizes kernel, ConvSettings settings = {});
  Var forward(const Var& x) override;

 private:
  size_t axes_;
  ConvSettings settings_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

/// Convolutions of one, two and three spatial axes; one number in `kernel` stands for all of them.
struct Conv1d : Conv {
  Conv1d(int64_t in, int64_t out, Sizes kernel, ConvSettings settings = {});
};
struct Conv2d : Conv {
  Conv2d(int64_t in, int64_t out, Sizes kernel, ConvSettings settings = {});
};
struct Conv3d : Conv {
  Conv3d(int64_t in, int64_t out, Sizes kernel, ConvSettings settings = {});
};

/// Transposed convolution: weight [in, out / groups, kernel...].
class ConvTranspose : public Module {
 public:
  ConvTranspose(int64_t in, int64_t out, Sizes kernel, ConvSettings settings = {});
  Var forward(const Var& x) override;

 private:
  size_t axes_;
  ConvSettings settings_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;
};

/// How a pool slides.
struct PoolSettings {
  Sizes stride = {};  ///< Empty: the kernel.
  Sizes padding = {0};
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< Of averages: padding counts in the divisor.
};

/// Largest element of each window of x [n, c, spatial...].
class MaxPool : public Module {
 public:
  explicit MaxPool(Sizes kernel, PoolSettings settings = {});
  Var forward(const Var& x) override;
  /// Beside it where each element comes from: its place (i64) among those of its channel, torch's return_indices.
  std::pair<Var, Var> with_indices(const Var& x);

 private:
  Sizes kernel_;
  PoolSettings settings_;
};

/// Puts what MaxPool with the same settings has taken back to where it was, among zeros.
class MaxUnpool : public Module {
 public:
  explicit MaxUnpool(Sizes kernel, PoolSettings settings = {});
  /// `indices`: those of with_indices(). `extents`: all of what was pooled, where that was more than whole windows.
  Var unpool(const Var& y, const Var& indices, const Dims& extents = {});

 private:
  Sizes kernel_;
  PoolSettings settings_;
};

/// Mean of each window.
class AvgPool : public Module {
 public:
  explicit AvgPool(Sizes kernel, PoolSettings settings = {});
  Var forward(const Var& x) override;

 private:
  Sizes kernel_;
  PoolSettings settings_;
};

/// What adaptive pools share. From x [n, c, spatial...] they make `output` windows along each spatial axis, which
/// cover it as evenly as may be and may overlap: window i goes from floor(i * extent / output) to ceil((i + 1) * extent
/// / output) - 1. An output of 0 is the extent of x. Extents must be known, but for outputs of 1.
class AdaptivePool : public Module {
 public:
  Var forward(const Var& x) override;

 protected:
  AdaptivePool(Sizes output, bool is_max) : output_(std::move(output)), is_max_(is_max) {}

 private:
  Var pooled(const Var& x, const Sizes& kernel, const Sizes& stride) const;
  Var pooled_along(const Var& x, size_t axis, int64_t output) const;

  Sizes output_;
  bool is_max_;
};

/// torch.nn.AdaptiveAvgPool1d to 3d.
struct AdaptiveAvgPool : AdaptivePool {
  explicit AdaptiveAvgPool(Sizes output) : AdaptivePool(std::move(output), false) {}
};
/// torch.nn.AdaptiveMaxPool1d to 3d.
struct AdaptiveMaxPool : AdaptivePool {
  explicit AdaptiveMaxPool(Sizes output) : AdaptivePool(std::move(output), true) {}
};

/// Mean over all positions: [n, c, spatial...] to [n, c].
struct GlobalAvgPool : Module {
  Var forward(const Var& x) override;
};

/// [n, d1, d2...] to [n, d1 * d2...].
struct Flatten : Module {
  Var forward(const Var& x) override;
};

/// How batch norms work.
struct BatchNormSettings {
  double epsilon = 1e-5;
  double momentum = 0.1;  ///< Weight of the new statistics.
  bool affine = true;     ///< Has weight and bias?
};

/// torch.nn.BatchNorm1d to 3d: normalises each channel of x [n, c, spatial...], while training with the statistics of
/// the batch, which running_mean and running_var follow, else with those.
class BatchNorm : public Module {
 public:
  explicit BatchNorm(int64_t channels, BatchNormSettings settings = {});
  Var forward(const Var& x) override;

 private:
  Var with_batch_statistics(const Var& x, const Var& scale, const Var& bias) const;

  BatchNormSettings settings_;
  int64_t channels_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
  Parameter& running_mean_;
  Parameter& running_var_;
  Parameter& num_batches_;
};

/// Normalises over the last dims, which have these extents: weight and bias of that shape.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(Dims extents, double epsilon = 1e-5, bool affine = true);
  Var forward(const Var& x) override;

 private:
  Dims extents_;
  double epsilon_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

/// Divides by the root of the mean square over the last dims.
class RmsNorm : public Module {
 public:
  /// torch takes the spacing of f32 at 1 when no epsilon is said.
  explicit RmsNorm(Dims extents, double epsilon = 0x1p-23);
  Var forward(const Var& x) override;

 private:
  Dims extents_;
  double epsilon_;
  Parameter& weight_;
};

/// Normalises groups of neighbouring channels of x [n, c, spatial...].
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t groups, int64_t channels, double epsilon = 1e-5);
  Var forward(const Var& x) override;

 private:
  int64_t groups_;
  double epsilon_;
  Parameter& weight_;
  Parameter& bias_;
};

/// Normalises each channel of each sample by itself.
class InstanceNorm : public Module {
 public:
  explicit InstanceNorm(int64_t channels, double epsilon = 1e-5, bool affine = false);
  Var forward(const Var& x) override;

 private:
  int64_t channels_;
  double epsilon_;
  Parameter* weight_ = nullptr;
  Parameter* bias_ = nullptr;
};

/// Rows of weight [count, width], which begin normally distributed, at the indices in x. The row `padding_index`, which
/// counts from the end where it is negative, begins with zeros and gets no gradient: torch's padding_idx.
class Embedding : public Module {
 public:
  Embedding(int64_t count, int64_t width, std::optional<int64_t> padding_index = {});
  Var forward(const Var& x) override;

 private:
  std::optional<int64_t> padding_index_;
  Parameter& weight_;
};

/// While training, each element becomes 0 with probability `ratio` and the others grow by 1 / (1 - ratio). What is
/// dropped depends on the seed of the outermost module, the number of runs (the state "random/step") and the place in
/// the graph: it is the same for every number of threads, and again after a resumed run. Of eager values it depends on
/// the seed, the path, and how often the module has been called.
class Dropout : public Module {
 public:
  explicit Dropout(double ratio = 0.5);
  Var forward(const Var& x) override;

 protected:
  /// Drops all behind the first `axes` axes together; 0: elements.
  Dropout(double ratio, int64_t axes);
  double ratio() const { return ratio_; }
  bool drops() const { return ratio_ > 0 && is_training(); }
  /// Draws what stays of x: bools that broadcast to it.
  Var draw_kept(const Var& x);

 private:
  friend NamedTensors dropout_counts(const Module& module);
  friend void restore_dropout_counts(Module& module, const NamedTensors& tensors);
  double ratio_;
  int64_t axes_;
  Var count_;  // calls on eager values
};

/// How often dropouts in `module` have been called on eager values, as "random/calls/PATH" (f64 []): with them in its
/// checkpoints, beside state_dict() and EagerOptimizer::states(), a run goes on bit for bit. In graphs a state counts.
NamedTensors dropout_counts(const Module& module);
/// Sets them; dropouts that `tensors` does not name stay as they are.
void restore_dropout_counts(Module& module, const NamedTensors& tensors);

/// Drops whole channels of x [n, c, ...]: torch.nn.Dropout1d to 3d.
struct ChannelDropout : Dropout {
  explicit ChannelDropout(double ratio = 0.5) : Dropout(ratio, 2) {}
};

/// Drops whole samples of x [n, ...], for the branches of a residual network: stochastic depth (Huang et al. 2016),
/// timm's DropPath.
struct DropPath : Dropout {
  explicit DropPath(double ratio) : Dropout(ratio, 1) {}
};

/// Of networks of selu (Klambauer et al. 2017): what is dropped becomes what selu gives far below 0, and all are scaled
/// and moved so that mean and variance stay. torch.nn.AlphaDropout.
class AlphaDropout : public Dropout {
 public:
  explicit AlphaDropout(double ratio = 0.5) : AlphaDropout(ratio, 0) {}
  Var forward(const Var& x) override;

 protected:
  AlphaDropout(double ratio, int64_t axes) : Dropout(ratio, axes) {}
};

/// Drops whole channels so: torch.nn.FeatureAlphaDropout.
struct ChannelAlphaDropout : AlphaDropout {
  explicit ChannelAlphaDropout(double ratio = 0.5) : AlphaDropout(ratio, 2) {}
};

}  // namespace autograph::nn
