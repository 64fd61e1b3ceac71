// What stands behind convolutions and products: activations, scalars and vectors per channel on either side, residuals
// of equal and of broadcast shape.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

// Exporters write exponents as numbers of any dtype.
Var power(IdiomGraph& g, Var x) {
  const int64_t exponent = g.chance(70) ? 2 : 3;
  switch (g.between(0, 3)) {
    case 0: return pow(x, g.constant(Tensor::scalar(static_cast<int32_t>(exponent))));
    case 1: return pow(x, g.constant(Tensor::scalar(exponent)));
    default: return pow(x, g.number(x, static_cast<double>(exponent)));
  }
}

Var clipped(IdiomGraph& g, Var x, double low, double high) {
  return clip(x, g.chance(10) ? Var() : scalar_like(x, low), g.chance(10) ? Var() : scalar_like(x, high));
}

Var spelled_out(IdiomGraph& g, Var x) {
  const auto c = [&](double value) { return g.number(x, value); };
  switch (g.between(0, 7)) {
    case 0: return mul(x, sigmoid(x));
    case 1: return div(mul(x, clip(add(x, c(3)), scalar_like(x, 0), scalar_like(x, 6))), c(6));
    case 2: return mul(x, mul(clip(add(x, c(3)), scalar_like(x, 0), scalar_like(x, 6)), c(1.0 / 6)));
    case 3: return mul(mul(x, add(erf(div(x, c(1.41421356))), c(1))), c(0.5));
    case 4: {
      const Var cubic = add(x, mul(c(0.044715), pow(x, g.chance(20) ? g.constant(Tensor::scalar(int64_t{3})) : c(3))));
      return mul(mul(c(0.5), x), add(c(1), tanh(mul(c(0.7978845608), cubic))));
    }
    case 5: return mul(x, tanh(softplus(x)));
    case 6: return mul(x, hard_sigmoid(x, 1.0F / 6, 0.5F));
    default: return mul(x, sigmoid(mul(x, c(1.702))));
  }
}

// The other operand of a sum or product behind `x`.
Var operand(IdiomGraph& g, Var x, int64_t axis, double low, double high) {
  switch (g.between(0, 9)) {
    case 0:
    case 1:
    case 2:
    case 3: return g.number(x, g.real(low, high));
    case 4:
    case 5:
    case 6: return g.per_channel(x, axis, low, high);
    case 7: {
      const Var residual = g.earlier(x.type());
      return residual.is_valid() && low < 0 ? residual : g.number(x, g.real(low, high));
    }
    default: break;
  }
  // A tensor that broadcasts: some extents 1, leading ones dropped.
  if (!x.type().is_static()) return g.per_channel(x, axis, low, high);
  Dims dims = draw_broadcastable(g.random(), x.shape().static_dims());
  return g.chance(70) ? g.weight_like(x, dims, low, high) : g.input(x.dtype(), dims, low, high);
}

Var either_side(IdiomGraph& g, Var (*op)(Var, Var), Var x, Var other) {
  return g.chance(50) ? op(x, other) : op(other, x);
}

Var binary(IdiomGraph& g, Var x, int64_t axis) {
  switch (g.between(0, 9)) {
    case 0:
    case 1:
    case 2: return either_side(g, add, x, operand(g, x, axis, -2, 2));
    case 3:
    case 4:
    case 5: return either_side(g, mul, x, operand(g, x, axis, -2, 2));
    case 6: return either_side(g, sub, x, operand(g, x, axis, -2, 2));
    case 7: return div(x, operand(g, x, axis, 0.5, 2));
    case 8: return max({x, operand(g, x, axis, -1, 1)});
    default: return min({operand(g, x, axis, -1, 1), x});
  }
}

}  // namespace

Var add_activation(IdiomGraph& g, Var x) {
  switch (g.between(0, 19)) {
    case 0:
    case 1:
    case 2: return relu(x);
    case 3: return leaky_relu(x, static_cast<float>(g.real(0.01, 0.3)));
    case 4: return clipped(g, x, 0, 6);
    case 5: return clipped(g, x, g.real(-2, 0), g.real(0, 2));
    case 6: return sigmoid(x);
    case 7: return tanh(x);
    case 8: return hard_sigmoid(x, static_cast<float>(g.real(0.1, 0.3)), 0.5F);
    case 9: return hard_swish(x);
    case 10: return elu(x, static_cast<float>(g.real(0.3, 1.5)));
    case 11: return g.chance(50) ? selu(x) : celu(x, 0.7F);
    case 12: return gelu(x, g.chance(50));
    case 13: return swish(x, static_cast<float>(g.real(0.5, 1.5)));
    case 14: return mish(x);
    case 15: return g.chance(50) ? softplus(x) : softsign(x);
    case 16:
      return prelu(
          x, x.rank() == 4 && x.shape()[1].is_known() ? g.weight_like(x, {x.dim(1), 1, 1}) : g.weight_like(x, {1}));
    default: return spelled_out(g, x);
  }
}

Var add_epilogue_op(IdiomGraph& g, Var x, int64_t axis) {
  switch (g.between(0, 15)) {
    case 0: return g.chance(50) ? abs(x) : neg(x);
    case 1: return g.chance(50) ? mul(x, x) : power(g, x);
    case 2: return sqrt(add(abs(x), g.number(x, 0.1)));
    case 3: return axis == 1 && x.rank() == 4 ? add_batch_norm(g, x) : erf(x);
    case 4: return exp(clip(x, scalar_like(x, -3), scalar_like(x, 3)));
    case 5:
    case 6:
    case 7:
    case 8:
    case 9: return add_activation(g, x);
    default: return binary(g, x, axis);
  }
}

Var add_batch_norm(IdiomGraph& g, Var x) {
  const int64_t channels = x.dim(1);
  const auto vector = [&](double low, double high) { return g.weight_like(x, {channels}, low, high); };
  const float epsilon = g.one_of({1e-5F, 1e-3F, 0.0F});
  return batch_normalization(x, vector(-1.5, 1.5), vector(-1, 1), vector(-1, 1), vector(0.1, 2), epsilon);
}

}  // namespace autograph
