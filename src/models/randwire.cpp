// RandWire (Xie et al., 2019), small regime, 78 channels: two convolutions, three randomly wired stages of 32 nodes, a
// 1x1 convolution to 1280 and a linear head.
//
// The wiring of a stage is a Watts-Strogatz graph WS(32, 4, 0.75): a ring in which each node is tied to two neighbours
// on either side, every tie redirected with probability 0.75; ties point from the smaller to the larger number. A node
// sums its inputs with learned weights (the sigmoid of a parameter, a constant here), then applies relu, a separable
// 3x3 convolution and batch normalisation. Nodes without a predecessor read the stage's input with stride 2; the mean
// of the nodes without a successor is its output. The wiring is drawn from the model's seed, so it is always the same.
#include <algorithm>
#include <string>
#include <vector>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr size_t kNodes = 32;
constexpr size_t kNeighbours = 4;
constexpr double kRewire = 0.75;
constexpr int64_t kChannels = 78;

// predecessors[v]: ascending numbers of the nodes that feed v.
using Wiring = std::vector<std::vector<size_t>>;

// Numbers from the model's seed, one after another.
class Draws {
 public:
  Draws(const Weights& weights, std::string name) : weights_(weights), name_(std::move(name)) {}
  uint64_t below(uint64_t bound) { return weights_.bits(name_, count_++) % bound; }
  double unit() { return static_cast<double>(weights_.bits(name_, count_++) >> 11) * 0x1p-53; }

 private:
  const Weights& weights_;
  std::string name_;
  uint64_t count_ = 0;
};

Wiring draw_wiring(Draws& draws) {
  std::vector<std::vector<bool>> tied(kNodes, std::vector<bool>(kNodes, false));
  for (size_t distance = 1; distance <= kNeighbours / 2; ++distance) {
    for (size_t node = 0; node < kNodes; ++node) {
      size_t other = (node + distance) % kNodes;
      if (draws.unit() < kRewire || tied[node][other]) {
        do {
          other = draws.below(kNodes);
        } while (other == node || tied[node][other]);
      }
      tied[node][other] = tied[other][node] = true;
    }
  }
  Wiring predecessors(kNodes);
  for (size_t to = 0; to < kNodes; ++to) {
    for (size_t from = 0; from < to; ++from) {
      if (tied[from][to]) predecessors[to].push_back(from);
    }
  }
  return predecessors;
}

// relu, depthwise 3x3, 1x1, batch normalisation.
Var unit(const Layers& net, Var x, int64_t channels, int64_t stride) {
  x = relu(x);
  x = net.conv("depthwise", x, {.out = x.dim(1), .kernel = {3, 3}, .stride = stride, .groups = x.dim(1)});
  return net.conv_norm("pointwise", x, {.out = channels, .gain = kLinearGain});
}

// Sum of `inputs`, each times a weight between 0 and 1 as a sigmoid gives.
Var weighted_sum(const Layers& net, const std::vector<Var>& inputs) {
  Var sum;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Var weight = net.uniform_parameter("edge" + std::to_string(i), {}, 0.4F, 0.7F);
    const Var term = mul(inputs[i], weight);
    sum = sum.is_valid() ? add(sum, term) : term;
  }
  return sum;
}

Var mean_of(const std::vector<Var>& values) {
  Var sum = values.front();
  for (size_t i = 1; i < values.size(); ++i) sum = add(sum, values[i]);
  return mul(sum, scalar_like(sum, 1.0 / static_cast<double>(values.size())));
}

Var wired_stage(const Layers& net, const std::string& name, Var x, int64_t channels) {
  const ProvenanceScope stage_scope(name);
  Draws draws(net.weights(), name + "/wiring");
  const Wiring wiring = draw_wiring(draws);
  std::vector<Var> results;
  std::vector<bool> has_successor(kNodes, false);
  for (size_t node = 0; node < kNodes; ++node) {
    const ProvenanceScope scope("node" + std::to_string(node));
    if (wiring[node].empty()) {
      results.push_back(unit(net, x, channels, 2));
      continue;
    }
    std::vector<Var> inputs;
    for (const size_t from : wiring[node]) {
      inputs.push_back(results[from]);
      has_successor[from] = true;
    }
    results.push_back(unit(net, inputs.size() == 1 ? inputs.front() : weighted_sum(net, inputs), channels, 1));
  }
  std::vector<Var> last;
  for (size_t node = 0; node < kNodes; ++node) {
    if (!has_successor[node]) last.push_back(results[node]);
  }
  return mean_of(last);
}

}  // namespace

Graph build_randwire(int64_t batch) {
  Graph graph("randwire");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, 3, 224, 224});
  x = net.conv_norm_relu("conv1", x, {.out = kChannels / 2, .kernel = {3, 3}, .stride = 2});
  x = net.conv_norm("conv2", x, {.out = kChannels, .kernel = {3, 3}, .stride = 2});
  x = wired_stage(net, "conv3", x, kChannels);
  x = wired_stage(net, "conv4", x, 2 * kChannels);
  x = wired_stage(net, "conv5", x, 4 * kChannels);
  const ProvenanceScope scope("head");
  x = net.conv_norm_relu("conv", relu(x), {.out = 1280});
  graph.add_output(net.linear("fc", net.pool_to_vector(x), 1000).id(), "output");
  return graph;
}

}  // namespace autograph
