// What makes sound of features: blocks of dilated convolutions along a line, each with a residual, whose mean goes
// through a transposed convolution (HiFi-GAN, VITS), with snake activations in codecs.
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

// x + sin(a x)^2 / a.
Var snake(IdiomGraph& g, Var x) {
  const Var alpha = g.weight({1, x.dim(1), 1}, 0.5, 2);
  const Var wave = sin(mul(alpha, x));
  const Var squared = g.chance(50) ? mul(wave, wave) : pow(wave, g.number(wave, 2));
  return add(x, g.chance(50) ? div(squared, alpha) : mul(reciprocal(alpha), squared));
}

Var activated(IdiomGraph& g, Var x) {
  if (g.chance(30)) return snake(g, x);
  return g.chance(80) ? leaky_relu(x, 0.1F) : add_activation(g, x);
}

// Keeps the length.
Var line_conv(IdiomGraph& g, Var x, int64_t out, int64_t taps, int64_t dilation = 1) {
  const int64_t pad = (taps - 1) / 2 * dilation;
  return conv(x, g.weight({out, x.dim(1), taps}), g.chance(80) ? g.weight({out}) : Var(),
              {.pads = {pad, pad}, .dilations = {dilation}});
}

Var residual_block(IdiomGraph& g, Var x, int64_t taps) {
  for (const int64_t dilation : {int64_t{1}, g.one_of<int64_t>({3, 5})}) {
    Var y = line_conv(g, activated(g, x), x.dim(1), taps, dilation);
    if (g.chance(70)) y = line_conv(g, activated(g, y), x.dim(1), taps);
    x = g.chance(50) ? add(y, x) : add(x, y);
  }
  return x;
}

}  // namespace

void add_vocoder(IdiomGraph& g) {
  Var x = transpose(g.sequence(), {0, 2, 1});
  const int64_t channels = g.one_of<int64_t>({8, 16, 17, 32});
  x = line_conv(g, x, channels, g.one_of<int64_t>({1, 3, 5, 7, 9, 15}));
  if (g.chance(50)) {
    x = conv_transpose(activated(g, x), g.weight({channels, channels, 4}), g.weight({channels}),
                       {.strides = {2}, .pads = {1, 1}});
  }
  Var sum;
  const int64_t blocks = g.between(1, 3);
  for (int64_t b = 0; b < blocks; ++b) {
    const Var y = residual_block(g, x, g.one_of<int64_t>({3, 7, 11}));
    sum = sum.is_valid() ? add(sum, y) : y;
  }
  x = activated(g, g.chance(70) ? div(sum, g.number(sum, static_cast<double>(blocks))) : sum);
  if (g.chance(30)) x = tanh(line_conv(g, x, 1, 7));
  g.leave(transpose(x, {0, 2, 1}));
}

}  // namespace autograph
