// Attention and transformer blocks. Tensors are [batch, length, width] everywhere.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "autograph/nn/layers.h"
#include "autograph/nn/module.h"

namespace autograph::nn {

/// Which keys a query sees.
struct AttentionMask {
  Var mask = {};           ///< Broadcasts to [batch, heads, queries, keys]; bool hides where false, floats are added.
  bool is_causal = false;  ///< Hides keys behind the query.
};

/// Keys and values of the tokens so far, [batch, kv heads, length, head size] each; none before the first.
struct KeyValueCache {
  Var key = {};
  Var value = {};
};

/// torch.nn.MultiheadAttention with batch_first: in_proj_weight [3 * width, width], in_proj_bias, out_proj.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t width, int64_t heads, double dropout = 0, bool bias = true);
  /// Self-attention, of which every query sees every key.
  Var forward(const Var& x) override;
  /// Each of [batch, length, width]; k and v are equally long.
  Var forward(const Var& q, const Var& k, const Var& v, const AttentionMask& mask = {});
  /// Causal self-attention of tokens that stand behind those of the cache, which gets theirs, too; the length of x and
  /// of the cache is known. Throws UnsupportedError where weights would be dropped: call eval().
  Var forward(const Var& x, KeyValueCache& cache);
  /// Keys and values of a memory that many queries look up, computed once.
  KeyValueCache remember(const Var& memory);
  /// Attention of queries to all of what remember() gave. Throws UnsupportedError as with a cache.
  Var look_up(const Var& q, const KeyValueCache& memory);

 private:
  Var project(const Var& x, int64_t part);
  Var project_to_heads(const Var& x, int64_t part);
  Var joined(const Var& heads);
  Var mixed(const Var& q, const Var& k, const Var& v, const AttentionMask& mask);
  void refuse_dropping() const;

  int64_t width_;
  int64_t heads_;
  double drop_ratio_;
  Parameter& in_weight_;
  Parameter* in_bias_ = nullptr;
  Linear& out_proj_;
  Dropout& dropout_;
};

/// What grouped-query attention has besides its width.
struct GroupedQuerySettings {
  int64_t heads = 8;
  int64_t kv_heads = 2;          ///< Divides `heads`: so many queries share a head of keys and values.
  double rotary_theta = 10000;   ///< Base of the rotary embedding; 0: none.
  int64_t max_positions = 2048;  ///< Longest sequence.
  bool bias = false;
};

/// Causal attention in which several heads of queries share one of keys and values (Ainslie et al. 2023), with rotary
/// position embeddings; parameters q_proj, k_proj, v_proj and o_proj, as Llama's.
class GroupedQueryAttention : public Module {
 public:
  GroupedQueryAttention(int64_t width, GroupedQuerySettings settings);
  /// Self-attention of whole sequences.
  Var forward(const Var& x) override;
  /// The same of tokens that stand behind those of the cache, which gets theirs, too; the length of x and of the cache
  /// is known.
  Var forward(const Var& x, KeyValueCache& cache);

 private:
  Var heads_of(Linear& projection, const Var& x, int64_t heads) const;
  Var rotated(const Var& x, int64_t first_position) const;

  GroupedQuerySettings settings_;
  int64_t head_size_;
  Linear& q_proj_;
  Linear& k_proj_;
  Linear& v_proj_;
  Linear& o_proj_;
};

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
  Var feed_forward(const Var& x);

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

/// torch.nn.TransformerDecoderLayer with batch_first: self-attention, which is causal, and attention to a memory.
class TransformerDecoderLayer : public Module {
 public:
  explicit TransformerDecoderLayer(TransformerSettings settings);
  using Module::forward;
  Var forward(const Var& x, const Var& memory);
  /// The same of tokens behind those of the cache, which gets theirs, too. `memory` is that of the first call: later
  /// ones need not be given it.
  Var forward(const Var& x, const Var& memory, DecoderCache& cache);

 private:
  using Branch = std::function<Var(const Var&)>;
  Var around(const Var& x, const Branch& attention, const Branch& memory);
  Var feed_forward(const Var& x);

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

/// `count` blocks, layers.0 to layers.N, and with `final_norm` a norm behind them.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(TransformerSettings settings, int64_t count, bool final_norm = false);
  Var forward(const Var& x) override;
  Var forward(const Var& x, const AttentionMask& mask);
  /// With a causal mask, of tokens behind those of the caches: one for each block, none before the first tokens.
  Var forward(const Var& x, std::vector<KeyValueCache>& caches);

 private:
  Var through(const Var& x, const std::function<Var(size_t, const Var&)>& block);

  std::vector<TransformerEncoderLayer*> layers_;
  LayerNorm* norm_ = nullptr;
};

}  // namespace autograph::nn
