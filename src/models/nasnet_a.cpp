// NasNet-A as TASO's example builds it (algorithms.md 1.6), and one of its cells.
//
// Image 3x224x224, a 7x7 stem, then three times: five normal cells and a reduction cell. No batch normalisation, no
// head, no relu between the separable convolutions. "sep k" is a depthwise kxk convolution and a 1x1 convolution. With
// a relu counted as part of its convolution there are 383 ops: 217 convolutions, 90 additions, 58 pools, 18
// concatenations; 30.1 GFLOP. The two identical average pools of y3, the two identical max pools of a reduction cell
// and the duplicated 1x1 convolutions are in the original: finding them is the optimiser's work.
#include <string>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

// Every y is a sum of two branches of equal variance; a preamble without the He factor takes that doubling back.
constexpr float kPreambleGain = kLinearGain;

struct Separable {
  int64_t kernel;
  int64_t stride = 1;
};

Var separable(const Layers& net, const std::string& name, Var x, int64_t channels, const Separable& spec) {
  const ProvenanceScope scope(name);
  const Var depthwise = net.conv("depthwise", x,
                                 {.out = x.dim(1),
                                  .kernel = {spec.kernel, spec.kernel},
                                  .stride = spec.stride,
                                  .groups = x.dim(1),
                                  .gain = kLinearGain});
  return net.conv("pointwise", depthwise, {.out = channels, .gain = kLinearGain});
}

// Brings a cell's two inputs to its number of channels. TASO reduces `previous` with a 3x3 convolution of stride 2 when
// it is larger; in this network it never is.
Var preamble(const Layers& net, const std::string& name, Var x, int64_t channels) {
  return net.conv_relu(name, x, {.out = channels, .gain = kPreambleGain});
}

Var normal_cell(const Layers& net, Var previous, Var current, int64_t channels) {
  const Var cur = preamble(net, "current", current, channels);
  const Var prev = preamble(net, "previous", previous, channels);
  const auto sep3 = [&](const std::string& name, Var x) { return separable(net, name, x, channels, {3}); };
  const Var y0 = add(sep3("y0", cur), cur);
  const Var y1 = add(sep3("y1_previous", prev), sep3("y1_current", cur));
  const Var y2 = add(net.average_pool(cur, {}), prev);
  const Var y3 = add(net.average_pool(prev, {}), net.average_pool(prev, {}));
  const Var y4 = add(sep3("y4_a", prev), sep3("y4_b", prev));
  return concat({y0, y1, y2, y3, y4}, 1);
}

Var reduction_cell(const Layers& net, Var previous, Var current, int64_t channels) {
  const Var cur = preamble(net, "current", current, channels);
  const Var prev = preamble(net, "previous", previous, channels);
  const auto half = [&](const std::string& name, Var x, int64_t kernel) {
    return separable(net, name, x, channels, {.kernel = kernel, .stride = 2});
  };
  const Var y0 = add(half("y0_previous", prev, 7), half("y0_current", cur, 5));
  const Var y1 = add(net.max_pool(cur, {.stride = 2}), half("y1", prev, 7));
  const Var y2 = add(net.average_pool(cur, {.stride = 2}), half("y2", prev, 5));
  const Var y3 = add(net.max_pool(cur, {.stride = 2}), separable(net, "y3", y0, channels, {3}));
  const Var y4 = add(net.average_pool(y0, {}), y1);
  return concat({y0, y1, y2, y3, y4}, 1);
}

}  // namespace

Graph build_nasnet_a(int64_t batch) {
  Graph graph("nasnet_a");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, 3, 224, 224});
  {
    const ProvenanceScope scope("stem");
    x = net.conv_relu("conv", x, {.out = 64, .kernel = {7, 7}, .stride = 2});
    x = net.max_pool(x, {.stride = 2});
  }
  int64_t channels = 128;
  for (int stage = 1; stage <= 3; ++stage) {
    const ProvenanceScope stage_scope("stage" + std::to_string(stage));
    Var previous = x;
    Var current = x;
    for (int cell = 1; cell <= 5; ++cell) {
      const ProvenanceScope scope("cell" + std::to_string(cell));
      const Var next = normal_cell(net, previous, current, channels);
      previous = current;
      current = next;
    }
    channels *= 2;
    const ProvenanceScope scope("reduction");
    x = reduction_cell(net, previous, current, channels);
  }
  graph.add_output(x.id(), "output");
  return graph;
}

// A normal cell of the second stage: both inputs 1280x28x28, 256 channels inside, 21 ops.
Graph build_nasnet_cell(int64_t batch) {
  Graph graph("nasnet_cell");
  const Layers net(graph, graph.name());
  const Var previous = net.image({batch, 1280, 28, 28}, "previous");
  const Var current = net.image({batch, 1280, 28, 28}, "current");
  const ProvenanceScope scope("cell");
  graph.add_output(normal_cell(net, previous, current, 256).id(), "output");
  return graph;
}

}  // namespace autograph
