#include "autograph/nn/attention.h"

#include <algorithm>
#include <cmath>

#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "nn/binding.h"

namespace autograph::nn {
namespace {

int64_t head_size(int64_t width, int64_t heads) {
  AG_CHECK_USER(heads >= 1 && width % heads == 0, ValueError,
                "[nn] attention: expected heads that divide the width {}, got {}", width, heads);
  return width / heads;
}

// [batch, length, heads * size] as [batch, heads, length, size].
Var split_heads(const Var& x, int64_t heads, int64_t size) {
  return transpose(reshape(x, {0, 0, heads, size}), {0, 2, 1, 3});
}

Var join_heads(const Var& x, int64_t width) { return reshape(transpose(x, {0, 2, 1, 3}), {0, 0, width}); }

// What a mask adds to scores, none where there is nothing to hide.
Var added_mask(const AttentionMask& given, const Var& scores) {
  Var added;
  if (given.mask.is_valid()) {
    const bool hides = given.mask.dtype() == DType::boolean;
    added = hides ? where(given.mask, scalar_like(scores, 0), scalar_like(scores, -INFINITY)) : given.mask;
  }
  if (!given.is_causal) return added;
  AG_CHECK_USER(scores.shape()[2].is_known() && scores.shape()[3].is_known(), ShapeError,
                "[nn] attention: expected known lengths for a causal mask with dropout, got {}",
                to_string(scores.type()));
  const Dims dims{scores.dim(2), scores.dim(3)};
  Tensor causal = Tensor::zeros(DType::f32, dims);
  for (int64_t row = 0; row < dims[0]; ++row) {
    for (int64_t column = row + 1; column < dims[1]; ++column) {
      causal.mutable_data<float>()[row * dims[1] + column] = -INFINITY;
    }
  }
  const Var of_order = constant_like(scores, std::move(causal));
  return added.is_valid() ? added + of_order : of_order;
}

// Causal attention of heads of tokens that stand behind those of the cache, which gets theirs, too.
Var attend_behind(const Var& q, const Var& k, const Var& v, KeyValueCache& cache) {
  const bool is_first = !cache.key.is_valid();
  const int64_t before = is_first ? 0 : cache.key.dim(2);
  cache.key = is_first ? k : concat({cache.key, k}, 2);
  cache.value = is_first ? v : concat({cache.value, v}, 2);
  // A query sees the keys up to its own place: rows of the mask begin behind the cache.
  const int64_t queries = q.dim(2), keys = before + queries;
  Tensor visible = Tensor::zeros(DType::boolean, {queries, keys});
  for (int64_t row = 0; row < queries; ++row) {
    std::fill_n(visible.mutable_data<bool>() + row * keys, before + row + 1, true);
  }
  return attention(q, cache.key, cache.value, {.mask = constant_like(q, std::move(visible))});
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t width, int64_t heads, double dropout, bool bias)
    : width_(width),
      heads_(heads),
      drop_ratio_(dropout),
      in_weight_(add_parameter("in_proj_weight", {3 * width, width}, Init::xavier_uniform())),
      out_proj_(add<Linear>("out_proj", width, width, bias)),
      dropout_(add<Dropout>("dropout", dropout)) {
  head_size(width, heads);
  if (!bias) return;
  in_bias_ = &add_parameter("in_proj_bias", {3 * width}, Init::zeros());
  out_proj_.tensor(out_proj_.path() + ".bias").set_value(Tensor::zeros(DType::f32, {width}));
}

Var MultiheadAttention::forward(const Var& x) { return forward(x, x, x); }

// The projections of queries, keys and values stand in one matrix, in this order.
Var MultiheadAttention::project(const Var& x, int64_t part) {
  const auto rows = [&](const Var& whole) { return slice(whole, {part * width_}, {(part + 1) * width_}, {0}); };
  const Var y = matmul(x, transpose(rows(in_weight_.beside(x)), {1, 0}));
  return in_bias_ ? y + rows(in_bias_->beside(x)) : y;
}

Var MultiheadAttention::project_to_heads(const Var& x, int64_t part) {
  return split_heads(project(x, part), heads_, head_size(width_, heads_));
}

Var MultiheadAttention::joined(const Var& heads) { return out_proj_(join_heads(heads, width_)); }

Var MultiheadAttention::forward(const Var& q, const Var& k, const Var& v, const AttentionMask& mask) {
  const ProvenanceScope scope("attention");
  return out_proj_(mixed(project(q, 0), project(k, 1), project(v, 2), mask));
}

void MultiheadAttention::refuse_dropping() const {
  if (is_training() && drop_ratio_ > 0)
    throw UnsupportedError("[nn] attention: a cache is of no use where weights are dropped: call eval()");
}

Var MultiheadAttention::forward(const Var& x, KeyValueCache& cache) {
  refuse_dropping();
  const ProvenanceScope scope("attention");
  const Var q = project_to_heads(x, 0), k = project_to_heads(x, 1), v = project_to_heads(x, 2);
  return joined(attend_behind(q, k, v, cache));
}

KeyValueCache MultiheadAttention::remember(const Var& memory) {
  const ProvenanceScope scope("attention");
  return {project_to_heads(memory, 1), project_to_heads(memory, 2)};
}

Var MultiheadAttention::look_up(const Var& q, const KeyValueCache& memory, const AttentionMask& mask) {
  refuse_dropping();
  const ProvenanceScope scope("attention");
  return joined(
      attention(project_to_heads(q, 0), memory.key, memory.value, {.mask = mask.mask, .is_causal = mask.is_causal}));
}

// With dropout the weights are there to be dropped; otherwise the op has kernels of its own.
Var MultiheadAttention::mixed(const Var& q, const Var& k, const Var& v, const AttentionMask& mask) {
  if (drop_ratio_ == 0 || !is_training()) {
    return attention(q, k, v,
                     {.mask = mask.mask, .is_causal = mask.is_causal, .q_num_heads = heads_, .kv_num_heads = heads_});
  }
  const int64_t size = head_size(width_, heads_);
  const Var keys = transpose(split_heads(k, heads_, size), {0, 1, 3, 2});
  Var scores = matmul(split_heads(q, heads_, size), keys) * (1 / std::sqrt(static_cast<double>(size)));
  if (const Var added = added_mask(mask, scores); added.is_valid()) scores = scores + added;
  return join_heads(matmul(dropout_(softmax(scores)), split_heads(v, heads_, size)), width_);
}

GroupedQueryAttention::GroupedQueryAttention(int64_t width, GroupedQuerySettings settings)
    : settings_(settings),
      head_size_(head_size(width, settings.heads)),
      q_proj_(add<Linear>("q_proj", width, width, settings.bias)),
      k_proj_(add<Linear>("k_proj", width, settings.kv_heads * head_size_, settings.bias)),
      v_proj_(add<Linear>("v_proj", width, settings.kv_heads * head_size_, settings.bias)),
      o_proj_(add<Linear>("o_proj", width, width, settings.bias)) {
  AG_CHECK_USER(settings.kv_heads >= 1 && settings.heads % settings.kv_heads == 0, ValueError,
                "[nn] attention: expected kv_heads that divide {} heads, got {}", settings.heads, settings.kv_heads);
  AG_CHECK_USER(settings.rotary_theta == 0 || head_size_ % 2 == 0, ValueError,
                "[nn] attention: expected an even head size for a rotary embedding, got {}", head_size_);
}

Var GroupedQueryAttention::heads_of(Linear& projection, const Var& x, int64_t heads) const {
  return split_heads(projection(x), heads, head_size_);
}

// Angles of the positions from `first_position` on: position * theta^(-2 i / size).
Var GroupedQueryAttention::rotated(const Var& x, int64_t first_position) const {
  if (settings_.rotary_theta == 0) return x;
  const int64_t length = x.dim(2), half = head_size_ / 2;
  AG_CHECK_USER(first_position + length <= settings_.max_positions, ValueError,
                "[nn] attention: expected at most {} positions, got {}", settings_.max_positions,
                first_position + length);
  Tensor cosines = Tensor::empty(DType::f32, {1, length, half}), sines = Tensor::empty(DType::f32, {1, length, half});
  for (int64_t t = 0; t < length; ++t) {
    for (int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(head_size_);
      const double angle = static_cast<double>(first_position + t) * std::pow(settings_.rotary_theta, exponent);
      cosines.mutable_data<float>()[t * half + i] = static_cast<float>(std::cos(angle));
      sines.mutable_data<float>()[t * half + i] = static_cast<float>(std::sin(angle));
    }
  }
  // Written out, since rotary_embedding() wants angles for each sample of the batch.
  const Var c = unsqueeze(constant_like(x, std::move(cosines)), {0});
  const Var s = unsqueeze(constant_like(x, std::move(sines)), {0});
  const std::vector<Var> halves = split(x, {half, half}, 3);
  return concat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, 3);
}

Var GroupedQueryAttention::forward(const Var& x) {
  KeyValueCache none;
  return forward(x, none);
}

Var GroupedQueryAttention::forward(const Var& x, KeyValueCache& cache) {
  const ProvenanceScope scope("attention");
  const int64_t before = cache.key.is_valid() ? cache.key.dim(2) : 0;
  const Var q = rotated(heads_of(q_proj_, x, settings_.heads), before);
  const Var k = rotated(heads_of(k_proj_, x, settings_.kv_heads), before);
  const Var v = heads_of(v_proj_, x, settings_.kv_heads);
  return o_proj_(join_heads(attend_behind(q, k, v, cache), settings_.heads * head_size_));
}

}  // namespace autograph::nn
