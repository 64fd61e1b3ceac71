// Normalizations, as one op and spelled out the way exporters do.
#include "autograph/ops/normalization.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

Var spelled_layer_norm(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(-1);
  const Var d = sub(x, reduce_mean(x, {-1}));
  const Var square = g.chance(50) ? pow(d, g.number(x, 2)) : mul(d, d);
  Var variance = reduce_mean(square, {-1});
  variance = add(variance, scalar_like(x, g.one_of({1e-5, 1e-6, 1e-3})));
  Var y = g.chance(70) ? div(d, sqrt(variance)) : mul(d, reciprocal(sqrt(variance)));
  if (g.chance(80)) y = g.chance(50) ? mul(y, g.weight({width}, 0.5, 1.5)) : mul(g.weight({width}, 0.5, 1.5), y);
  if (g.chance(80)) y = add(y, g.weight({width}));
  return y;
}

// As tf2onnx writes it: x s + (b - mean s).
Var scaled_layer_norm(IdiomGraph& g, Var x) {
  const int64_t width = x.dim(-1);
  const Var mean = reduce_mean(x, {-1});
  const Var d = sub(x, mean);
  const Var root = reciprocal(sqrt(add(reduce_mean(mul(d, d), {-1}), scalar_like(x, 1e-3))));
  const Var s = mul(root, g.weight({width}, 0.5, 1.5));
  return add(mul(x, s), sub(g.weight({width}), mul(mean, s)));
}

Var spelled_rms_norm(IdiomGraph& g, Var x) {
  const Var square = g.chance(50) ? pow(x, scalar_like(x, 2)) : mul(x, x);
  const Var root = sqrt(add(reduce_mean(square, {-1}), scalar_like(x, 1e-6)));
  const Var y = g.chance(50) ? div(x, root) : mul(x, g.chance(50) ? reciprocal(root) : div(scalar_like(x, 1), root));
  return g.chance(80) ? mul(g.weight({x.dim(-1)}, 0.5, 1.5), y) : y;
}

// As torch writes it: [N, groups, -1] through an instance norm and back.
Var spelled_group_norm(IdiomGraph& g, Var x) {
  const int64_t channels = x.dim(1);
  const int64_t groups = channels % 4 == 0 ? 4 : channels % 3 == 0 ? 3 : 1;
  const Var apart = reshape(x, std::vector<int64_t>{0, groups, -1});
  const Var ones = g.weight({groups}, 1, 1);
  const Var normal = instance_normalization(apart, ones, g.weight({groups}, 0, 0));
  const Var y = reshape(normal, shape(x));
  return add(mul(y, g.weight({channels, 1, 1}, 0.5, 1.5)), g.weight({channels, 1, 1}));
}

Var spelled_softmax(IdiomGraph& g, Var x) {
  const Var e = exp(sub(x, reduce_max(x, {-1})));
  const Var sum = reduce_sum(e, {-1});
  return g.chance(70) ? div(e, sum) : mul(e, reciprocal(sum));
}

Var unit_length(IdiomGraph& g, Var x) {
  const Var norm = g.chance(50) ? reduce_l2(x, {-1}) : sqrt(reduce_sum(mul(x, x), {-1}));
  return div(x, g.chance(50) ? clip(norm, scalar_like(x, 1e-4), Var()) : add(norm, scalar_like(x, 1e-4)));
}

void normalize_sequence(IdiomGraph& g) {
  const Var x = g.sequence();
  const int64_t width = x.dim(-1);
  switch (g.between(0, 7)) {
    case 0:
      return g.leave(layer_normalization(x, g.weight({width}, 0.5, 1.5), g.chance(70) ? g.weight({width}) : Var()));
    case 1: return g.leave(rms_normalization(x, g.weight({width}, 0.5, 1.5)));
    case 2: return g.leave(spelled_rms_norm(g, x));
    case 3: return g.leave(scaled_layer_norm(g, x));
    case 4: return g.leave(g.chance(50) ? softmax(x, g.one_of<int64_t>({-1, -1, 1})) : spelled_softmax(g, x));
    case 5: return g.leave(g.chance(50) ? unit_length(g, x) : log_softmax(x));
    default: return g.leave(spelled_layer_norm(g, x));
  }
}

// LayerNorm2d of ConvNeXt: over the channels of an image.
Var over_channels(IdiomGraph& g, Var x) {
  if (g.chance(50)) return transpose(spelled_layer_norm(g, transpose(x, {0, 2, 3, 1})), {0, 3, 1, 2});
  const Var d = sub(x, reduce_mean(x, {1}));
  const Var y = div(d, sqrt(add(reduce_mean(pow(d, scalar_like(x, 2)), {1}), scalar_like(x, 1e-6))));
  return add(mul(g.weight({x.dim(1), 1, 1}, 0.5, 1.5), y), g.weight({x.dim(1), 1, 1}));
}

void normalize_image(IdiomGraph& g) {
  const Var x = g.image();
  const int64_t channels = x.dim(1);
  switch (g.between(0, 7)) {
    case 0: return g.leave(relu(add_batch_norm(g, x)));
    case 1: return g.leave(add_conv(g, relu(add_batch_norm(g, x)), g.channels()));
    case 2: return g.leave(instance_normalization(x, g.weight({channels}, 0.5, 1.5), g.weight({channels})));
    case 3: return g.leave(over_channels(g, x));
    case 4: return g.leave(lrn(x, g.one_of<int64_t>({3, 5}), {.alpha = 1e-2F, .beta = 0.75F, .bias = 1.0F}));
    case 5: return g.leave(g.chance(50) ? softmax(x, 1) : mean_variance_normalization(x));
    case 6:
      return g.leave(
          group_normalization(x, g.weight({channels}, 0.5, 1.5), g.weight({channels}), channels % 2 == 0 ? 2 : 1));
    default: return g.leave(spelled_group_norm(g, x));
  }
}

}  // namespace

void add_normalization(IdiomGraph& g) { g.chance(50) ? normalize_sequence(g) : normalize_image(g); }

}  // namespace autograph
