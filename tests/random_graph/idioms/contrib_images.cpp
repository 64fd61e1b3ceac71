// Images in ONNX Runtime's own layouts: channels last, and channels in blocks, as its optimiser writes them.
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "random_graph/idioms/contrib_call.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

constexpr std::string_view kChannelsLast = "com.ms.internal.nhwc", kBlocked = "com.microsoft.nchwc";

Var to_last(Var x) { return transpose(x, {0, 2, 3, 1}); }
Var to_first(Var x) { return transpose(x, {0, 3, 1, 2}); }

Attributes same_window(int64_t kernel) {
  return {{"kernel_shape", std::vector<int64_t>{kernel, kernel}}, {"pads", std::vector<int64_t>(4, kernel / 2)}};
}

void add_group_norm(IdiomGraph& g) {
  const Var x = g.image();
  const int64_t channels = x.dim(1), groups = channels % 4 == 0 ? g.one_of<int64_t>({1, 2, 4, channels}) : 1;
  const auto per_channel = [&](double low, double high) {
    return g.constant(draw_tensor(g.random(), DType::f32, {channels}, low, high));
  };
  const Var gamma = per_channel(0.5, 1.5), beta = per_channel(-0.5, 0.5);
  const Attributes attributes{{"groups", groups}, {"activation", g.between(0, 1)}, {"epsilon", 1e-5F}};
  if (g.chance(60)) return g.leave(to_first(contrib(g, "GroupNorm", {to_last(x), gamma, beta}, attributes)));
  const Var earlier = g.earlier(x.type());
  std::vector<Var> inputs{to_last(x), gamma, beta, to_last(earlier.is_valid() ? earlier : x)};
  if (g.chance(50)) inputs.push_back(g.weight_like(x, {channels}));
  const std::vector<Var> y = contrib_outputs(g, "SkipGroupNorm", inputs, attributes, 2);
  g.leave(to_first(y[1]));
  g.leave(to_first(y[0]));
}

void add_channels_last(IdiomGraph& g) {
  const Var x = g.image();
  const int64_t out = g.chance(40) ? x.dim(1) : g.channels(), kernel = g.one_of<int64_t>({1, 3});
  std::vector<Var> inputs{to_last(x), g.weight_like(x, {out, x.dim(1), kernel, kernel}, -0.3, 0.3)};
  if (g.chance(70)) inputs.push_back(g.weight_like(x, {out}));
  Var y;
  if (g.chance(50)) {
    y = contrib(g, "Conv", inputs, same_window(kernel), kChannelsLast);
  } else {
    Attributes attributes = same_window(kernel);
    attributes.set("activation", std::string(g.one_of({"Relu", "Sigmoid", "Tanh"})));
    inputs.resize(3);
    if (out == x.dim(1) && g.chance(50)) inputs.push_back(inputs[0]);
    y = contrib(g, "NhwcFusedConv", inputs, attributes);
  }
  switch (g.between(0, 3)) {
    case 0: y = contrib(g, "NhwcMaxPool", {y}, same_window(3)); break;
    case 1: y = contrib(g, "AveragePool", {y}, same_window(3), kChannelsLast); break;
    case 2: y = contrib(g, "GlobalAveragePool", {y}, {}, kChannelsLast); break;
    default: break;
  }
  g.leave(to_first(y));
}

// Convolutions of padded channels, the second one with a sum or by channel, a pool, and back.
void add_blocked_channels(IdiomGraph& g) {
  const Var image = g.image();
  const int64_t block = g.one_of<int64_t>({8, 16}), out = g.channels();
  const auto padded = [&](int64_t channels) { return (channels + block - 1) / block * block; };
  const auto blocked = [&](std::string_view op, const std::vector<Var>& inputs, Attributes attributes = {}) {
    attributes.set("channel_block", block);
    return contrib(g, op, inputs, std::move(attributes), kBlocked);
  };
  const auto conv = [&](Var x, Dims weights, Var sum) {
    Attributes attributes = same_window(weights.back());
    if (weights[1] == 1 && x.dim(1) > 1) attributes.set("group", weights[0]);
    if (g.chance(60)) attributes.set("activation", std::string(g.one_of({"Relu", "Sigmoid"})));
    const Var w = g.weight_like(x, weights, -0.3, 0.3);
    return blocked("Conv", {x, w, g.chance(70) ? g.weight_like(x, {weights[0]}) : Var(), sum}, attributes);
  };
  Var x = in_f32(image);
  if (x.dim(1) >= block) x = blocked("ReorderInput", {x}, {{"channels_last", int64_t{0}}});
  Var y = conv(x, {padded(out), x.dim(1), 3, 3}, {});
  if (g.chance(50)) y = conv(y, {padded(out), padded(out), 1, 1}, g.chance(50) ? y : Var());
  if (g.chance(30)) y = conv(y, {padded(out), 1, 3, 3}, {});
  switch (g.between(0, 3)) {
    case 0: y = blocked("MaxPool", {y}, same_window(3)); break;
    case 1: y = blocked("AveragePool", {y}, same_window(3)); break;
    case 2: y = blocked("GlobalAveragePool", {y}); break;
    default: break;
  }
  g.leave(cast(blocked("ReorderOutput", {y}, {{"channels", out}}), image.dtype()));
}

}  // namespace

void add_contrib_images(IdiomGraph& g) {
  constexpr void (*kBlocks[])(IdiomGraph&) = {add_group_norm, add_channels_last, add_blocked_channels};
  kBlocks[g.between(0, std::ssize(kBlocks) - 1)](g);
}

}  // namespace autograph
