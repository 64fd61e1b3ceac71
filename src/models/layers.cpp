#include "models/layers.h"

#include <cmath>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"

namespace autograph {
namespace {

std::vector<int64_t> pads_of(Padding padding, const Extents& kernel) {
  if (padding == Padding::valid) return {};
  return {kernel[0] / 2, kernel[1] / 2, kernel[0] / 2, kernel[1] / 2};
}

PoolOptions options_of(const PoolSpec& spec) {
  return {.kernel = {spec.kernel, spec.kernel},
          .strides = {spec.stride, spec.stride},
          .pads = pads_of(spec.padding, {spec.kernel, spec.kernel})};
}

float deviation_of(float gain, int64_t fan_in) { return gain / std::sqrt(static_cast<float>(fan_in)); }

}  // namespace

std::string Layers::full_name(const std::string& name) const {
  const std::string& scope = ProvenanceScope::current();
  return scope.empty() ? name : scope + "/" + name;
}

Var Layers::image(const Dims& dims, const std::string& name) const {
  return input(*graph_, DType::f32, Shape::of(dims), name);
}

Var Layers::parameter(const std::string& name, const Dims& dims, float deviation, float mean) const {
  const std::string full = full_name(name);
  return constant(*graph_, weights_.normal(full, dims, mean, deviation), full);
}

Var Layers::uniform_parameter(const std::string& name, const Dims& dims, float low, float high) const {
  const std::string full = full_name(name);
  return constant(*graph_, weights_.uniform(full, dims, low, high), full);
}

Var Layers::conv(const std::string& name, Var x, const ConvSpec& spec) const {
  const ProvenanceScope scope(name);
  const int64_t in = x.dim(1) / spec.groups;
  const float deviation = deviation_of(spec.gain, in * spec.kernel[0] * spec.kernel[1]);
  const Var weight = parameter("weight", {spec.out, in, spec.kernel[0], spec.kernel[1]}, deviation);
  const Var bias = spec.bias ? parameter("bias", {spec.out}, 0.1F) : Var();
  return autograph::conv(
      x, weight, bias,
      {.strides = {spec.stride, spec.stride}, .pads = pads_of(spec.padding, spec.kernel), .group = spec.groups});
}

Var Layers::conv_relu(const std::string& name, Var x, const ConvSpec& spec) const {
  const Var y = conv(name, x, spec);
  const ProvenanceScope scope(name);
  return relu(y);
}

Var Layers::conv_norm(const std::string& name, Var x, const ConvSpec& spec, float scale) const {
  return batch_norm(name + "_bn", conv(name, x, spec), scale);
}

Var Layers::conv_norm_relu(const std::string& name, Var x, const ConvSpec& spec) const {
  const Var y = conv_norm(name, x, spec);
  const ProvenanceScope scope(name);
  return relu(y);
}

Var Layers::batch_norm(const std::string& name, Var x, float scale) const {
  const ProvenanceScope scope(name);
  const Dims channels = {x.dim(1)};
  const Var weight = uniform_parameter("weight", channels, 0.8F * scale, 1.2F * scale);
  const Var bias = parameter("bias", channels, 0.1F * scale);
  const Var mean = parameter("running_mean", channels, 0.1F);
  const Var variance = uniform_parameter("running_var", channels, 0.5F, 1.5F);
  return batch_normalization(x, weight, bias, mean, variance);
}

Var Layers::layer_norm(const std::string& name, Var x, float epsilon) const {
  const ProvenanceScope scope(name);
  const Dims extent = {x.dim(-1)};
  const Var weight = uniform_parameter("weight", extent, 0.8F, 1.2F);
  const Var bias = parameter("bias", extent, 0.1F);
  return layer_normalization(x, weight, bias, -1, epsilon);
}

Var Layers::linear(const std::string& name, Var x, int64_t out, float gain) const {
  const Var y = project(name, x, out, gain);
  const ProvenanceScope scope(name);
  return add(y, parameter("bias", {out}, 0.1F));
}

Var Layers::project(const std::string& name, Var x, int64_t out, float gain) const {
  const ProvenanceScope scope(name);
  const int64_t in = x.dim(-1);
  return matmul(x, parameter("weight", {in, out}, deviation_of(gain, in)));
}

Var Layers::gated_feed_forward(Var x, int64_t inner) const {
  const Var gate = project("gate", x, inner, kReluGain);
  const Var up = project("up", x, inner);
  return project("down", mul(mul(gate, sigmoid(gate)), up), x.dim(-1));
}

Var Layers::self_attention(Var x, int64_t heads, Var mask) const {
  const ProvenanceScope scope("attention");
  const int64_t batch = x.dim(0);
  const int64_t tokens = x.dim(1);
  const int64_t width = x.dim(2);
  const int64_t head_width = width / heads;
  const auto by_head = [&](const std::string& name, const std::vector<int64_t>& perm) {
    return transpose(reshape(linear(name, x, width), {batch, tokens, heads, head_width}), perm);
  };
  const Var q = by_head("query", {0, 2, 1, 3});
  const Var k = by_head("key", {0, 2, 3, 1});
  const Var v = by_head("value", {0, 2, 1, 3});
  Var scores = matmul(q, k);
  scores = mul(scores, scalar_like(scores, 1.0 / std::sqrt(static_cast<double>(head_width))));
  if (mask.is_valid()) scores = add(scores, mask);
  const Var mixed = matmul(softmax(scores), v);
  return linear("output", reshape(transpose(mixed, {0, 2, 1, 3}), {batch, tokens, width}), width);
}

Var Layers::causal_mask(int64_t tokens) const {
  std::vector<float> elements(static_cast<size_t>(tokens * tokens), 0.0F);
  for (int64_t row = 0; row < tokens; ++row) {
    for (int64_t column = row + 1; column < tokens; ++column) {
      elements[static_cast<size_t>(row * tokens + column)] = -1e9F;
    }
  }
  return constant(*graph_, Tensor::of<float>({tokens, tokens}, elements), "causal_mask");
}

Var Layers::max_pool(Var x, const PoolSpec& spec) const { return autograph::max_pool(x, options_of(spec)); }

Var Layers::average_pool(Var x, const PoolSpec& spec) const { return autograph::average_pool(x, options_of(spec)); }

Var Layers::pool_to_vector(Var x) const { return reshape(global_average_pool(x), {x.dim(0), x.dim(1)}); }

}  // namespace autograph
