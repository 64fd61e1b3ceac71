// Blocks of convolutional networks: squeeze and excitation, residuals, branches that join, pools, upsampling.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

Var pointwise(IdiomGraph& g, Var x, int64_t out) {
  const Var bias = g.chance(70) ? g.weight({out}) : Var();
  return conv(x, g.weight({out, x.dim(1), 1, 1}), bias);
}

Var conv_norm(IdiomGraph& g, Var x, int64_t out) { return add_batch_norm(g, add_conv(g, x, out)); }

Var depthwise(IdiomGraph& g, Var x) {
  const int64_t size = g.one_of<int64_t>({3, 5});
  const int64_t pad = size / 2;
  return conv(x, g.weight({x.dim(1), 1, size, size}), g.chance(50) ? g.weight({x.dim(1)}) : Var(),
              {.pads = {pad, pad, pad, pad}, .group = x.dim(1)});
}

// The gate [N, C, 1, 1] of squeeze and excitation.
Var gate_of(IdiomGraph& g, Var x) {
  const int64_t channels = x.dim(1), inner = std::max<int64_t>(1, channels / g.one_of<int64_t>({2, 4, 8}));
  if (g.chance(25)) {  // as keras and torch's nn.Linear do
    const Var pooled = g.chance(50) ? flatten(global_average_pool(x)) : reduce_mean(x, {2, 3}, false);
    const Var hidden = relu(gemm(pooled, g.weight({channels, inner}), g.weight({inner})));
    const Var gate = sigmoid(gemm(hidden, g.weight({channels, inner}), g.weight({channels}), {.transpose_b = true}));
    return g.chance(50) ? unsqueeze(gate, {2, 3}) : reshape(gate, std::vector<int64_t>{-1, channels, 1, 1});
  }
  const Var pooled = g.chance(50) ? global_average_pool(x) : reduce_mean(x, {2, 3});
  const Var hidden = g.chance(75) ? relu(pointwise(g, pooled, inner)) : add_activation(g, pointwise(g, pooled, inner));
  const Var out = pointwise(g, hidden, channels);
  if (g.chance(60)) return sigmoid(out);
  if (g.chance(50)) return hard_sigmoid(out);
  return div(clip(add(out, g.number(out, 3)), scalar_like(out, 0), scalar_like(out, 6)), g.number(out, 6));
}

Var excited(IdiomGraph& g, Var x) {
  const Var gate = gate_of(g, x);
  const Var y = g.chance(50) ? mul(x, gate) : mul(gate, x);
  return g.chance(15) ? add(x, y) : y;
}

Var inverted_residual(IdiomGraph& g, Var x) {
  const int64_t wide = x.dim(1) * 2;
  const Var expanded = add_activation(g, add_batch_norm(g, pointwise(g, x, wide)));
  Var y = add_activation(g, add_batch_norm(g, depthwise(g, expanded)));
  if (g.chance(40)) y = excited(g, y);
  return add(x, add_batch_norm(g, pointwise(g, y, x.dim(1))));
}

Var basic_block(IdiomGraph& g, Var x) {
  const int64_t out = g.chance(60) ? x.dim(1) : g.channels();
  const Var first = relu(conv_norm(g, x, out));
  const Var second = conv_norm(g, first, out);
  const Var shortcut = out == x.dim(1) ? x : conv_norm(g, x, out);
  const Var sum = g.chance(50) ? add(second, shortcut) : add(shortcut, second);
  return g.chance(80) ? relu(sum) : add_activation(g, sum);
}

// YOLO's C2f: halves, one of which goes on and joins all that came of it.
Var split_and_join(IdiomGraph& g, Var x) {
  const int64_t half = g.one_of<int64_t>({4, 8, 5});
  const std::vector<Var> halves = split(swish(pointwise(g, x, 2 * half)), {half, half}, 1);
  std::vector<Var> parts = halves;
  for (int64_t k = g.between(1, 2); k > 0; --k) {
    const Var y = swish(add_conv(g, parts.back(), half));
    parts.push_back(g.chance(50) ? add(parts.back(), y) : y);
  }
  return swish(pointwise(g, concat(parts, 1), g.channels()));
}

Var dense_layer(IdiomGraph& g, Var x) {
  const Var y = add_conv(g, relu(add_batch_norm(g, x)), g.one_of<int64_t>({4, 8}));
  return relu(add_batch_norm(g, concat({x, y}, 1)));
}

// Scales of MobileOne and layer scale of ConvNeXt.
Var scaled_residual(IdiomGraph& g, Var x) {
  const Var y = add_activation(g, depthwise(g, x));
  return add(x, mul(g.per_channel(x, 1, -0.5, 0.5), pointwise(g, y, x.dim(1))));
}

