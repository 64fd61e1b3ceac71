// States of a graph: what a run leaves for the next.
#include <algorithm>
#include <utility>

#include "autograph/graph.h"
#include "base/check.h"
#include "base/printable.h"
#include "graph/may_update.h"

namespace autograph {

bool may_update(const Type& state, const Type& value) {
  if (!value.is_tensor() || value.dtype() != state.dtype()) return false;
  const Shape& have = state.shape();
  const Shape& given = value.shape();
  if (!given.has_rank()) return true;
  if (given.rank() != have.rank()) return false;
  for (int64_t axis = 0; axis < given.rank(); ++axis) {
    if (given[axis].is_known() && given[axis].value() != have[axis].value()) return false;
  }
  return true;
}

ValueId Graph::add_state(Tensor initial, std::string name) {
  AG_CHECK_USER(initial.is_present(), ValueError,
                "[graph] state '{}': expected what it is before the first run, got a tensor without elements",
                printable(name));
  AG_CHECK_USER(!name.empty(), ValueError, "[graph] state: expected a name, got none");
  for (const ValueId other : states_) {
    AG_CHECK_USER(values_[other.index].name_ != name, ValueError, "[graph] state '{}': the graph has one of that name",
                  printable(name));
  }
  const ValueId id = new_value(Value::Kind::state, initial.type(), std::move(name));
  values_[id.index].elements_ = std::move(initial);
  states_.push_back(id);
  return id;
}

void Graph::set_update(ValueId state, ValueId value) {
  AG_CHECK(is_live(value) && is_live(state), "update: not a value of this graph");
  AG_CHECK_USER(values_[state.index].is_state(), ValueError, "[graph] update: value '{}' is not a state",
                printable(values_[state.index].name_));
  const Type& type = values_[state.index].type_;
  const Type& given = values_[value.index].type_;
  AG_CHECK_USER(given.is_tensor() && given.dtype() == type.dtype(), TypeError,
                "[graph] update of state '{}': expected {}, got {}", printable(values_[state.index].name_),
                to_string(type), to_string(given));
  AG_CHECK_USER(may_update(type, given), ShapeError, "[graph] update of state '{}': expected {}, got {}",
                printable(values_[state.index].name_), to_string(type), to_string(given));
  for (StateUpdate& update : updates_) {
    if (update.state == state) {
      update.value = value;
      return;
    }
  }
  updates_.push_back({state, value});
}

void Graph::keep(ValueId value) {
  AG_CHECK(is_live(value), "value {} is not in this graph", value.index);
  if (std::find(kept_.begin(), kept_.end(), value) == kept_.end()) kept_.push_back(value);
}

std::vector<ValueId> Graph::roots() const {
  std::vector<ValueId> roots = outputs_;
  for (const StateUpdate& update : updates_) roots.push_back(update.value);
  roots.insert(roots.end(), kept_.begin(), kept_.end());
  return roots;
}

void Graph::set_initial(ValueId state, Tensor tensor) {
  AG_CHECK(is_live(state), "value {} is not in this graph", state.index);
  AG_CHECK_USER(values_[state.index].is_state(), ValueError,
                "[graph] initial elements: value '{}' is not a state (constants: set_constant())",
                printable(values_[state.index].name_));
  const Type& type = values_[state.index].type_;
  AG_CHECK_USER(tensor.is_present() && tensor.dtype() == type.dtype(), TypeError,
                "[graph] state '{}': expected {}, got {}", printable(values_[state.index].name_), to_string(type),
                to_string(tensor.type()));
  AG_CHECK_USER(tensor.type() == type, ShapeError, "[graph] state '{}': expected {}, got {}",
                printable(values_[state.index].name_), to_string(type), to_string(tensor.type()));
  change(state).elements_ = std::move(tensor);
}

void Graph::freeze() {
  updates_.clear();
  for (const ValueId id : std::exchange(states_, {})) change(id).kind_ = Value::Kind::constant;
}

HiddenStates Graph::states_to_inputs() {
  HiddenStates hidden;
  for (const StateUpdate& update : updates_) {
    const auto at = std::find(states_.begin(), states_.end(), update.state);
    hidden.updated.push_back(static_cast<size_t>(at - states_.begin()));
    add_output(update.value, values_[update.state.index].name_);
  }
  updates_.clear();
  for (const ValueId id : std::exchange(states_, {})) {
    Value& value = change(id);
    hidden.initial.push_back(std::exchange(value.elements_, {}));
    value.kind_ = Value::Kind::input;
    value.slot_ = static_cast<uint32_t>(inputs_.size());
    inputs_.push_back(id);
  }
  return hidden;
}

void Graph::inputs_to_states(const HiddenStates& hidden) {
  AG_CHECK(hidden.initial.size() <= inputs_.size() && hidden.updated.size() <= outputs_.size(),
           "{} inputs and {} outputs, {} states with {} updates", inputs_.size(), outputs_.size(),
           hidden.initial.size(), hidden.updated.size());
  const size_t num_inputs = inputs_.size() - hidden.initial.size();
  const size_t num_outputs = outputs_.size() - hidden.updated.size();
  states_.assign(inputs_.begin() + static_cast<std::ptrdiff_t>(num_inputs), inputs_.end());
  inputs_.resize(num_inputs);
  for (size_t i = 0; i < states_.size(); ++i) {
    Value& value = change(states_[i]);
    value.kind_ = Value::Kind::state;
    value.elements_ = hidden.initial[i];
  }
  for (size_t k = 0; k < hidden.updated.size(); ++k) {
    updates_.push_back({states_[hidden.updated[k]], outputs_[num_outputs + k]});
  }
  outputs_.resize(num_outputs);
  output_names_.resize(num_outputs);
}

}  // namespace autograph
