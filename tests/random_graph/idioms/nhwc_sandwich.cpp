// Networks of TensorFlow as tf2onnx writes them: NHWC values, each convolution between two transposes, biases added on
// the last axis, pads apart, means over axes 1 and 2.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

Var to_nchw(Var x) { return transpose(x, {0, 3, 1, 2}); }
Var to_nhwc(Var x) { return transpose(x, {0, 2, 3, 1}); }

Var sandwiched_conv(IdiomGraph& g, Var x) {
  const int64_t in = x.dim(3), out = g.channels();
  const int64_t size = g.one_of<int64_t>({1, 3, 3, 5});
  ConvOptions options;
  Var from = x;
  if (size > 1 && g.chance(30)) {
    from = pad(x, {0, 1, 1, 0, 0, 2, 1, 0});
  } else {
    options.auto_pad = "SAME_UPPER";
  }
  if (g.chance(25)) options.strides = {2, 2};
  // Weights are [H, W, C, M] in TensorFlow.
  const Var w =
      g.chance(30) ? transpose(g.weight({size, size, in, out}), {3, 2, 0, 1}) : g.weight({out, in, size, size});
  if (size > 1 && !options.auto_pad.starts_with("SAME")) options.pads = {size / 2, size / 2, size / 2, size / 2};
  return to_nhwc(conv(to_nchw(from), w, g.chance(30) ? g.weight({out}) : Var(), options));
}

Var sandwiched_depthwise(IdiomGraph& g, Var x) {
  const int64_t in = x.dim(3);
  const Var w = g.chance(50) ? reshape(g.weight({3, 3, in, 1}, -0.5, 0.5), std::vector<int64_t>{in, 1, 3, 3})
                             : g.weight({in, 1, 3, 3});
  return to_nhwc(conv(to_nchw(x), w, {}, {.group = in, .auto_pad = "SAME_UPPER"}));
}

Var sandwiched_pool(IdiomGraph& g, Var x) {
  const PoolOptions options{.kernel = {2, 2}, .strides = {2, 2}, .auto_pad = "SAME_UPPER"};
  return to_nhwc(g.chance(50) ? max_pool(to_nchw(x), options) : average_pool(to_nchw(x), options));
}

Var gate_behind(IdiomGraph& g, Var x) {
  const int64_t channels = x.dim(3);
  const Var pooled = reduce_mean(x, {1, 2}, g.chance(50));
  const Var row = pooled.rank() == 4 ? reshape(pooled, std::vector<int64_t>{-1, channels}) : pooled;
  const Var hidden = relu(add(matmul(row, g.weight({channels, 4})), g.weight({4})));
  const Var gate = sigmoid(add(matmul(hidden, g.weight({4, channels})), g.weight({channels})));
  return mul(x, reshape(gate, std::vector<int64_t>{-1, 1, 1, channels}));
}

Var epilogue(IdiomGraph& g, Var y) {
  const int64_t channels = y.dim(3);
  const auto vector = [&](double low, double high) {
    return g.chance(60) ? g.weight({channels}, low, high) : g.weight({1, 1, 1, channels}, low, high);
  };
  switch (g.between(0, 6)) {
    case 0: return add(y, vector(-1, 1));
    case 1: return mul(y, vector(0.5, 1.5));
    case 2: return clip(add(y, vector(-1, 1)), scalar_like(y, 0), scalar_like(y, 6));
    case 3: return leaky_relu(y, 0.2F);
    case 4: return add(mul(y, vector(0.5, 1.5)), vector(-1, 1));
    case 5: return sub(y, vector(-1, 1));
    default: return add_activation(g, y);
  }
}

// As keras' Conv1D: the row becomes an image of height 1.
Var one_dimensional(IdiomGraph& g, Var x) {
  const int64_t in = x.dim(2), out = g.channels();
  const Var image = unsqueeze(x, {1});  // [N, 1, L, C]
  const Var y = conv(to_nchw(image), g.weight({out, in, 1, 3}), {}, {.auto_pad = "SAME_UPPER"});
  const Var row = squeeze(to_nhwc(y), {1});
  return add_activation(g, add(row, g.weight({out})));
}

}  // namespace

void add_nhwc_sandwich(IdiomGraph& g) {
  if (g.chance(15)) return g.leave(one_dimensional(g, g.sequence()));
  Var x = to_nhwc(g.image());
  for (int64_t k = g.between(1, 3); k > 0; --k) {
    const Var before = x;
    const int64_t kind = g.between(0, 9);
    if (kind < 5) x = sandwiched_conv(g, x);
    if (kind == 5 || kind == 6) x = sandwiched_depthwise(g, x);
    if (kind == 7) x = sandwiched_pool(g, x);
    if (kind == 8) x = gate_behind(g, x);
    for (int64_t ops = g.between(0, 3); ops > 0; --ops) x = epilogue(g, x);
    if (before.type() == x.type() && g.chance(40)) x = add(x, before);
  }
  g.leave(g.chance(80) ? to_nchw(x) : reduce_mean(x, {1, 2}, false));
}

}  // namespace autograph