Var pooled(IdiomGraph& g, Var x) {
  PoolOptions options{.kernel = {3, 3}, .pads = {1, 1, 1, 1}};
  if (g.chance(30)) options = {.kernel = {2, 2}, .pads = {0, 0, 1, 1}};
  if (g.chance(40)) options.strides = {2, 2};
  options.ceil_mode = g.chance(20);
  if (g.chance(50)) return max_pool(x, options);
  options.count_include_pad = g.chance(40);
  return average_pool(x, options);
}

Var inception(IdiomGraph& g, Var x) {
  const PoolOptions same{.kernel = {3, 3}, .pads = {1, 1, 1, 1}};
  std::vector<Var> parts{relu(pointwise(g, x, g.channels())), relu(add_conv(g, x, g.channels()))};
  if (g.chance(60)) parts.push_back(pointwise(g, g.chance(50) ? max_pool(x, same) : average_pool(x, same), 3));
  if (g.chance(30)) parts.push_back(x);
  return g.chance(50) ? concat(parts, 1) : add_epilogue_op(g, concat(parts, 1), 1);
}

Var shuffled_channels(IdiomGraph& g, Var x) {
  const int64_t groups = x.dim(1) % 2 == 0 ? 2 : 1, height = x.dim(2), width = x.dim(3);
  const Var apart = reshape(x, std::vector<int64_t>{-1, groups, x.dim(1) / groups, height, width});
  (void)g;
  return reshape(transpose(apart, {0, 2, 1, 3, 4}), std::vector<int64_t>{-1, x.dim(1), height, width});
}

Var resized(IdiomGraph& g, Var x) {
  const std::string mode = g.one_of<std::string>({"nearest", "nearest", "linear", "cubic"});
  const std::string where = mode == "nearest"
                                ? g.one_of<std::string>({"asymmetric", "half_pixel"})
                                : g.one_of<std::string>({"half_pixel", "pytorch_half_pixel", "align_corners"});
  const bool is_large = x.shape()[2].value_or(0) > 1 && x.shape()[3].value_or(0) > 1;
  const float scale = is_large && g.chance(25) ? 0.5F : g.one_of({2.0F, 2.0F, 3.0F});
  const Var scales = g.constant(Tensor::of<float>({4}, {1, 1, scale, scale}));
  Attributes attributes{{"mode", mode}, {"coordinate_transformation_mode", where}};
  if (mode == "nearest") attributes.set("nearest_mode", g.one_of<std::string>({"floor", "round_prefer_floor"}));
  return apply(get_op("resize"), {x, Var(), scales}, attributes);
}

Var padded(IdiomGraph& g, Var x) {
  const std::string mode = g.one_of<std::string>({"constant", "constant", "edge"});
  const Var y = pad(x, {0, 0, 1, 1, 0, 0, 1, 2}, mode);
  if (g.chance(50)) return max_pool(y, {.kernel = {3, 3}, .strides = {2, 2}});
  const int64_t out = g.channels();
  return conv(y, g.weight({out, x.dim(1), 3, 3}), g.chance(50) ? g.weight({out}) : Var());
}

Var cut(IdiomGraph& g, Var x) {
  if (x.dim(1) < 2) return concat({x, x}, 1);
  const int64_t first = x.dim(1) / 2;
  if (g.chance(50)) {
    const std::vector<Var> parts = split(x, {first, x.dim(1) - first}, 1);
    return concat({parts[1], add_activation(g, parts[0])}, 1);
  }
  return add_conv(g, slice(x, {0}, {first}, {1}), g.channels());
}

}  // namespace

void add_squeeze_excite(IdiomGraph& g) {
  Var x = g.image();
  if (g.chance(60)) x = add_activation(g, add_conv(g, x, g.channels(), true));
  Var y = excited(g, x);
  if (g.chance(50)) y = add_batch_norm(g, pointwise(g, y, g.channels()));
  g.leave(y);
}

void add_residual_block(IdiomGraph& g) {
  const Var x = g.image();
  switch (g.between(0, 4)) {
    case 0: return g.leave(inverted_residual(g, x));
    case 1: return g.leave(split_and_join(g, x));
    case 2: return g.leave(dense_layer(g, x));
    case 3: return g.leave(scaled_residual(g, x));
    default: return g.leave(basic_block(g, x));
  }
}

void add_pools_and_joins(IdiomGraph& g) {
  const Var x = g.image();
  const bool is_plane_known = x.shape()[2].is_known() && x.shape()[3].is_known();
  switch (g.between(0, 7)) {
    case 0: return g.leave(pooled(g, x));
    case 1: return g.leave(inception(g, x));
    case 2: return g.leave(is_plane_known ? shuffled_channels(g, x) : inception(g, x));
    case 3: return g.leave(resized(g, x));
    case 4: return g.leave(padded(g, x));
    case 5: return g.leave(cut(g, x));
    case 6: return g.leave(g.chance(50) ? global_max_pool(x) : reduce_max(x, {2, 3}));
    default: return g.leave(pooled(g, add_conv(g, x, g.channels(), true)));
  }
}

}  // namespace autograph
