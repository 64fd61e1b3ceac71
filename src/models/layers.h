// Layers with drawn weights: what the model files of this folder are written with.
//
// A layer opens a provenance scope of its own name, and its parameters are named after the whole scope path
// ("layer1/0/conv2/weight"), so that a value depends on where a layer sits and not on the order of construction.
// Weights are scaled by fan-in (He, Glorot), so that activations keep their magnitude through the depth.
#pragma once

#include <array>
#include <string>

#include "autograph/builder.h"
#include "models/weights.h"

namespace autograph {

/// Padding of a window over an odd kernel.
enum class Padding {
  same,   ///< kernel / 2 on both sides: ceil(extent / stride) positions.
  valid,  ///< None.
};

/// Height and width.
using Extents = std::array<int64_t, 2>;

/// Standard deviation of weights times sqrt(fan-in).
inline constexpr float kReluGain = 1.41421356F;  ///< Before a relu: E[y^2] stays, although half of the values go.
inline constexpr float kLinearGain = 1.0F;       ///< Before anything that keeps the variance.

/// A convolution over an image.
struct ConvSpec {
  int64_t out = 0;                  ///< Output channels.
  Extents kernel = {1, 1};          ///< Window.
  int64_t stride = 1;               ///< On both axes.
  Padding padding = Padding::same;  ///< Of the window.
  int64_t groups = 1;               ///< Divides input and output channels.
  bool bias = false;                ///< Adds a drawn bias?
  float gain = kReluGain;           ///< Scale of the weights.
};

/// A pool over an image.
struct PoolSpec {
  int64_t kernel = 3;               ///< Side of the window.
  int64_t stride = 1;               ///< On both axes.
  Padding padding = Padding::same;  ///< Averages leave padding out of the count.
};

/// Makes layers of one model in one graph.
class Layers {
 public:
  Layers(Graph& graph, std::string_view model) : graph_(&graph), weights_(model) {}

  Graph& graph() const { return *graph_; }
  const Weights& weights() const { return weights_; }

  /// An f32 graph input.
  Var image(const Dims& dims, const std::string& name = "input") const;
  /// A drawn constant of standard deviation `deviation` named after the current scope.
  Var parameter(const std::string& name, const Dims& dims, float deviation, float mean = 0) const;
  /// As parameter(), uniform between `low` and `high`.
  Var uniform_parameter(const std::string& name, const Dims& dims, float low, float high) const;

  Var conv(const std::string& name, Var x, const ConvSpec& spec) const;
  /// conv, relu.
  Var conv_relu(const std::string& name, Var x, const ConvSpec& spec) const;
  /// conv, batch_normalization.
  Var conv_norm(const std::string& name, Var x, const ConvSpec& spec, float scale = 1) const;
  /// conv, batch_normalization, relu.
  Var conv_norm_relu(const std::string& name, Var x, const ConvSpec& spec) const;
  /// Batch normalisation with drawn statistics (mean about 0, variance 0.5 to 1.5) and scales about `scale`.
  Var batch_norm(const std::string& name, Var x, float scale = 1) const;
  /// Normalises the last axis, with drawn scale and bias.
  Var layer_norm(const std::string& name, Var x, float epsilon = 1e-5F) const;
  /// [..., in] times [in, out], plus a bias.
  Var linear(const std::string& name, Var x, int64_t out, float gain = kLinearGain) const;
  /// As linear() without bias.
  Var project(const std::string& name, Var x, int64_t out, float gain = kLinearGain) const;
  /// down(silu(gate(x)) * up(x)) with `inner` columns between: the gated feed-forward part of decoders and experts.
  Var gated_feed_forward(Var x, int64_t inner) const;
  /// Self-attention of x [batch, token, width] with so many heads, under the scope "attention"; `mask` [token, token]
  /// is added to the scores when it is given.
  Var self_attention(Var x, int64_t heads, Var mask = {}) const;
  /// 0 where a token may look, a large negative number where it would look ahead: [tokens, tokens].
  Var causal_mask(int64_t tokens) const;
  /// Pools; the average leaves padding out of the count, as cuDNN does for TASO.
  Var max_pool(Var x, const PoolSpec& spec) const;
  Var average_pool(Var x, const PoolSpec& spec) const;
  /// [N, C, H, W] to [N, C]: mean over the image.
  Var pool_to_vector(Var x) const;

 private:
  std::string full_name(const std::string& name) const;
  Graph* graph_;
  Weights weights_;
};

/// What `block()` makes, under the scope `name`.
template <class Block>
Var scoped(const std::string& name, const Block& block) {
  const ProvenanceScope scope(name);
  return block();
}

}  // namespace autograph
