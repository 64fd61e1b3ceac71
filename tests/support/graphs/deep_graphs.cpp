#include "support/graphs/deep_graphs.h"

#include <cmath>
#include <string>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"

namespace autograph {
namespace {

float deviation_of(int64_t fan_in) { return 1.0F / std::sqrt(static_cast<float>(fan_in)); }

Var gated_feed_forward(const Layers& net, Var x, int64_t width) {
  const ProvenanceScope scope("feed_forward");
  const auto times = [&](const char* name, Var in, int64_t from, int64_t to) {
    return matmul(in, net.parameter(name, {from, to}, deviation_of(from)));
  };
  const Var gate = sigmoid(times("gate", x, width, 2 * width));
  return times("down", mul(gate, times("up", x, width, 2 * width)), 2 * width, width);
}

}  // namespace

Graph deep_transformer(int layers, int64_t width, int64_t heads, int64_t tokens) {
  Graph graph("deep_transformer");
  const Layers net(graph, graph.name());
  Var x = input(graph, DType::f32, Shape::of({1, tokens, width}), "x");
  for (int layer = 0; layer < layers; ++layer) {
    const ProvenanceScope scope("layer" + std::to_string(layer));
    x = add(x, net.self_attention(net.layer_norm("attention_norm", x), heads));
    x = add(x, gated_feed_forward(net, net.layer_norm("feed_forward_norm", x), width));
  }
  graph.add_output(x.id(), "y");
  return graph;
}

Graph deep_cnn(int blocks, int64_t channels, int64_t extent) {
  Graph graph("deep_cnn");
  const Layers net(graph, graph.name());
  Var x = net.image({1, channels, extent, extent}, "x");
  for (int block = 0; block < blocks; ++block) {
    const ProvenanceScope scope("block" + std::to_string(block));
    const auto branch = [&](const char* name, int64_t kernel) {
      return net.conv_relu(name, x, {.out = channels / 2, .kernel = {kernel, kernel}, .gain = 0.5F});
    };
    x = add(x, concat({branch("left", 1), branch("right", 3)}, 1));
    x = relu(x);
  }
  graph.add_output(x.id(), "y");
  return graph;
}

}  // namespace autograph
