#include "ops/attention/tiled_call.h"

#include <algorithm>
#include <limits>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "ops/attention/attention_body.h"

namespace autograph {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();

class TiledCall {
 public:
  explicit TiledCall(VjpContext& c)
      : c_(c), operands_{c.in(0), c.in(1), c.in(2), {}, tiled_attributes(c.attributes())} {
    if (c.has_input(3)) operands_.mask = c.in(3);
  }

  std::optional<TiledOperands> run() {
    if (c_.has_input(4) && !join_cache()) return std::nullopt;
    if (c_.has_input(6) && !hide_padding()) return std::nullopt;
    return has_known_mask() ? std::optional(operands_) : std::nullopt;
  }

 private:
  int64_t window(const char* side) const { return operands_.attributes.integer(side); }
  bool is_causal() const { return operands_.attributes.flag("is_causal"); }
  const Dim& length_of(const Var& x) const { return x.shape()[x.rank() - 2]; }

  // Queries stand behind the cache, so that the causal frontier and windows move by its length.
  bool join_cache() {
    const Shape past = c_.in(4).shape(), past_values = c_.in(5).shape();
    if (!past.has_rank() || !past_values.has_rank() || !past[1].is_known() || !past[2].is_known()) return false;
    const int64_t before = past[2].value(), left = window("left_window_size"), right = window("right_window_size");
    if (left >= 0 && left < before) return false;  // a frontier before the query, which no attribute says
    if (left >= 0) operands_.attributes.set("left_window_size", left - before);
    if (is_causal() || right >= 0) {
      operands_.attributes.set("right_window_size", (is_causal() ? 0 : right) + before);
      operands_.attributes.set("is_causal", int64_t{0});
    }
    operands_.k = concat({c_.in(4), spread_heads(operands_.k, past[1].value())}, 2);
    operands_.v = concat({c_.in(5), spread_heads(operands_.v, past[1].value())}, 2);
    return true;
  }

  // One number of keys for each sample: a mask [batch, 1, 1, keys], and all of what hides by position in it where
  // there is such, because queries stand at the end of the keys that are no padding.
  bool hide_padding() {
    const Dim &queries = length_of(operands_.q), &keys = length_of(operands_.k);
    if (!keys.is_known() || (hides_by_position(operands_.attributes) && !queries.is_known())) return false;
    const Var counts = reshape(cast(c_.in(6), DType::i64), {-1, 1, 1, 1});
    const Var position = reshape(positions(keys.value()), {1, 1, 1, -1});
    Var visible = less(position, counts);
    if (hides_by_position(operands_.attributes)) {
      const Var query = reshape(positions(queries.value()), {1, 1, -1, 1}) + (counts - number(queries.value()));
      visible = logical_and(visible, seen_from(query - position, operands_.attributes));
      hide_nothing_by_position();
    }
    return add_to_mask(visible);
  }

  Var number(int64_t value) { return constant_like(operands_.q, Tensor::scalar(value)); }
  Var positions(int64_t count) { return range(number(0), number(count), number(1)); }

  void hide_nothing_by_position() {
    operands_.attributes.set("is_causal", int64_t{0});
    operands_.attributes.set("left_window_size", int64_t{-1});
    operands_.attributes.set("right_window_size", int64_t{-1});
  }

  bool add_to_mask(const Var& visible) {
    Var& mask = operands_.mask;
    if (!mask.is_valid()) {
      mask = visible;
      return true;
    }
    if (!mask.shape().has_rank() || !mask.shape()[mask.rank() - 1].is_known()) return false;
    mask = additive_mask(mask, operands_.q, length_of(operands_.k));
    mask = where(visible, mask, scalar_like(mask, kHidden));
    return true;
  }

  // The body of tiled_attention must know how many keys a mask covers.
  bool has_known_mask() const {
    if (!operands_.mask.is_valid()) return true;
    const Shape& mask = operands_.mask.shape();
    if (!mask.has_rank()) return false;
    // Its gradient is summed over the batch, or is not.
    if (c_.wants(3) && mask.rank() == 4 && !mask[0].is_known()) return false;
    const Dim &covered = mask[mask.rank() - 1], &keys = length_of(operands_.k);
    return (covered.is_known() && keys.is_known()) || (!covered.is_unknown() && covered.same_as(keys));
  }

  VjpContext& c_;
  TiledOperands operands_;
};

}  // namespace

std::optional<TiledOperands> find_tiled_call(VjpContext& c) {
  if (!c.has_gy(0) || (c.num_outputs() > 3 && c.has_gy(3))) return std::nullopt;
  if (c.in(1).dtype() != c.in(2).dtype()) return std::nullopt;
  for (size_t slot = 0; slot < 3; ++slot) {
    if (!c.in(slot).shape().has_rank()) return std::nullopt;
  }
  return TiledCall(c).run();
}

}  // namespace autograph
