#include "ops/attention/attention_vjp.h"

#include <cmath>
#include <limits>

#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/attention/attention_body.h"
#include "ops/attention/tiled_call.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

constexpr int64_t kShowWeights = 3;

// From the weights of all queries and keys, which attention shows.
class AttentionGradient {
 public:
  explicit AttentionGradient(VjpContext& c) : c_(c) {
    if (!c.in(0).shape().has_rank() || !c.in(1).shape().has_rank()) c.unsupported("its rule needs known ranks");
    if (c.in(1).dtype() != c.in(2).dtype()) c.unsupported("its rule needs q, k and v of one dtype");
    Attributes attributes = c.attributes();
    attributes.set("qk_matmul_output_mode", kShowWeights);
    std::vector<Var> inputs;
    for (size_t slot = 0; slot < c.num_inputs(); ++slot) inputs.push_back(c.in(slot));
    const std::vector<Var> outputs = apply_all(c.op(), inputs, attributes, 4);
    k_ = outputs[1];
    v_ = outputs[2];
    all_weights_ = outputs[3];
    if (!all_weights_.shape()[1].is_known() || !k_.shape()[1].is_known()) {
      c.unsupported("its rule needs known numbers of heads");
    }
    q_ = grouped(spread_heads(c.in(0), all_weights_.dim(1)));
    weights_ = grouped(all_weights_);
    scale_ = c.attributes().get_or<float>("scale", 1 / std::sqrt(static_cast<float>(k_.dim(3))));
  }

  void set_all() {
    const Var g = c_.has_gy(0) ? grouped(spread_heads(c_.gy(0), all_weights_.dim(1))) : Var();
    Var of_weights = g.is_valid() ? matmul(g, swap_last_two(v_)) : filled_like(weights_, 0);
    add_shown(of_weights, kShowWeights);
    Var scores = weights_ * (of_weights - reduce_sum(of_weights * weights_, {-1}));
    add_shown(scores, 2);
    set_mask(scores);
    add_shown(scores, 1);
    const double softcap = c_.attributes().real("softcap");
    if (softcap > 0) {
      const Var bent = tanh(matmul(q_, swap_last_two(k_)) * (scale_ / softcap));
      scores = scores * (1 - bent * bent);
    }
    add_shown(scores, 0);
    scores = scores * scale_;
    if (c_.wants(0)) c_.set(0, like_heads_of(reshape_like_queries(matmul(scores, k_)), c_.in(0)));
    set_joined(1, 4, c_.wants(1) || c_.wants(4) ? matmul(swap_last_two(scores), q_) : Var());
    const bool wants_values = g.is_valid() && (c_.wants(2) || c_.wants(5));
    set_joined(2, 5, wants_values ? matmul(swap_last_two(weights_), g) : filled_like(v_, 0));
  }

 private:
  // Queries of all heads that share a key head, one behind the other.
  Var grouped(const Var& x) {
    const int64_t heads = k_.dim(1);
    if (x.dim(1) == heads) return x;
    if (!x.shape()[3].is_known()) c_.unsupported("its rule needs known lengths where heads are shared");
    return reshape(x, {0, heads, -1, x.dim(3)});
  }

  Var reshape_like_queries(const Var& x) {
    const int64_t heads = all_weights_.dim(1);
    if (heads == k_.dim(1)) return x;
    if (!all_weights_.shape()[2].is_known()) c_.unsupported("its rule needs known lengths where heads are shared");
    return reshape(x, {0, heads, all_weights_.dim(2), x.dim(3)});
  }

  // What flows into the output that shows a stage of the scores.
  void add_shown(Var& gradient, int64_t stage) {
    if (!c_.has_gy(3) || c_.attributes().integer("qk_matmul_output_mode") != stage) return;
    gradient = gradient + grouped(c_.gy(3));
  }

  void set_mask(const Var& scores) {
    if (!c_.wants(3)) return;
    Var gradient = reshape_like_queries(scores);
    const Var mask = c_.in(3);
    const Dim keys = mask.shape()[mask.rank() - 1];
    if (!keys.is_known()) c_.unsupported("its rule needs a mask of known extents");
    gradient = slice(gradient, {0}, {keys.value()}, {3});
    c_.set(3, cast(gradient, mask.dtype()));
  }

