#include "autograph/nn/activations.h"

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"

namespace autograph::nn {
namespace {

auto between(double low, double high) {
  return [=](const Var& x) { return clip(x, scalar_like(x, low), scalar_like(x, high)); };
}

}  // namespace

Identity::Identity() : Function([](const Var& x) { return x; }) {}
Relu::Relu() : Function(relu) {}
Relu6::Relu6() : Function(between(0, 6)) {}
Sigmoid::Sigmoid() : Function(sigmoid) {}
LogSigmoid::LogSigmoid() : Function([](const Var& x) { return -softplus(-x); }) {}
Tanh::Tanh() : Function(static_cast<Var (*)(Var)>(autograph::tanh)) {}
Silu::Silu() : Function([](const Var& x) { return swish(x); }) {}
Gelu::Gelu(bool approximate) : Function([=](const Var& x) { return gelu(x, approximate); }) {}
Mish::Mish() : Function(mish) {}
Hardswish::Hardswish() : Function(hard_swish) {}
Hardsigmoid::Hardsigmoid() : Function([](const Var& x) { return hard_sigmoid(x, 1.0F / 6); }) {}
Hardtanh::Hardtanh(double low, double high) : Function(between(low, high)) {}
LeakyRelu::LeakyRelu(double slope) : Function([=](const Var& x) { return leaky_relu(x, static_cast<float>(slope)); }) {}
Elu::Elu(double alpha) : Function([=](const Var& x) { return elu(x, static_cast<float>(alpha)); }) {}
Selu::Selu() : Function([](const Var& x) { return selu(x); }) {}
Celu::Celu(double alpha) : Function([=](const Var& x) { return celu(x, static_cast<float>(alpha)); }) {}
Softplus::Softplus() : Function(softplus) {}
Softsign::Softsign() : Function(softsign) {}
Softmax::Softmax(int64_t axis) : Function([=](const Var& x) { return softmax(x, axis); }) {}
LogSoftmax::LogSoftmax(int64_t axis) : Function([=](const Var& x) { return log_softmax(x, axis); }) {}
Glu::Glu(int64_t axis)
    : Function([=](const Var& x) {
        const std::vector<Var> halves = split_evenly(x, 2, axis);
        return halves[0] * sigmoid(halves[1]);
      }) {}

PRelu::PRelu(int64_t channels, double initial)
    : weight_(add_parameter("weight", {channels}, Init::constant(initial))) {}

Var PRelu::forward(const Var& x) {
  const Var weight = weight_.beside(x);
  if (weight_.dims()[0] == 1 || !x.shape().has_rank() || x.rank() < 3) return prelu(x, weight);
  Dims dims(static_cast<size_t>(x.rank()) - 1, 1);
  dims[0] = weight_.dims()[0];
  return prelu(x, reshape(weight, dims));
}

}  // namespace autograph::nn
