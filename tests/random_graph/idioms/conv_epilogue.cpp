// A convolution (plain, grouped, depthwise, transposed, along one axis) and one to six ops behind it.
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

int64_t draw_group(IdiomGraph& g, int64_t in, int64_t& out) {
  if (g.chance(65)) return 1;
  if (g.chance(60)) {
    out = in * (g.chance(80) ? 1 : 2);
    return in;
  }
  for (const int64_t group : {4, 2, 3, 5}) {
    if (in % group == 0 && group < in) {
      out = (out + group - 1) / group * group;
      return group;
    }
  }
  return 1;
}

Var transposed_conv(IdiomGraph& g, Var x, int64_t out) {
  const int64_t kernel = g.between(1, 3), stride = g.between(1, 2);
  const ConvOptions options{.strides = {stride, stride}};
  const Var bias = g.chance(60) ? g.weight({out}) : Var();
  return conv_transpose(x, g.weight({x.dim(1), out, kernel, kernel}), bias, options);
}

// [N, C, L], as one-dimensional convolutions are.
Var conv_of_rows(IdiomGraph& g, Var x, int64_t out) {
  const Var rows = transpose(x, {0, 2, 1});
  const int64_t kernel = g.one_of<int64_t>({1, 3, 5});
  const Var bias = g.chance(60) ? g.weight({out}) : Var();
  return conv(rows, g.weight({out, rows.dim(1), kernel}), bias, {.pads = {kernel / 2, kernel / 2}});
}

}  // namespace

Var add_conv(IdiomGraph& g, Var x, int64_t out, bool may_shrink) {
  const int64_t in = x.dim(1);
  const int64_t group = may_shrink ? draw_group(g, in, out) : 1;
  const int64_t height = g.one_of<int64_t>({1, 1, 3, 3, 3, 5});
  const int64_t width = g.chance(90) ? height : g.one_of<int64_t>({1, 3, 7});
  ConvOptions options{.group = group};
  const int64_t dilation = may_shrink && g.chance(12) ? 2 : 1;
  options.dilations = {dilation, dilation};
  const int64_t top = height / 2 * dilation, left = width / 2 * dilation;
  options.pads = {top, left, top, left};
  if (may_shrink && g.chance(20)) options.pads = {top, left, top + 1, left + 1};  // as TensorFlow pads
  if (may_shrink && g.chance(20)) options.strides = {2, 2};
  if (may_shrink && g.chance(10)) {
    options.pads.clear();
    options.auto_pad = g.chance(50) ? "SAME_UPPER" : "SAME_LOWER";
  }
  const Var bias = g.chance(60) ? g.weight({out}) : Var();
  return conv(x, g.weight({out, in / group, height, width}), bias, options);
}

void add_conv_epilogue(IdiomGraph& g) {
  const int64_t out = g.channels();
  Var y;
  if (g.chance(12)) {
    y = conv_of_rows(g, g.sequence(), out);
  } else {
    y = g.chance(10) ? transposed_conv(g, g.image(), out) : add_conv(g, g.image(), out, true);
  }
  const int64_t ops = g.between(1, 6);
  for (int64_t k = 0; k < ops; ++k) {
    if (g.chance(8)) g.output(y);  // read by others, too
    y = add_epilogue_op(g, y, 1);
  }
  g.leave(y.rank() == 3 ? transpose(y, {0, 2, 1}) : y);
}

}  // namespace autograph
