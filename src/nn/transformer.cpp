#include "autograph/nn/transformer.h"

#include <string>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "base/check.h"

namespace autograph::nn {
namespace {

struct FeedForward {
  Linear& first;
  Linear& second;
  Dropout& dropout;
  bool is_gelu = false;

  Var operator()(const Var& x) const {
    const Var inner = first(x);
    return dropout(second(dropout(is_gelu ? gelu(inner) : relu(inner))));
  }
};

template <class Layer>
std::vector<Layer*> add_layers(Module& stack, const TransformerSettings& settings, int64_t count) {
  auto& parent = stack.add<Sequential>("layers");
  std::vector<Layer*> layers;
  for (int64_t number = 0; number < count; ++number) {
    layers.push_back(&parent.add<Layer>(std::to_string(number), settings));
  }
  return layers;
}

LayerNorm* add_final_norm(Module& stack, const TransformerSettings& settings) {
  return &stack.add<LayerNorm>("norm", Dims{settings.width}, settings.epsilon);
}

// `layer(number, y)` of all layers, one after the other, and the norm behind them.
template <class Layer>
Var through_layers(const Var& x, size_t count, LayerNorm* norm, const Layer& layer) {
  Var y = x;
  for (size_t number = 0; number < count; ++number) {
    const ProvenanceScope scope("layers/" + std::to_string(number));
    y = layer(number, y);
  }
  return norm ? (*norm)(y) : y;
}

// Before the first tokens there are none.
template <class Cache>
void fit_caches(std::vector<Cache>& caches, size_t layers) {
  AG_CHECK_USER(caches.empty() || caches.size() == layers, ValueError,
                "[nn] transformer: expected no caches or one for each of {} blocks, got {}", layers, caches.size());
  caches.resize(layers);
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(TransformerSettings settings)
    : settings_(settings),
      self_attn_(add<MultiheadAttention>("self_attn", settings.width, settings.heads, settings.dropout)),
      linear1_(add<Linear>("linear1", settings.width, settings.feed_forward)),
      linear2_(add<Linear>("linear2", settings.feed_forward, settings.width)),
      norm1_(add<LayerNorm>("norm1", Dims{settings.width}, settings.epsilon)),
      norm2_(add<LayerNorm>("norm2", Dims{settings.width}, settings.epsilon)),
      dropout_(add<Dropout>("dropout", settings.dropout)) {}

Var TransformerEncoderLayer::forward(const Var& x) { return forward(x, AttentionMask{}); }

Var TransformerEncoderLayer::forward(const Var& x, const AttentionMask& mask) {
  return around(x, [&](const Var& y) { return dropout_(self_attn_.forward(y, y, y, mask)); });
}

Var TransformerEncoderLayer::forward(const Var& x, KeyValueCache& cache) {
  return around(x, [&](const Var& y) { return dropout_(self_attn_.forward(y, cache)); });
}

Var TransformerEncoderLayer::around(const Var& x, const std::function<Var(const Var&)>& attend) {
  const FeedForward feed_forward{linear1_, linear2_, dropout_, settings_.gelu};
  if (settings_.norm_first) {
    const Var y = x + attend(norm1_(x));
    return y + feed_forward(norm2_(y));
  }
  const Var y = norm1_(x + attend(x));
  return norm2_(y + feed_forward(y));
}

TransformerDecoderLayer::TransformerDecoderLayer(TransformerSettings settings)
    : settings_(settings),
      self_attn_(add<MultiheadAttention>("self_attn", settings.width, settings.heads, settings.dropout)),
      multihead_attn_(add<MultiheadAttention>("multihead_attn", settings.width, settings.heads, settings.dropout)),
      linear1_(add<Linear>("linear1", settings.width, settings.feed_forward)),
      linear2_(add<Linear>("linear2", settings.feed_forward, settings.width)),
      norm1_(add<LayerNorm>("norm1", Dims{settings.width}, settings.epsilon)),
      norm2_(add<LayerNorm>("norm2", Dims{settings.width}, settings.epsilon)),
      norm3_(add<LayerNorm>("norm3", Dims{settings.width}, settings.epsilon)),
      dropout_(add<Dropout>("dropout", settings.dropout)) {}

Var TransformerDecoderLayer::forward(const Var& x, const Var& memory, const DecoderMasks& masks) {
  return around(
      x, [&](const Var& y) { return self_attn_.forward(y, y, y, masks.tokens); },
      [&](const Var& y) { return multihead_attn_.forward(y, memory, memory, masks.memory); });
}

Var TransformerDecoderLayer::forward(const Var& x, const Var& memory, DecoderCache& cache,
                                     const AttentionMask& memory_mask) {
  if (!cache.memory.key.is_valid()) {
    AG_CHECK_USER(memory.is_valid(), ValueError, "[nn] transformer: expected a memory with the first tokens, got none");
    cache.memory = multihead_attn_.remember(memory);
  }
  return around(
      x, [&](const Var& y) { return self_attn_.forward(y, cache.tokens); },
      [&](const Var& y) { return multihead_attn_.look_up(y, cache.memory, memory_mask); });
}

Var TransformerDecoderLayer::around(const Var& x, const Branch& attention, const Branch& memory) {
  const FeedForward feed_forward{linear1_, linear2_, dropout_, settings_.gelu};
  const auto attend = [&](const Var& y) { return dropout_(attention(y)); };
  const auto look_up = [&](const Var& y) { return dropout_(memory(y)); };
  if (settings_.norm_first) {
    Var y = x + attend(norm1_(x));
    y = y + look_up(norm2_(y));
    return y + feed_forward(norm3_(y));
  }
  Var y = norm1_(x + attend(x));
  y = norm2_(y + look_up(y));
  return norm3_(y + feed_forward(y));
}

TransformerEncoder::TransformerEncoder(TransformerSettings settings, int64_t count, bool final_norm)
    : layers_(add_layers<TransformerEncoderLayer>(*this, settings, count)) {
  if (final_norm) norm_ = add_final_norm(*this, settings);
}

Var TransformerEncoder::forward(const Var& x) { return forward(x, AttentionMask{}); }

Var TransformerEncoder::forward(const Var& x, const AttentionMask& mask) {
  return through_layers(x, layers_.size(), norm_,
                        [&](size_t number, const Var& y) { return layers_[number]->forward(y, mask); });
}

Var TransformerEncoder::forward(const Var& x, std::vector<KeyValueCache>& caches) {
  fit_caches(caches, layers_.size());
  return through_layers(x, layers_.size(), norm_,
                        [&](size_t number, const Var& y) { return layers_[number]->forward(y, caches[number]); });
}

TransformerDecoder::TransformerDecoder(TransformerSettings settings, int64_t count, bool final_norm)
    : layers_(add_layers<TransformerDecoderLayer>(*this, settings, count)) {
  if (final_norm) norm_ = add_final_norm(*this, settings);
}

Var TransformerDecoder::forward(const Var& x, const Var& memory, const DecoderMasks& masks) {
  return through_layers(x, layers_.size(), norm_,
                        [&](size_t number, const Var& y) { return layers_[number]->forward(y, memory, masks); });
}

Var TransformerDecoder::forward(const Var& x, const Var& memory, std::vector<DecoderCache>& caches,
                                const AttentionMask& memory_mask) {
  fit_caches(caches, layers_.size());
  return through_layers(x, layers_.size(), norm_, [&](size_t number, const Var& y) {
    return layers_[number]->forward(y, memory, caches[number], memory_mask);
  });
}

}  // namespace autograph::nn
