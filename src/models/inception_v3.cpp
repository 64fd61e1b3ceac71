// Inception-v3 as TASO and IOS build it (algorithms.md 1.6): relu after every convolution, no batch normalisation, no
// auxiliary head, no linear head; the output is the mean over the last 8x8 image. A relu counted with its convolution
// there are 119 ops: 94 convolutions, 14 pools, 11 concatenations. Kernels of 3 with stride 2 take no padding
// ("valid"). Average pools leave padding out of the count, which torchvision's do not.
#include <string>

#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

// One network under construction: short names for the layers that the blocks are written with.
struct Inception {
  const Layers& net;

  Var conv(const std::string& name, Var x, int64_t out, Extents kernel = {1, 1}) const {
    return net.conv_relu(name, x, {.out = out, .kernel = kernel});
  }
  Var halve(const std::string& name, Var x, int64_t out) const {
    return net.conv_relu(name, x, {.out = out, .kernel = {3, 3}, .stride = 2, .padding = Padding::valid});
  }
  Var pool_half(Var x) const { return net.max_pool(x, {.stride = 2, .padding = Padding::valid}); }
  Var pool_project(Var x, int64_t out) const { return conv("pool_proj", net.average_pool(x, {}), out); }

  Var stem(Var x) const;
  Var block_a(Var x, int64_t pool_out) const;
  Var block_b(Var x) const;
  Var block_c(Var x, int64_t width) const;
  Var block_d(Var x) const;
  Var block_e(Var x) const;
};

// 3x299x299 -> 192x35x35
Var Inception::stem(Var x) const {
  x = halve("conv1", x, 32);
  x = net.conv_relu("conv2", x, {.out = 32, .kernel = {3, 3}, .padding = Padding::valid});
  x = conv("conv3", x, 64, {3, 3});
  x = pool_half(x);
  x = conv("conv4", x, 80);
  x = net.conv_relu("conv5", x, {.out = 192, .kernel = {3, 3}, .padding = Padding::valid});
  return pool_half(x);
}

// 35x35, 224 + pool_out channels
Var Inception::block_a(Var x, int64_t pool_out) const {
  const Var one = conv("b1x1", x, 64);
  const Var five = conv("b5x5_2", conv("b5x5_1", x, 48), 64, {5, 5});
  Var three = conv("b3x3_1", x, 64);
  three = conv("b3x3_2", three, 96, {3, 3});
  three = conv("b3x3_3", three, 96, {3, 3});
  return concat({one, five, three, pool_project(x, pool_out)}, 1);
}

// 288x35x35 -> 768x17x17
Var Inception::block_b(Var x) const {
  const Var three = halve("b3x3", x, 384);
  Var twice = conv("b3x3dbl_1", x, 64);
  twice = conv("b3x3dbl_2", twice, 96, {3, 3});
  twice = halve("b3x3dbl_3", twice, 96);
  return concat({three, twice, pool_half(x)}, 1);
}

// 768x17x17, 7x7 kernels factored into rows and columns
Var Inception::block_c(Var x, int64_t width) const {
  const Var one = conv("b1x1", x, 192);
  Var seven = conv("b7x7_1", x, width);
  seven = conv("b7x7_2", seven, width, {1, 7});
  seven = conv("b7x7_3", seven, 192, {7, 1});
  Var twice = conv("b7x7dbl_1", x, width);
  twice = conv("b7x7dbl_2", twice, width, {7, 1});
  twice = conv("b7x7dbl_3", twice, width, {1, 7});
  twice = conv("b7x7dbl_4", twice, width, {7, 1});
  twice = conv("b7x7dbl_5", twice, 192, {1, 7});
  return concat({one, seven, twice, pool_project(x, 192)}, 1);
}

// 768x17x17 -> 1280x8x8
Var Inception::block_d(Var x) const {
  const Var three = halve("b3x3_2", conv("b3x3_1", x, 192), 320);
  Var seven = conv("b7x7_1", x, 192);
  seven = conv("b7x7_2", seven, 192, {1, 7});
  seven = conv("b7x7_3", seven, 192, {7, 1});
  seven = halve("b7x7_4", seven, 192);
  return concat({three, seven, pool_half(x)}, 1);
}

// 8x8, 2048 channels
Var Inception::block_e(Var x) const {
  const Var one = conv("b1x1", x, 320);
  const Var three = conv("b3x3_1", x, 384);
  Var twice = conv("b3x3dbl_1", x, 448);
  twice = conv("b3x3dbl_2", twice, 384, {3, 3});
  return concat({one, conv("b3x3_2a", three, 384, {1, 3}), conv("b3x3_2b", three, 384, {3, 1}),
                 conv("b3x3dbl_3a", twice, 384, {1, 3}), conv("b3x3dbl_3b", twice, 384, {3, 1}), pool_project(x, 192)},
                1);
}

}  // namespace

Graph build_inception_v3(int64_t batch) {
  Graph graph("inception_v3");
  const Layers net(graph, graph.name());
  const Inception inception{net};
  Var x = net.image({batch, 3, 299, 299});
  x = scoped("stem", [&] { return inception.stem(x); });
  x = scoped("a1", [&] { return inception.block_a(x, 32); });
  x = scoped("a2", [&] { return inception.block_a(x, 64); });
  x = scoped("a3", [&] { return inception.block_a(x, 64); });
  x = scoped("b", [&] { return inception.block_b(x); });
  x = scoped("c1", [&] { return inception.block_c(x, 128); });
  x = scoped("c2", [&] { return inception.block_c(x, 160); });
  x = scoped("c3", [&] { return inception.block_c(x, 160); });
  x = scoped("c4", [&] { return inception.block_c(x, 192); });
  x = scoped("d", [&] { return inception.block_d(x); });
  x = scoped("e1", [&] { return inception.block_e(x); });
  x = scoped("e2", [&] { return inception.block_e(x); });
  const ProvenanceScope scope("head");
  graph.add_output(global_average_pool(x).id(), "output");
  return graph;
}

}  // namespace autograph
