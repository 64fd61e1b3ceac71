#include "ops/attention/attention_body.h"

#include <cmath>
#include <limits>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "base/check.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

int64_t heads_of(const Var& x, const int64_t* given) {
  AG_CHECK_USER(x.shape().has_rank() && (given || x.shape()[1].is_known()), UnsupportedError,
                "[tiled_attention] body: expected known heads, got {}", to_string(x.type()));
  return x.rank() == 4 ? x.dim(1) : *given;
}

// The scores of all queries and keys. Heads that share keys stand behind each other: [batch, kv heads, queries of all
// that share, keys]; with all heads apart it is [batch, heads, queries, keys].
class Scores {
 public:
  Scores(const Attributes& attributes, const Var& q, const Var& k, const Var& mask) : attributes_(attributes) {
    heads_ = heads_of(q, attributes.find_as<int64_t>("q_num_heads"));
    kv_heads_ = heads_of(k, attributes.find_as<int64_t>("kv_num_heads"));
    const Var apart = spread_heads(q, heads_);
    queries_ = apart.shape()[2];
    q_ = shared(apart);
    k_ = spread_heads(k, kv_heads_);
    keys_ = k_.shape()[2];
    AG_CHECK_USER(k_.shape()[3].is_known() && (heads_ == kv_heads_ || (queries_.is_known() && keys_.is_known())),
                  UnsupportedError, "[tiled_attention] body: expected known extents, got {} and {}",
                  to_string(q.type()), to_string(k.type()));
    scale_ = attributes.get_or<float>("scale", 1 / std::sqrt(static_cast<float>(k_.dim(3))));
    softcap_ = attributes.real("softcap");
    capped_ = unshared(matmul(q_, swap_last_two(k_)) * scale_);
    if (softcap_ > 0) capped_ = tanh(capped_ / softcap_) * softcap_;
    if (mask.is_valid()) bias_ = additive_mask(mask, q_, keys_);
    hide();
  }

  int64_t kv_heads() const { return kv_heads_; }
  int64_t heads() const { return heads_; }
  double scale() const { return scale_; }
  const Var& q() const { return q_; }
  const Var& k() const { return k_; }
  /// [batch, heads, queries, keys], minus infinity where a key is hidden.
  Var hidden() const { return bias_.is_valid() ? capped_ + bias_ : capped_; }
  /// bool [..., queries, 1]: does a query see any key? Invalid: all do.
  Var sees_any() const {
    if (!bias_.is_valid()) return {};
    return greater(reduce_max(bias_, {-1}), scalar_like(bias_, -kInfinity));
  }
  /// d scores / d (q k^T), times a gradient of the scores.
  Var through_scale(const Var& gradient) const {
    if (softcap_ <= 0) return gradient * scale_;
    const Var bent = capped_ / softcap_;
    return gradient * (1 - bent * bent) * scale_;
  }

  Var shared(const Var& x) const { return heads_ == kv_heads_ ? x : reshape(x, {0, kv_heads_, -1, x.dim(3)}); }
  Var unshared(const Var& x) const {
    return heads_ == kv_heads_ ? x : reshape(x, {0, heads_, queries_.value(), x.dim(3)});
  }

 private:
  // The causal frontier and windows.
  void hide() {
    if (!hides_by_position(attributes_)) return;
    const auto positions = [&](int64_t axis, const std::vector<int64_t>& dims) {
      const Dim extent = axis == 2 ? queries_ : keys_;
      const auto number = [&](int64_t value) { return constant_like(q_, Tensor::scalar(value)); };
      const Var count = extent.is_known()
                            ? number(extent.value())
                            : reshape(slice(shape(capped_), {axis}, {axis + 1}, {0}), std::vector<int64_t>{});
      return reshape(range(number(0), count, number(1)), dims);
    };
    const Var distance = positions(2, {-1, 1}) - positions(3, {1, -1});
    const Var seen = bias_.is_valid() ? bias_ : scalar_like(q_, 0);
    bias_ = where(seen_from(distance, attributes_), seen, scalar_like(q_, -kInfinity));
  }

  const Attributes& attributes_;
  int64_t heads_ = 0, kv_heads_ = 0;
  Dim queries_, keys_;
  Var q_, k_;   // [batch, kv heads, length, size]
  Var capped_;  // before the bias
  Var bias_;    // broadcasts to [batch, heads, queries, keys]; may be invalid
  double scale_ = 1, softcap_ = 0;
};

// What flows into the mask's part of all keys, for all heads and queries.
Var gradient_of_mask(const Var& of_scores, const Var& mask) {
  const Dim &covered = mask.shape()[mask.rank() - 1], &keys = of_scores.shape()[3];
  Var gradient = of_scores;
  if (covered.is_unknown() || !covered.same_as(keys)) gradient = slice(gradient, {0}, {covered.value()}, {3});
  const bool is_of_sample = mask.rank() == 4 && !(mask.shape()[0].is_known() && mask.dim(0) == 1);
  return is_of_sample ? gradient : reduce_sum(gradient, {0});
}

