// Norms.
#include "autograph/nn/layers.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/binding.h"
#include "ops/defs.h"

namespace autograph::nn {
namespace {

// A parameter, or what it is without one.
Var or_constant(const Parameter* parameter, const Var& like, const Dims& dims, float otherwise) {
  if (parameter) return parameter->beside(like);
  Tensor tensor = Tensor::empty(DType::f32, dims);
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), otherwise);
  return constant_like(like, std::move(tensor));
}

Tensor filled(int64_t count, float value) {
  return Tensor::of<float>({count}, std::vector<float>(static_cast<size_t>(count), value));
}

}  // namespace

BatchNorm::BatchNorm(int64_t channels, BatchNormSettings settings)
    : settings_(settings),
      channels_(channels),
      running_mean_(add_buffer("running_mean", filled(channels, 0))),
      running_var_(add_buffer("running_var", filled(channels, 1))),
      num_batches_(add_buffer("num_batches_tracked", Tensor::scalar(int64_t{0}))) {
  if (!settings_.affine) return;
  weight_ = &add_parameter("weight", {channels}, Init::ones());
  bias_ = &add_parameter("bias", {channels}, Init::zeros());
}

Var BatchNorm::forward(const Var& x) {
  const Var scale = or_constant(weight_, x, {channels_}, 1), bias = or_constant(bias_, x, {channels_}, 0);
  if (is_training()) return with_batch_statistics(x, scale, bias);
  return batch_normalization(x, scale, bias, running_mean_.beside(x), running_var_.beside(x),
                             static_cast<float>(settings_.epsilon));
}

// ONNX averages the variance of the batch, PyTorch that of a sample: n / (n - 1) of it.
Var BatchNorm::with_batch_statistics(const Var& x, const Var& scale, const Var& bias) const {
  const Var mean = running_mean_.latest(x), variance = running_var_.latest(x);
  const auto kept = static_cast<float>(1 - settings_.momentum);
  const std::vector<Var> outputs = apply_all(
      batch_normalization_def(), {x, scale, bias, mean, variance},
      {{"epsilon", static_cast<float>(settings_.epsilon)}, {"momentum", kept}, {"training_mode", int64_t{1}}}, 3);
  const Var others =
      max({cast(size(x), variance.dtype()) / static_cast<double>(channels_) - 1, scalar_like(variance, 1)});
  running_mean_.update(outputs[1]);
  running_var_.update(outputs[2] + (outputs[2] - variance * double{kept}) / others);
  num_batches_.update(num_batches_.latest(x) + 1);
  return outputs[0];
}

LayerNorm::LayerNorm(Dims extents, double epsilon, bool affine) : extents_(std::move(extents)), epsilon_(epsilon) {
  AG_CHECK_USER(!extents_.empty(), ValueError, "[nn] layer norm: expected at least one extent");
  if (!affine) return;
  weight_ = &add_parameter("weight", extents_, Init::ones());
  bias_ = &add_parameter("bias", extents_, Init::zeros());
}

Var LayerNorm::forward(const Var& x) {
  return layer_normalization(x, or_constant(weight_, x, extents_, 1), bias_ ? bias_->beside(x) : Var(),
                             -static_cast<int64_t>(extents_.size()), static_cast<float>(epsilon_));
}

RmsNorm::RmsNorm(Dims extents, double epsilon)
    : extents_(std::move(extents)), epsilon_(epsilon), weight_(add_parameter("weight", extents_, Init::ones())) {
  AG_CHECK_USER(!extents_.empty(), ValueError, "[nn] rms norm: expected at least one extent");
}

Var RmsNorm::forward(const Var& x) {
  return rms_normalization(x, weight_.beside(x), -static_cast<int64_t>(extents_.size()), static_cast<float>(epsilon_));
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, double epsilon)
    : groups_(groups),
      epsilon_(epsilon),
      weight_(add_parameter("weight", {channels}, Init::ones())),
      bias_(add_parameter("bias", {channels}, Init::zeros())) {
  AG_CHECK_USER(groups >= 1 && channels % groups == 0, ValueError,
                "[nn] group norm: expected groups that divide {} channels, got {}", channels, groups);
}

Var GroupNorm::forward(const Var& x) {
  return group_normalization(x, weight_.beside(x), bias_.beside(x), groups_, static_cast<float>(epsilon_));
}

InstanceNorm::InstanceNorm(int64_t channels, double epsilon, bool affine) : channels_(channels), epsilon_(epsilon) {
  if (!affine) return;
  weight_ = &add_parameter("weight", {channels}, Init::ones());
  bias_ = &add_parameter("bias", {channels}, Init::zeros());
}

Var InstanceNorm::forward(const Var& x) {
  return instance_normalization(x, or_constant(weight_, x, {channels_}, 1), or_constant(bias_, x, {channels_}, 0),
                                static_cast<float>(epsilon_));
}

}  // namespace autograph::nn
