// Two complete transformers on token ids.
//
// bert_base: the encoder of BERT-base (Devlin et al., 2018) on 128 tokens: word, position and type embeddings summed
// and normalised, then 12 layers of width 768, 12 heads, feed-forward 3072 with gelu, normalised after each residual.
// All tokens are of type 0 and none is padding, so there is no mask. The output is the last hidden state.
//
// transformer: a small decoder-only language model on 128 tokens: 6 layers of width 512, 8 heads, feed-forward 2048,
// normalised before each branch (GPT-2's order), a causal mask as an added constant, and logits over 16,384 words.
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int64_t kTokens = 128;

struct Sizes {
  int layers;
  int64_t width;
  int64_t heads;
  int64_t feed_forward;
  int64_t words;
};

constexpr Sizes kBertBase = {12, 768, 12, 3072, 30522};
constexpr Sizes kDecoder = {6, 512, 8, 2048, 16384};

Var feed_forward(const Layers& net, Var x, const Sizes& sizes) {
  const ProvenanceScope scope("feed_forward");
  const Var inner = gelu(net.linear("up", x, sizes.feed_forward, kReluGain));
  return net.linear("down", inner, sizes.width);
}

// Sum of the embeddings of the token ids and of their positions: [batch, token, width].
Var embed(const Layers& net, int64_t batch, const Sizes& sizes) {
  const Var ids = input(net.graph(), DType::i64, Shape::of({batch, kTokens}), "input_ids");
  const ProvenanceScope scope("embeddings");
  const Var words = gather(net.parameter("word", {sizes.words, sizes.width}, 0.5F), ids);
  return add(words, net.parameter("position", {kTokens, sizes.width}, 0.5F));
}

}  // namespace

Graph build_bert_base(int64_t batch) {
  const Sizes& sizes = kBertBase;
  constexpr float kEpsilon = 1e-12F;
  Graph graph("bert_base");
  const Layers net(graph, graph.name());
  Var x = embed(net, batch, sizes);
  {
    const ProvenanceScope scope("embeddings");
    x = net.layer_norm("norm", add(x, net.parameter("type", {sizes.width}, 0.5F)), kEpsilon);
  }
  for (int layer = 0; layer < sizes.layers; ++layer) {
    const ProvenanceScope scope("layer" + std::to_string(layer));
    x = net.layer_norm("attention_norm", add(x, net.self_attention(x, sizes.heads)), kEpsilon);
    x = net.layer_norm("output_norm", add(x, feed_forward(net, x, sizes)), kEpsilon);
  }
  graph.add_output(x.id(), "last_hidden_state");
  return graph;
}

Graph build_transformer(int64_t batch) {
  const Sizes& sizes = kDecoder;
  Graph graph("transformer");
  const Layers net(graph, graph.name());
  Var x = embed(net, batch, sizes);
  const Var mask = net.causal_mask(kTokens);
  for (int layer = 0; layer < sizes.layers; ++layer) {
    const ProvenanceScope scope("layer" + std::to_string(layer));
    x = add(x, net.self_attention(net.layer_norm("attention_norm", x), sizes.heads, mask));
    x = add(x, feed_forward(net, net.layer_norm("feed_forward_norm", x), sizes));
  }
  const ProvenanceScope scope("head");
  graph.add_output(net.project("words", net.layer_norm("norm", x), sizes.words).id(), "logits");
  return graph;
}

}  // namespace autograph
