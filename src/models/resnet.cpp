// ResNet-50 and ResNeXt-50, each in two readings.
//
// torchvision: image 3x224x224, a stem (7x7 stride 2, max pool), stages of 3, 4, 6, 3 bottleneck blocks, mean, linear
// to 1000. Batch normalisation stays a node of its own, so that folding it is left to the passes. ResNeXt is 32x4d: the
// middle convolution has 32 groups and twice the width.
//
// TASO (its Python examples, algorithms.md 1.6): no batch normalisation, no head. ResNet-50 starts behind the stem, at
// 64x56x56, and has 84 ops when a relu belongs to the convolution before it; ResNeXt-50 has the stem and 86 ops. Their
// projection shortcut carries a relu, which torchvision's does not.
#include <array>
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

// One bottleneck block.
struct BlockSpec {
  int64_t width;       // channels of the middle convolution
  int64_t out;         // channels of the result
  int64_t stride;      // of the middle convolution and of the projection
  int64_t groups = 1;  // of the middle convolution
};

constexpr std::array<int64_t, 4> kBlocks = {3, 4, 6, 3};

// The branch is scaled down so that sixteen additions do not blow the activations up.
constexpr float kBranchScale = 0.5F;

Var torchvision_block(const Layers& net, Var x, const BlockSpec& spec) {
  Var y = net.conv_norm_relu("conv1", x, {.out = spec.width});
  y = net.conv_norm_relu("conv2", y,
                         {.out = spec.width, .kernel = {3, 3}, .stride = spec.stride, .groups = spec.groups});
  y = net.conv_norm("conv3", y, {.out = spec.out, .gain = kLinearGain}, kBranchScale);
  if (spec.stride != 1 || x.dim(1) != spec.out) {
    x = net.conv_norm("downsample", x, {.out = spec.out, .stride = spec.stride, .gain = kLinearGain});
  }
  return relu(add(y, x));
}

Var taso_block(const Layers& net, Var x, const BlockSpec& spec) {
  Var y = net.conv_relu("conv1", x, {.out = spec.width});
  y = net.conv_relu("conv2", y, {.out = spec.width, .kernel = {3, 3}, .stride = spec.stride, .groups = spec.groups});
  y = net.conv("conv3", y, {.out = spec.out, .gain = kBranchScale});
  if (spec.stride != 1 || x.dim(1) != spec.out) {
    x = net.conv_relu("projection", x, {.out = spec.out, .stride = spec.stride});
  }
  return relu(add(x, y));
}

using BlockFn = Var (*)(const Layers&, Var, const BlockSpec&);

// Four stages; every stage after the first halves the image. `width` is that of the first stage, `expansion` the ratio
// of a block's output to its width.
Var stages(const Layers& net, Var x, BlockFn block, const BlockSpec& first) {
  const int64_t expansion = first.out / first.width;
  for (size_t stage = 0; stage < kBlocks.size(); ++stage) {
    const ProvenanceScope stage_scope("layer" + std::to_string(stage + 1));
    const int64_t width = first.width << stage;
    for (int64_t index = 0; index < kBlocks[stage]; ++index) {
      const ProvenanceScope block_scope(std::to_string(index));
      const int64_t stride = stage > 0 && index == 0 ? 2 : 1;
      x = block(net, x, {width, width * expansion, stride, first.groups});
    }
  }
  return x;
}

Graph torchvision_net(const std::string& name, int64_t batch, const BlockSpec& first) {
  Graph graph(name);
  const Layers net(graph, name);
  Var x = net.image({batch, 3, 224, 224});
  {
    const ProvenanceScope scope("stem");
    x = net.conv_norm_relu("conv", x, {.out = 64, .kernel = {7, 7}, .stride = 2});
    x = net.max_pool(x, {.stride = 2});
  }
  x = stages(net, x, torchvision_block, first);
  const ProvenanceScope scope("head");
  graph.add_output(net.linear("fc", net.pool_to_vector(x), 1000).id(), "output");
  return graph;
}

}  // namespace

Graph build_resnet50(int64_t batch) {
  return torchvision_net("resnet50", batch, {.width = 64, .out = 256, .stride = 1});
}

Graph build_resnext50(int64_t batch) {
  return torchvision_net("resnext50", batch, {.width = 128, .out = 256, .stride = 1, .groups = 32});
}

Graph build_resnet50_taso(int64_t batch) {
  Graph graph("resnet50_taso");
  const Layers net(graph, graph.name());
  const Var x = net.image({batch, 64, 56, 56});
  graph.add_output(stages(net, x, taso_block, {.width = 64, .out = 256, .stride = 1}).id(), "output");
  return graph;
}

Graph build_resnext50_taso(int64_t batch) {
  Graph graph("resnext50_taso");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, 3, 224, 224});
  {
    const ProvenanceScope scope("stem");
    x = net.conv_relu("conv", x, {.out = 64, .kernel = {7, 7}, .stride = 2});
    x = net.max_pool(x, {.stride = 2});
  }
  x = stages(net, x, taso_block, {.width = 128, .out = 256, .stride = 1, .groups = 32});
  graph.add_output(x.id(), "output");
  return graph;
}

}  // namespace autograph
