// Decoders of a language model as exporters write them today (Llama's layout, Touvron et al., 2023; grouped queries,
// Ainslie et al., 2023): root mean square norms, rotary embeddings, 8 query heads of 64 that share 2 heads of keys and
// values, and a gated feed-forward part. 8 layers of width 512, feed-forward 1408, 16,384 words.
//
// decoder: 128 tokens at once (the prompt), causal mask, logits and the keys and values of each layer.
// decoder_step: one more token behind 127 whose keys and values are inputs; gives its logits and the longer caches.
#include <cmath>
#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/shape.h"
#include "models/layers.h"
#include "models/models.h"

namespace autograph {
namespace {

constexpr int kLayers = 8;
constexpr int64_t kWidth = 512;
constexpr int64_t kHeads = 8;
constexpr int64_t kGroups = 2;  // heads of keys and values
constexpr int64_t kHeadWidth = kWidth / kHeads;
constexpr int64_t kFeedForward = 1408;
constexpr int64_t kWords = 16384;
constexpr int64_t kTokens = 128;  // with those in the cache
constexpr double kTheta = 10000;

// Cosines and sines of the angles of positions `first` up to kTokens: [tokens, head width], both halves alike.
struct Angles {
  Var cosines;
  Var sines;
};

Angles rotary_angles(Graph& graph, int64_t first) {
  std::vector<float> cosines;
  std::vector<float> sines;
  for (int64_t position = first; position < kTokens; ++position) {
    for (int64_t i = 0; i < kHeadWidth; ++i) {
      const double exponent = 2.0 * static_cast<double>(i % (kHeadWidth / 2)) / static_cast<double>(kHeadWidth);
      const double angle = static_cast<double>(position) * std::pow(kTheta, -exponent);
      cosines.push_back(static_cast<float>(std::cos(angle)));
      sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  const Shape shape{kTokens - first, kHeadWidth};
  return {constant(graph, Tensor::of<float>(shape.static_dims(), cosines), "cosines"),
          constant(graph, Tensor::of<float>(shape.static_dims(), sines), "sines")};
}

// Pairs are an element and the one half a head behind it.
Var rotate(Var x, const Angles& angles) {
  const std::vector<Var> halves = split_evenly(x, 2, -1);
  const Var turned = concat({neg(halves[1]), halves[0]}, -1);
  return add(mul(x, angles.cosines), mul(turned, angles.sines));
}

// [batch, groups, keys, width] with every head as often as queries read it.
Var repeat_heads(Var x) {
  const int64_t repeats = kHeads / kGroups;
  const Var wide = expand(unsqueeze(x, {2}), {x.dim(0), kGroups, repeats, x.dim(2), kHeadWidth});
  return reshape(wide, {x.dim(0), kHeads, x.dim(2), kHeadWidth});
}

// A decoder under construction.
class Decoder {
 public:
  Decoder(const Layers& net, int64_t new_tokens)
      : net_(net), new_tokens_(new_tokens), angles_(rotary_angles(net.graph(), kTokens - new_tokens)) {
    if (new_tokens > 1) mask_ = net.causal_mask(kTokens);
  }

  Var layer(Var x, const std::string& name) {
    const ProvenanceScope scope(name);
    x = add(x, attention(norm("attention_norm", x), name));
    const Var y = norm("feed_forward_norm", x);
    return add(x, scoped("feed_forward", [&] { return net_.gated_feed_forward(y, kFeedForward); }));
  }

  Var norm(const std::string& name, Var x) const {
    const ProvenanceScope scope(name);
    return rms_normalization(x, net_.uniform_parameter("weight", {kWidth}, 0.8F, 1.2F));
  }

  // Keys and values of all layers, as outputs.
  void add_caches() {
    for (const auto& [name, cache] : caches_) net_.graph().add_output(cache.id(), name);
  }

 private:
  Var heads(const std::string& name, Var x, int64_t count) const {
    const Var y = net_.project(name, x, count * kHeadWidth);
    return transpose(reshape(y, {x.dim(0), new_tokens_, count, kHeadWidth}), {0, 2, 1, 3});
  }

  // What is in the cache, if there is one, and the new behind it.
  Var remembered(const std::string& name, Var fresh) {
    Var all = fresh;
    if (new_tokens_ < kTokens) {
      const Var past = net_.image({fresh.dim(0), kGroups, kTokens - new_tokens_, kHeadWidth}, "past_" + name);
      all = concat({past, fresh}, 2);
    }
    caches_.emplace_back("present_" + name, all);
    return all;
  }

  Var attention(Var x, const std::string& layer) {
    const ProvenanceScope scope("attention");
    const Var q = rotate(heads("query", x, kHeads), angles_);
    const Var k = remembered(layer + "_key", rotate(heads("key", x, kGroups), angles_));
    const Var v = remembered(layer + "_value", heads("value", x, kGroups));
    Var scores = matmul(q, transpose(repeat_heads(k), {0, 1, 3, 2}));
    scores = mul(scores, scalar_like(scores, 1.0 / std::sqrt(static_cast<double>(kHeadWidth))));
    if (mask_.is_valid()) scores = add(scores, mask_);
    const Var mixed = matmul(softmax(scores), repeat_heads(v));
    return net_.project("output", reshape(transpose(mixed, {0, 2, 1, 3}), {x.dim(0), new_tokens_, kWidth}), kWidth);
  }

  const Layers& net_;
  int64_t new_tokens_;
  Angles angles_;
  Var mask_;
  std::vector<std::pair<std::string, Var>> caches_;
};

Graph language_model(const std::string& name, int64_t batch, int64_t new_tokens) {
  Graph graph(name);
  // Weights are those of "decoder" in both, so that a step continues what the prompt began.
  const Layers net(graph, "decoder");
  const Var ids = input(graph, DType::i64, Shape::of({batch, new_tokens}), "input_ids");
  const auto embedded = [&] {
    const ProvenanceScope scope("embeddings");
    return gather(net.parameter("word", {kWords, kWidth}, 1.0F), ids);
  };
  Var x = embedded();
  const ProvenanceScope decoder_scope("decoder");
  Decoder decoder(net, new_tokens);
  for (int layer = 0; layer < kLayers; ++layer) x = decoder.layer(x, "layer" + std::to_string(layer));
  graph.add_output(net.project("words", decoder.norm("norm", x), kWords).id(), "logits");
  decoder.add_caches();
  return graph;
}

}  // namespace

Graph build_decoder(int64_t batch) { return language_model("decoder", batch, kTokens); }

Graph build_decoder_step(int64_t batch) { return language_model("decoder_step", batch, 1); }

}  // namespace autograph
