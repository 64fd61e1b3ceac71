// Activations as modules, under torch's names, for networks that are written as lists of modules. Functions of the same
// names (autograph/ops/activation.h) can be used wherever there is no list.
#pragma once

#include <cstdint>

#include "autograph/nn/module.h"

namespace autograph::nn {

/// x.
struct Identity : Function {
  Identity();
};
struct Relu : Function {
  Relu();
};
/// relu up to 6.
struct Relu6 : Function {
  Relu6();
};
struct Sigmoid : Function {
  Sigmoid();
};
/// log(sigmoid(x)).
struct LogSigmoid : Function {
  LogSigmoid();
};
struct Tanh : Function {
  Tanh();
};
/// x * sigmoid(x).
struct Silu : Function {
  Silu();
};
/// Exact, or the tanh approximation.
struct Gelu : Function {
  explicit Gelu(bool approximate = false);
};
struct Mish : Function {
  Mish();
};
struct Hardswish : Function {
  Hardswish();
};
/// clamp(x / 6 + 1 / 2, 0, 1).
struct Hardsigmoid : Function {
  Hardsigmoid();
};
/// clamp(x, low, high).
struct Hardtanh : Function {
  explicit Hardtanh(double low = -1, double high = 1);
};
struct LeakyRelu : Function {
  explicit LeakyRelu(double slope = 0.01);
};
struct Elu : Function {
  explicit Elu(double alpha = 1);
};
struct Selu : Function {
  Selu();
};
struct Celu : Function {
  explicit Celu(double alpha = 1);
};
struct Softplus : Function {
  Softplus();
};
struct Softsign : Function {
  Softsign();
};
struct Softmax : Function {
  explicit Softmax(int64_t axis = -1);
};
struct LogSoftmax : Function {
  explicit LogSoftmax(int64_t axis = -1);
};
/// The first half along `axis` times the sigmoid of the second.
struct Glu : Function {
  explicit Glu(int64_t axis = -1);
};

/// x where it is above 0, else weight * x: weight [1], or one for each channel of x [n, c, ...].
class PRelu : public Module {
 public:
  explicit PRelu(int64_t channels = 1, double initial = 0.25);
  Var forward(const Var& x) override;

 private:
  Parameter& weight_;
};

}  // namespace autograph::nn
