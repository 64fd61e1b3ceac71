// SqueezeNet 1.1 (torchvision): a 3x3 stem, eight "fire" modules and a 1x1 convolution as classifier. Convolutions have
// biases; there is no batch normalisation. A fire module squeezes the channels with a 1x1 convolution and expands them
// with a 1x1 and a 3x3 convolution side by side.
#include "autograph/ops/activation.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

Var fire(const Layers& net, const std::string& name, Var x, int64_t squeeze, int64_t expand) {
  const ProvenanceScope scope(name);
  const Var s = net.conv_relu("squeeze", x, {.out = squeeze, .bias = true});
  const Var narrow = net.conv_relu("expand1x1", s, {.out = expand, .bias = true});
  const Var wide = net.conv_relu("expand3x3", s, {.out = expand, .kernel = {3, 3}, .bias = true});
  return concat({narrow, wide}, 1);
}

// torchvision pools with ceil_mode: a partial last window counts.
Var pool(const std::string& name, Var x) {
  const ProvenanceScope scope(name);
  return max_pool(x, {.kernel = {3, 3}, .strides = {2, 2}, .ceil_mode = true});
}

}  // namespace

Graph build_squeezenet(int64_t batch) {
  Graph graph("squeezenet");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, 3, 224, 224});
  x = net.conv_relu("conv1", x, {.out = 64, .kernel = {3, 3}, .stride = 2, .padding = Padding::valid, .bias = true});
  x = pool("pool1", x);
  x = fire(net, "fire2", x, 16, 64);
  x = fire(net, "fire3", x, 16, 64);
  x = pool("pool3", x);
  x = fire(net, "fire4", x, 32, 128);
  x = fire(net, "fire5", x, 32, 128);
  x = pool("pool5", x);
  x = fire(net, "fire6", x, 48, 192);
  x = fire(net, "fire7", x, 48, 192);
  x = fire(net, "fire8", x, 64, 256);
  x = fire(net, "fire9", x, 64, 256);
  const ProvenanceScope scope("classifier");
  x = net.conv_relu("conv10", x, {.out = 1000, .bias = true});
  graph.add_output(net.pool_to_vector(x).id(), "output");
  return graph;
}

}  // namespace autograph