  // Of keys or values: the first of them may have come from the cache. They may be outputs as well.
  void set_joined(size_t slot, size_t past_slot, Var gradient) {
    if (!c_.wants(slot) && !c_.wants(past_slot)) return;
    if (c_.has_gy(slot)) gradient = gradient + c_.gy(slot);
    if (!c_.has_input(past_slot)) return c_.set(slot, like_heads_of(gradient, c_.in(slot)));
    const Dim past = c_.in(past_slot).shape()[2];
    if (!past.is_known()) c_.unsupported("its rule needs a cache of known length");
    if (c_.wants(past_slot)) c_.set(past_slot, slice(gradient, {0}, {past.value()}, {2}));
    if (!c_.wants(slot)) return;
    c_.set(slot,
           like_heads_of(slice(gradient, {past.value()}, {std::numeric_limits<int64_t>::max()}, {2}), c_.in(slot)));
  }

  VjpContext& c_;
  Var q_, k_, v_;    // k and v with what was cached
  Var all_weights_;  // [batch, q heads, queries, keys]
  Var weights_;      // [batch, kv heads, queries of the heads that share, keys]
  double scale_ = 1;
};

// Through tiled_attention: its outputs take the place of the node's.
class TiledGradient {
 public:
  TiledGradient(VjpContext& c, const TiledOperands& operands) : c_(c), operands_(operands) {}

  void set_all() {
    const std::vector<Var> outputs =
        tiled_attention(operands_.q, operands_.k, operands_.v, operands_.mask, operands_.attributes);
    const std::vector<Var> gradients = tiled_gradients(operands_, outputs, c_.gy(0), {}, c_.wants(3));
    c_.set(0, gradients[0]);
    if (c_.wants(3)) set_mask(gradients[3]);
    set_joined(1, 4, gradients[1], operands_.k);
    set_joined(2, 5, gradients[2], operands_.v);
    replace(0, outputs[0]);
    if (is_there(1)) replace(1, apart(operands_.k));
    if (is_there(2)) replace(2, apart(operands_.v));
  }

 private:
  bool is_there(size_t output) { return output < c_.num_outputs() && c_.out(output).is_valid(); }
  Var apart(const Var& x) const {
    return x.rank() == 4 ? x : spread_heads(x, operands_.attributes.integer("kv_num_heads"));
  }
  void replace(size_t output, const Var& by) {
    if (!c_.out(0).is_eager()) c_.graph().replace_uses(c_.out(output).id(), by.id());
  }

  // Where keys are padded, those behind its end have been joined to the mask.
  void set_mask(Var gradient) {
    const Var mask = c_.in(3);
    const Dim covered = mask.shape()[mask.rank() - 1];
    if (!covered.same_as(gradient.shape()[3])) gradient = slice(gradient, {0}, {covered.value()}, {3});
    c_.set(3, cast(gradient, mask.dtype()));
  }

  // Of keys or values: the first of them may have come from the cache. They may be outputs as well.
  void set_joined(size_t slot, size_t past_slot, Var gradient, const Var& joined) {
    const bool is_joined = c_.has_input(past_slot);
    if (is_there(slot) && c_.has_gy(slot)) gradient = gradient + like_heads_of(c_.gy(slot), joined);
    if (!is_joined) return c_.set(slot, gradient);
    const int64_t past = c_.in(past_slot).dim(2);
    if (c_.wants(past_slot)) c_.set(past_slot, slice(gradient, {0}, {past}, {2}));
    if (!c_.wants(slot)) return;
    c_.set(slot, like_heads_of(slice(gradient, {past}, {std::numeric_limits<int64_t>::max()}, {2}), c_.in(slot)));
  }

  VjpContext& c_;
  const TiledOperands& operands_;
};

}  // namespace

void attention_vjp(VjpContext& c) {
  if (const std::optional<TiledOperands> operands = find_tiled_call(c)) return TiledGradient(c, *operands).set_all();
  AttentionGradient(c).set_all();
}

}  // namespace autograph
