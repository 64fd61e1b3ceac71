#include "eager/tape/tape_rule.h"

#include <fmt/core.h>

#include "autograph/autodiff.h"
#include "autograph/eager.h"
#include "autograph/ops/elementwise.h"
#include "base/check.h"
#include "eager/capture/replay.h"
#include "eager/modes.h"
#include "ops/gradients.h"
#include "ops/sequence/sequence_vjp.h"

namespace autograph {

TapeRule::TapeRule(TapePass& pass, const std::shared_ptr<TapeNode>& node, const std::vector<Var>& gradients)
    : RuleVisit(node->inputs.size()), pass_(pass), node_(node), outputs_(node->outputs.size()), gradients_(gradients) {}

Graph& TapeRule::graph() {
  throw UnsupportedError(
      fmt::format("[gradient] {}: its rule asks for a graph, and there is none in define by run "
                  "(constants: constant_like() an input)",
                  node_->describe()));
}

bool TapeRule::wants(size_t slot) const { return has_input(slot) && pass_.is_active(node_->inputs[slot]); }

Var TapeRule::out(size_t slot) {
  Var& output = outputs_[slot];
  if (!output.is_valid()) output = output_of(node_, static_cast<uint32_t>(slot));
  return output;
}

Var TapeRule::gy(size_t slot) { return has_gy(slot) ? gradients_[slot] : zeros_of(out(slot)); }

std::optional<std::vector<int64_t>> TapeRule::known_integers(size_t slot) const {
  if (!has_input(slot)) return std::nullopt;
  return static_cast<const Eager&>(node_->inputs[slot].eager()).tensor().to_i64();
}

std::vector<int64_t> TapeRule::integers(size_t slot) const {
  const auto known = known_integers(slot);
  AG_CHECK(known, "[{}] its rule asks for input {}, which is not given", op().name, slot);
  return *known;
}

void TapeRule::set(size_t slot, const Var& gradient) {
  if (!wants(slot)) return;
  const Var x = in(slot);
  const bool is_list = !x.type().is_tensor() && gradient.is_valid() && gradient.type().kind() == x.type().kind();
  AG_CHECK(is_list || (gradient.is_valid() && gradient.type().is_tensor() && gradient.dtype() == x.dtype()),
           "[{}] gradient of input {}: expected {}, got {}", op().name, slot, to_string(x.type()),
           gradient.is_valid() ? to_string(gradient.type()) : "nothing");
  note_set(slot, gradient);
  pass_.seed(x, is_list ? gradient : sum_to(gradient, x));
}

void TapeRule::note_set(size_t slot, const Var& gradient) {
  is_set_[slot] = 1;
  const Datum& made = static_cast<const Eager&>(gradient.eager()).datum();
  if (modes().checks_finite && !is_finite(made)) {
    check_finite(made, fmt::format("[gradient] of input '{}' of {}", input_name(slot), node_->describe()));
  }
}

Var TapeRule::so_far(size_t slot) {
  const Var* total = wants(slot) ? pass_.total_of(in(slot)) : nullptr;
  return total && total->is_valid() ? *total : filled_like(in(slot), 0);
}

void TapeRule::set_total(size_t slot, const Var& gradient) {
  if (!wants(slot)) return;
  note_set(slot, gradient);
  if (Var* total = pass_.total_of(in(slot))) *total = gradient;
}

std::vector<Var> TapeRule::with_outputs(int count) {
  Var any;
  for (const Var& input : node_->inputs) any = input.is_valid() ? input : any;
  outputs_ = any.eager().apply(op(), node_->inputs, attributes(), count);
  gradients_.resize(outputs_.size());
  return outputs_;
}

void TapeRule::unsupported(std::string_view detail) const {
  throw UnsupportedError(fmt::format("[gradient] {}: {} (forward: {})", op().name, detail, node_->describe()));
}

// Each input stands for itself: one value in two places has two gradients here, which set() adds up.
void TapeRule::differentiate_body() {
  const bool is_recorded = modes().records;
  const RecordScope records(true);
  std::vector<Var> inputs = node_->inputs, wanted;
  std::vector<size_t> slots;
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!wants(slot)) continue;
    inputs[slot] = identity(inputs[slot]);
    wanted.push_back(inputs[slot]);
    slots.push_back(slot);
  }
  const std::vector<Var> made = apply_body(op(), inputs, attributes(), static_cast<int>(outputs_.size()));
  std::vector<Var> outputs, gradients;
  for (size_t slot = 0; slot < made.size(); ++slot) {
    if (!has_gy(slot)) continue;
    outputs.push_back(made[slot]);
    gradients.push_back(gradients_[slot]);
  }
  const std::vector<Var> found = vjp(outputs, gradients, wanted);
  for (size_t i = 0; i < found.size(); ++i) set(slots[i], is_recorded ? found[i] : detach(found[i]));
}

}  // namespace autograph
