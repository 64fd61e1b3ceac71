// A transformer with mixtures of experts (Shazeer et al., 2017; the dense form that exporters write): 4 layers of width
// 256 on 64 tokens, each with attention and 8 gated experts of 512. A router gives each token its two best experts and
// their weights; every expert computes all tokens, and the weights of those that were not chosen are 0.
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int kLayers = 4;
constexpr int64_t kWidth = 256;
constexpr int64_t kHeads = 4;
constexpr int64_t kTokens = 64;
constexpr int64_t kExperts = 8;
constexpr int64_t kChosen = 2;
constexpr int64_t kExpertWidth = 512;

// What each token gives each expert: the softmax over its best ones, 0 for all others. [batch, tokens, experts]
Var route(const Layers& net, Var x) {
  const ProvenanceScope scope("router");
  const Var scores = net.project("scores", x, kExperts);
  const auto [best, chosen] = top_k(scores, kChosen);
  const Var none = mul(scores, scalar_like(scores, 0.0));
  return scatter_elements(none, chosen, softmax(best), -1);
}

Var experts(const Layers& net, Var x) {
  const std::vector<Var> weights = split_evenly(route(net, x), kExperts, -1);
  std::vector<Var> parts;
  for (int64_t i = 0; i < kExperts; ++i) {
    const ProvenanceScope scope("expert" + std::to_string(i));
    parts.push_back(mul(net.gated_feed_forward(x, kExpertWidth), weights[static_cast<size_t>(i)]));
  }
  const ProvenanceScope scope("mix");
  return sum(parts);
}

}  // namespace

Graph build_mixture_of_experts(int64_t batch) {
  Graph graph("mixture_of_experts");
  const Layers net(graph, graph.name());
  Var x = net.image({batch, kTokens, kWidth}, "embeddings");
  for (int layer = 0; layer < kLayers; ++layer) {
    const ProvenanceScope scope("layer" + std::to_string(layer));
    x = add(x, net.self_attention(net.layer_norm("attention_norm", x), kHeads));
    x = add(x, experts(net, net.layer_norm("experts_norm", x)));
  }
  const ProvenanceScope scope("head");
  graph.add_output(net.layer_norm("norm", x).id(), "last_hidden_state");
  return graph;
}

}  // namespace autograph
