#include "ops/recurrent/recurrent_gradient.h"

#include <array>

#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

// Exporters may name what they need not.
bool has_default_activations(const Attributes& attributes, const RecurrentKind& kind) {
  const auto names = attributes.get_or<std::vector<std::string>>("activations", {});
  for (size_t k = 0; k < names.size(); ++k) {
    if (names[k] != kind.default_activations[k % kind.default_activations.size()]) return false;
  }
  return true;
}

// Of a layer as most are; all others are differentiated as what they stand for.
bool is_usual(VjpContext& c, const RecurrentKind& kind) {
  const Attributes& attributes = c.attributes();
  const bool has_length = c.has_input(RecurrentInput::x) && c.in(RecurrentInput::x).shape().has_rank() &&
                          c.in(RecurrentInput::x).shape()[0].is_known();
  return has_length && has_default_activations(attributes, kind) && !attributes.flag("layout") &&
         attributes.get_or<float>("clip", 0) == 0 && !c.has_input(RecurrentInput::lengths) &&
         !c.has_input(RecurrentInput::peepholes) && c.in(RecurrentInput::r).type().is_static();
}

// Adds up what the directions give to the inputs they share, and joins what each has for itself.
class LayerGradient {
 public:
  LayerGradient(VjpContext& c, const std::vector<Var>& outputs) : c_(c), outputs_(outputs) {}

  void add(int64_t number, bool reverse, const DirectionRule& rule) {
    DirectionFlow flow;
    flow.number = number;
    flow.reverse = reverse;
    flow.r = of_direction(c_.in(RecurrentInput::r), number, 0);
    flow.y = of_direction(outputs_[0], number, 1);
    const Var first = first_state(c_.has_input(RecurrentInput::first_h) ? c_.in(RecurrentInput::first_h) : Var(),
                                  outputs_[1], number);
    flow.before = states_before(flow.y, first, reverse);
    flow.into_states = into_states(flow);
    collect(flow, rule(flow));
  }

  void set() {
    if (c_.wants(RecurrentInput::x)) c_.set(RecurrentInput::x, of_x_);
    for (size_t slot = RecurrentInput::w; slot <= RecurrentInput::first_c; ++slot) {
      const std::vector<Var>& parts = parts_[slot];
      if (c_.has_input(slot) && c_.wants(slot)) c_.set(slot, parts.size() == 1 ? parts[0] : concat(parts, 0));
    }
  }

 private:
  // What flows into each h: the last one is an output of its own as well.
  Var into_states(const DirectionFlow& direction) const {
    const Var flow = of_direction(c_.gy(0), direction.number, 1);
    if (!c_.has_gy(1)) return flow;
    const Var last = unsqueeze(of_direction(c_.gy(1), direction.number, 0), {0});
    const int64_t length = direction.y.dim(0);
    if (length == 1) return flow + last;
    const Var rest = filled_like(slice(direction.y, {1}, {length}, {0}), 0);
    return flow + (direction.reverse ? concat({last, rest}, 0) : concat({rest, last}, 0));
  }

  void collect(const DirectionFlow& direction, const GatesFlow& flow) {
    const Var into_hidden = flow.into_hidden.is_valid() ? flow.into_hidden : flow.into_input;
    const auto bias = [](const Var& gates) { return reduce_sum(gates, {0, 1}, false); };
    const Var through = matmul(flow.into_input, of_direction(c_.in(RecurrentInput::w), direction.number, 0));
    of_x_ = of_x_.is_valid() ? of_x_ + through : through;
    keep(RecurrentInput::w, product_of_rows(flow.into_input, c_.in(RecurrentInput::x)));
    keep(RecurrentInput::r, flow.of_r.is_valid() ? flow.of_r : product_of_rows(into_hidden, direction.before));
    const Var of_input = bias(flow.into_input);
    keep(RecurrentInput::b, concat({of_input, flow.into_hidden.is_valid() ? bias(into_hidden) : of_input}, 0));
    for (size_t k = 0; k < flow.into_first.size(); ++k) keep(RecurrentInput::first_h + k, flow.into_first[k]);
  }

  void keep(size_t slot, const Var& part) { parts_[slot].push_back(unsqueeze(part, {0})); }

  VjpContext& c_;
  const std::vector<Var>& outputs_;
  Var of_x_;
  std::array<std::vector<Var>, RecurrentInput::peepholes> parts_;
};

}  // namespace

Var of_direction(const Var& x, int64_t number, int64_t axis) {
  return squeeze(slice(x, {number}, {number + 1}, {axis}), {axis});
}

Var states_before(const Var& y, const Var& first, bool reverse) {
  const Var own = unsqueeze(first, {0});
  const int64_t length = y.dim(0);
  if (length == 1) return own;
  return reverse ? concat({slice(y, {1}, {length}, {0}), own}, 0) : concat({own, slice(y, {0}, {length - 1}, {0})}, 0);
}

Var to_states_behind(const Var& flow, bool reverse) {
  const int64_t length = flow.dim(0);
  if (length == 1) return flow * 0;
  const Var none = filled_like(slice(flow, {0}, {1}, {0}), 0);
  return reverse ? concat({none, slice(flow, {0}, {length - 1}, {0})}, 0)
                 : concat({slice(flow, {1}, {length}, {0}), none}, 0);
}

Var first_state(const Var& given, const Var& last, int64_t number) {
  return given.is_valid() ? of_direction(given, number, 0) : filled_like(of_direction(last, number, 0), 0);
}

Var product_of_rows(const Var& a, const Var& b) {
  const auto rows = [](const Var& x) { return reshape(x, {-1, x.dim(2)}); };
  return matmul(transpose(rows(a), {1, 0}), rows(b));
}

std::vector<Var> first_outputs(VjpContext& c, size_t count) {
  if (c.num_outputs() < count) return c.with_outputs(static_cast<int>(count));
  std::vector<Var> outputs;
  for (size_t k = 0; k < count; ++k) outputs.push_back(c.out(k));
  return outputs;
}

void require_usual_layer(VjpContext& c, const RecurrentKind& kind) {
  if (!is_usual(c, kind)) c.unsupported("its rule needs the usual functions, no peepholes, lengths or clipping");
}

void recurrent_vjp(VjpContext& c, const std::vector<Var>& outputs, const DirectionRule& rule) {
  const std::string direction = c.attributes().text("direction");
  LayerGradient gradient(c, outputs);
  gradient.add(0, direction == "reverse", rule);
  if (direction == "bidirectional") gradient.add(1, true, rule);
  gradient.set();
}

}  // namespace autograph
