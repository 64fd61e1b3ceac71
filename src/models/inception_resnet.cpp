// Inception-ResNet-v2 (Szegedy et al., 2016), as its PyTorch ports have it: 3x299x299, batch normalisation behind every
// convolution but those that lead back into a residual, which are scaled by 0.17, 0.1 and 0.2; 10, 20 and 10 blocks,
// the last one without relu. 55.8 million parameters, 13.2 GFLOP.
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int64_t kClasses = 1000;

// One network under construction: short names for the layers that the blocks are written with.
struct InceptionResnet {
  const Layers& net;

  Var conv(const std::string& name, Var x, int64_t out, Extents kernel = {1, 1}) const {
    return net.conv_norm_relu(name, x, {.out = out, .kernel = kernel});
  }
  Var valid(const std::string& name, Var x, int64_t out, int64_t kernel, int64_t stride = 1) const {
    return net.conv_norm_relu(name, x,
                              {.out = out, .kernel = {kernel, kernel}, .stride = stride, .padding = Padding::valid});
  }
  Var pool(Var x) const { return net.max_pool(x, {.stride = 2, .padding = Padding::valid}); }

  // x + scale * conv(branches), with a bias and no normalisation.
  Var residual(Var x, const std::vector<Var>& branches, double scale, bool with_relu = true) const {
    const Var mixed = concat(branches, 1);
    const Var up = net.conv("up", mixed, {.out = x.dim(1), .bias = true, .gain = kLinearGain});
    const Var y = add(x, mul(up, scalar_like(up, scale)));
    return with_relu ? relu(y) : y;
  }

  Var stem(Var x) const {
    x = valid("conv1", x, 32, 3, 2);
    x = valid("conv2", x, 32, 3);
    x = pool(conv("conv3", x, 64, {3, 3}));
    x = valid("conv4", x, 80, 1);
    return pool(valid("conv5", x, 192, 3));
  }

  // 192 -> 320 channels at 35x35
  Var mixed_5b(Var x) const {
    const Var one = conv("b0", x, 96);
    const Var five = conv("b1_2", conv("b1_1", x, 48), 64, {5, 5});
    const Var three = conv("b2_3", conv("b2_2", conv("b2_1", x, 64), 96, {3, 3}), 96, {3, 3});
    const Var pooled = conv("b3", net.average_pool(x, {}), 64);
    return concat({one, five, three, pooled}, 1);
  }
  Var block35(Var x) const {
    const Var one = conv("b0", x, 32);
    const Var three = conv("b1_2", conv("b1_1", x, 32), 32, {3, 3});
    const Var twice = conv("b2_3", conv("b2_2", conv("b2_1", x, 32), 48, {3, 3}), 64, {3, 3});
    return residual(x, {one, three, twice}, 0.17);
  }
  // 320x35x35 -> 1088x17x17
  Var mixed_6a(Var x) const {
    const Var three = valid("b0", x, 384, 3, 2);
    const Var twice = valid("b1_3", conv("b1_2", conv("b1_1", x, 256), 256, {3, 3}), 384, 3, 2);
    return concat({three, twice, pool(x)}, 1);
  }
  Var block17(Var x) const {
    const Var one = conv("b0", x, 192);
    const Var seven = conv("b1_3", conv("b1_2", conv("b1_1", x, 128), 160, {1, 7}), 192, {7, 1});
    return residual(x, {one, seven}, 0.1);
  }
  // 1088x17x17 -> 2080x8x8
  Var mixed_7a(Var x) const {
    const Var three = valid("b0_2", conv("b0_1", x, 256), 384, 3, 2);
    const Var other = valid("b1_2", conv("b1_1", x, 256), 288, 3, 2);
    const Var twice = valid("b2_3", conv("b2_2", conv("b2_1", x, 256), 288, {3, 3}), 320, 3, 2);
    return concat({three, other, twice, pool(x)}, 1);
  }
  Var block8(Var x, bool with_relu) const {
    const Var one = conv("b0", x, 192);
    const Var three = conv("b1_3", conv("b1_2", conv("b1_1", x, 192), 224, {1, 3}), 256, {3, 1});
    return residual(x, {one, three}, 0.2, with_relu);
  }
};

template <class Block>
Var repeated(const std::string& name, int count, Var x, const Block& block) {
  for (int i = 0; i < count; ++i) x = scoped(name + "_" + std::to_string(i), [&] { return block(x); });
  return x;
}

}  // namespace

Graph build_inception_resnet(int64_t batch) {
  Graph graph("inception_resnet");
  const Layers net(graph, graph.name());
  const InceptionResnet blocks{net};
  Var x = net.image({batch, 3, 299, 299});
  x = scoped("stem", [&] { return blocks.stem(x); });
  x = scoped("mixed_5b", [&] { return blocks.mixed_5b(x); });
  x = repeated("block35", 10, x, [&](Var y) { return blocks.block35(y); });
  x = scoped("mixed_6a", [&] { return blocks.mixed_6a(x); });
  x = repeated("block17", 20, x, [&](Var y) { return blocks.block17(y); });
  x = scoped("mixed_7a", [&] { return blocks.mixed_7a(x); });
  x = repeated("block8", 9, x, [&](Var y) { return blocks.block8(y, true); });
  x = scoped("block8_9", [&] { return blocks.block8(x, false); });
  const ProvenanceScope scope("head");
  x = blocks.conv("conv", x, 1536);
  graph.add_output(net.linear("classes", net.pool_to_vector(x), kClasses).id(), "logits");
  return graph;
}

}  // namespace autograph
