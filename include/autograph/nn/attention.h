// Attention. Tensors are [batch, length, width] everywhere. Transformer blocks: transformer.h.
#pragma once

#include <cstdint>

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
  /// Attention of queries to what remember() gave. Throws UnsupportedError as with a cache.
  Var look_up(const Var& q, const KeyValueCache& memory, const AttentionMask& mask = {});

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

}  // namespace autograph::nn
