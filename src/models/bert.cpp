// BERT as TASO's example has it, in two readings (algorithms.md 1.6 and 4.9): 8 layers of width 1024 with 16 heads of
// 64, on 16 sequences of 64 tokens, already embedded as a 1024x1024 matrix; 70.9 GFLOP. No feed-forward part, no
// normalisation, no residuals.
//
// As shipped: keys are not transposed (legal only because sequence and head are both 64 long), there is no softmax, and
// the output projection reads the layer's input X instead of the attention's result, which dangles and is a graph
// output here. 113 ops.
//
// Mended ("bert"): keys transposed, projection applied to the attention, as in TASO's C++ form of the model, and a
// softmax over the logits: one op more a layer, 121 in all. Without it a layer is homogeneous of degree 3 in X and
// eight of them of degree 6561: no f32 input survives that, and no two backends would agree on the result. The scale
// 1/sqrt(64) is in the drawn query weights.
//
// One unit of batch is TASO's whole input of 16 sequences, so that batch 1 is the workload of the published table.
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int kLayers = 8;
constexpr int64_t kHeads = 16;
constexpr int64_t kHeadWidth = 64;
constexpr int64_t kWidth = kHeads * kHeadWidth;
constexpr int64_t kTokens = 64;
constexpr int64_t kSequences = 16;

// [sequences * tokens, width] to heads, with its axes in the order `perm` of [sequence, token, head, column].
Var heads(Var x, const std::vector<int64_t>& perm) {
  return transpose(reshape(x, {x.dim(0) / kTokens, kTokens, kHeads, kHeadWidth}), perm);
}

// [sequence, head, token, column] back to [sequences * tokens, width].
Var joined(Var x) { return reshape(transpose(x, {0, 2, 1, 3}), {x.dim(0) * kTokens, kWidth}); }

// The input, through the relu that TASO puts in front of the first layer.
Var embedded_input(const Layers& net, int64_t batch) {
  const ProvenanceScope scope("input");
  return relu(net.image({batch * kSequences * kTokens, kWidth}));
}

Var mended_layer(const Layers& net, Var x) {
  const Var q = heads(net.project("query", x, kWidth, 2.0F / 8.0F), {0, 2, 1, 3});
  const Var k = heads(net.project("key", x, kWidth), {0, 2, 3, 1});
  const Var v = heads(net.project("value", x, kWidth), {0, 2, 1, 3});
  return net.project("output", joined(matmul(softmax(matmul(q, k)), v)), kWidth, 2.0F);
}

struct ShippedLayer {
  Var next;
  Var dangling;
};

// The gains keep a product of three matrices, each a sum over 64 terms, near 1.
ShippedLayer shipped_layer(const Layers& net, Var x) {
  const Var q = heads(net.project("query", x, kWidth, 1.0F / 8.0F), {0, 2, 1, 3});
  const Var k = heads(net.project("key", x, kWidth), {0, 2, 1, 3});
  const Var v = heads(net.project("value", x, kWidth, 1.0F / 8.0F), {0, 2, 1, 3});
  return {net.project("output", x, kWidth), joined(matmul(matmul(q, k), v))};
}

}  // namespace

Graph build_bert(int64_t batch) {
  Graph graph("bert");
  const Layers net(graph, graph.name());
  Var x = embedded_input(net, batch);
  for (int layer = 0; layer < kLayers; ++layer) {
    const ProvenanceScope scope("layer" + std::to_string(layer));
    x = mended_layer(net, x);
  }
  graph.add_output(x.id(), "output");
  return graph;
}

Graph build_bert_taso_as_shipped(int64_t batch) {
  Graph graph("bert_taso_as_shipped");
  const Layers net(graph, graph.name());
  Var x = embedded_input(net, batch);
  std::vector<Var> dangling;
  for (int layer = 0; layer < kLayers; ++layer) {
    const ProvenanceScope scope("layer" + std::to_string(layer));
    const ShippedLayer result = shipped_layer(net, x);
    dangling.push_back(result.dangling);
    x = result.next;
  }
  graph.add_output(x.id(), "output");
  for (size_t layer = 0; layer < dangling.size(); ++layer) {
    graph.add_output(dangling[layer].id(), "attention" + std::to_string(layer));
  }
  return graph;
}

}  // namespace autograph