// Statistics of half precision are f32.
Var as_statistic(const Var& x) { return x.dtype() == DType::f64 ? x : cast(x, DType::f32); }

}  // namespace

Var spread_heads(const Var& x, int64_t heads) {
  if (x.rank() == 4) return x;
  return transpose(reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

Var like_heads_of(const Var& gradient, const Var& x) {
  return x.rank() == 4 ? gradient : reshape_as(transpose(gradient, {0, 2, 1, 3}), x);
}

Var additive_mask(const Var& mask, const Var& like, const Dim& keys) {
  const Var hides = scalar_like(like, -kInfinity);
  const Var bias = mask.dtype() == DType::boolean ? where(mask, scalar_like(like, 0), hides) : cast(mask, like.dtype());
  const Dim covered = mask.shape().has_rank() ? mask.shape()[mask.rank() - 1] : Dim::unknown();
  if (!covered.is_unknown() && covered.same_as(keys)) return bias;
  AG_CHECK_USER(covered.is_known() && keys.is_known(), UnsupportedError,
                "[tiled_attention] body: expected a mask of known extents, got {}", to_string(mask.type()));
  std::vector<int64_t> pads(static_cast<size_t>(2 * mask.rank()), 0);
  pads.back() = keys.value() - covered.value();
  return pad(bias, pads, "constant", hides);
}

bool hides_by_position(const Attributes& attributes) {
  return attributes.flag("is_causal") || attributes.integer("left_window_size") >= 0 ||
         attributes.integer("right_window_size") >= 0;
}

Var seen_from(const Var& distance, const Attributes& attributes) {
  Var seen;
  const auto keep = [&](const Var& condition) { seen = seen.is_valid() ? logical_and(seen, condition) : condition; };
  const auto number = [&](int64_t value) { return scalar_like(distance, static_cast<double>(value)); };
  const int64_t left = attributes.integer("left_window_size"), right = attributes.integer("right_window_size");
  if (attributes.flag("is_causal")) keep(greater_or_equal(distance, number(0)));
  if (left >= 0) keep(less_or_equal(distance, number(left)));
  if (right >= 0) keep(greater_or_equal(distance, number(-right)));
  return seen;
}

std::vector<Var> tiled_attention_body(DecomposeContext& context) {
  const std::vector<Var>& in = context.inputs;
  const Scores scores(context.attributes, in[0], in[1], in[3]);
  const Var v = spread_heads(in[2], scores.kv_heads()), any = scores.sees_any();
  // A query that sees nothing: scores of 0 instead of minus infinity, which softmax would make NaN of.
  Var s = scores.hidden();
  if (any.is_valid()) s = where(any, s, scalar_like(s, 0));
  Var weights = softmax(s), sums = reduce_log_sum_exp(as_statistic(s), {-1}, false);
  if (any.is_valid()) {
    weights = where(any, weights, scalar_like(weights, 0));
    sums = where(squeeze(any, {any.rank() - 1}), sums, scalar_like(sums, kInfinity));
  }
  Var y = scores.unshared(matmul(scores.shared(weights), v));
  if (in[0].rank() == 3) y = reshape(transpose(y, {0, 2, 1, 3}), {0, 0, scores.heads() * v.dim(3)});
  return {y, sums};
}

std::vector<Var> tiled_attention_grad_body(DecomposeContext& context) {
  const std::vector<Var>& in = context.inputs;
  const Var &q = in[0], &k = in[1], &v = in[2];
  const Scores scores(context.attributes, q, k, in[6]);
  const auto column = [&](const Var& row) { return cast(unsqueeze(row, {3}), q.dtype()); };
  const Var values = spread_heads(v, scores.kv_heads());
  const Var gy = scores.shared(spread_heads(in[3], scores.heads()));
  const Var s = scores.hidden();
  const Var weights = cast(exp(as_statistic(s) - unsqueeze(in[4], {3})), q.dtype());
  const Var of_weights = scores.unshared(matmul(gy, swap_last_two(values)));
  const Var of_scores = weights * (of_weights - column(in[5]));
  const Var of_products = scores.shared(scores.through_scale(of_scores));
  const Var gq = scores.unshared(matmul(of_products, scores.k()));
  std::vector<Var> gradients{like_heads_of(gq, q), like_heads_of(matmul(swap_last_two(of_products), scores.q()), k),
                             like_heads_of(matmul(swap_last_two(scores.shared(weights)), gy), v)};
  if (context.num_outputs > 3) gradients.push_back(gradient_of_mask(of_scores, in[6]));
  return gradients;
}

}  // namespace autograph
