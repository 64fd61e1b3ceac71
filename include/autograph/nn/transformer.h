// Transformer blocks and stacks of them, with the parameters of torch.nn. Tensors are [batch, length, width].
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "autograph/nn/attention.h"
#include "autograph/nn/layers.h"
#include "autograph/nn/module.h"

namespace autograph::nn {

/// How transformer blocks are made.
struct TransformerSettings {
  int64_t width = 512;
  int64_t heads = 8;
  int64_t feed_forward = 2048;
  double dropout = 0.1;
  bool gelu = false;        ///< Between the two linear layers; relu when not.
  bool norm_first = false;  ///< Norms before each branch (GPT-2) instead of behind the sum.
  double epsilon = 1e-5;    ///< Of the norms.
};

/// torch.nn.TransformerEncoderLayer with batch_first: self_attn, linear1, linear2, norm1, norm2. With a causal mask it
/// is a block of a decoder-only language model.
class TransformerEncoderLayer : public Module {
 public:
  explicit TransformerEncoderLayer(TransformerSettings settings);
  Var forward(const Var& x) override;
  Var forward(const Var& x, const AttentionMask& mask);
  /// With a causal mask, of tokens behind those of the cache.
  Var forward(const Var& x, KeyValueCache& cache);

 private:
  Var around(const Var& x, const std::function<Var(const Var&)>& attend);

  TransformerSettings settings_;
  MultiheadAttention& self_attn_;
  Linear& linear1_;
  Linear& linear2_;
  LayerNorm& norm1_;
  LayerNorm& norm2_;
  Dropout& dropout_;
};

/// What a decoder layer keeps from token to token; nothing before the first.
struct DecoderCache {
  KeyValueCache tokens = {};  ///< Of the tokens so far.
  KeyValueCache memory = {};  ///< Of the memory, which is looked at once.
};

/// What a decoder hides, of its own tokens and of the memory.
struct DecoderMasks {
  AttentionMask tokens = {.is_causal = true};
  AttentionMask memory = {};
};

/// torch.nn.TransformerDecoderLayer with batch_first: self-attention, which is causal unless masks say otherwise, and
/// attention to a memory.
class TransformerDecoderLayer : public Module {
 public:
  explicit TransformerDecoderLayer(TransformerSettings settings);
  using Module::forward;
  Var forward(const Var& x, const Var& memory, const DecoderMasks& masks = {});
  /// The same of tokens behind those of the cache, which gets theirs, too. `memory` is that of the first call: later
  /// ones need not be given it.
  Var forward(const Var& x, const Var& memory, DecoderCache& cache, const AttentionMask& memory_mask = {});

 private:
  using Branch = std::function<Var(const Var&)>;
  Var around(const Var& x, const Branch& attention, const Branch& memory);

  TransformerSettings settings_;
  MultiheadAttention& self_attn_;
  MultiheadAttention& multihead_attn_;
  Linear& linear1_;
  Linear& linear2_;
  LayerNorm& norm1_;
  LayerNorm& norm2_;
  LayerNorm& norm3_;
  Dropout& dropout_;
};

/// torch.nn.TransformerEncoder: `count` blocks, layers.0 to layers.N, and with `final_norm` a norm behind them.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(TransformerSettings settings, int64_t count, bool final_norm = false);
  Var forward(const Var& x) override;
  Var forward(const Var& x, const AttentionMask& mask);
  /// With a causal mask, of tokens behind those of the caches: one for each block, none before the first tokens.
  Var forward(const Var& x, std::vector<KeyValueCache>& caches);

 private:
  std::vector<TransformerEncoderLayer*> layers_;
  LayerNorm* norm_ = nullptr;
};

/// torch.nn.TransformerDecoder: `count` blocks, layers.0 to layers.N, all of which look at the same memory, and with
/// `final_norm` a norm behind them.
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(TransformerSettings settings, int64_t count, bool final_norm = false);
  using Module::forward;
  Var forward(const Var& x, const Var& memory, const DecoderMasks& masks = {});
  /// The same of tokens behind those of the caches: one for each block, none before the first tokens. `memory` is that
  /// of the first call: later ones need not be given it.
  Var forward(const Var& x, const Var& memory, std::vector<DecoderCache>& caches,
              const AttentionMask& memory_mask = {});

 private:
  std::vector<TransformerDecoderLayer*> layers_;
  LayerNorm* norm_ = nullptr;
};

}  // namespace autograph::nn
