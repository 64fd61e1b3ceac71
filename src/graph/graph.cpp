#include "autograph/graph.h"

#include <algorithm>
#include <set>
#include <utility>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/printable.h"
#include "graph/infer_node.h"
#include "graph/schema.h"

namespace autograph {
namespace {

// Ids stay short in print, and are exact in numbers of every kind.
constexpr uint64_t kUniqueIdMask = (uint64_t{1} << 32) - 1;

}  // namespace

// ---- Provenance ------------------------------------------------------------------------------------------------

Provenance Provenance::named(std::string origin) { return named(std::move(origin), ""); }

Provenance Provenance::named(std::string origin, std::string place) {
  Provenance provenance;
  if (origin.empty()) return provenance;
  auto known = std::make_shared<Known>();
  known->origins.push_back(std::move(origin));
  if (!place.empty()) known->places.push_back(std::move(place));
  provenance.known_ = std::move(known);
  return provenance;
}

Provenance Provenance::merged(const Provenance& a, const Provenance& b) {
  if (a.empty()) return b;
  if (b.empty() || a.known_ == b.known_) return a;
  const auto append = [](std::vector<std::string>& all, const std::vector<std::string>& more) {
    for (const auto& one : more) {
      if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
  };
  auto known = std::make_shared<Known>(*a.known_);
  append(known->origins, b.known_->origins);
  append(known->places, b.known_->places);
  Provenance result;
  result.known_ = std::move(known);
  return result;
}

std::span<const std::string> Provenance::origins() const {
  return known_ ? std::span<const std::string>(known_->origins) : std::span<const std::string>();
}

std::span<const std::string> Provenance::places() const {
  return known_ ? std::span<const std::string>(known_->places) : std::span<const std::string>();
}

std::string Provenance::to_string() const {
  std::string text;
  for (const auto& origin : origins()) text += (text.empty() ? "" : " + ") + origin;
  return text;
}

// ---- Value -----------------------------------------------------------------------------------------------------

const Tensor& Value::no_elements() {
  static const Tensor kNone;
  return kNone;
}

// ---- Building --------------------------------------------------------------------------------------------------

ValueId Graph::new_value(Value::Kind kind, Type type, std::string name) {
  AG_CHECK_USER(values_.size() < std::numeric_limits<uint32_t>::max(), BudgetError, "[graph] values: more than {}",
                values_.size());
  Value& value = values_.emplace_back();
  value.kind_ = kind;
  value.type_ = std::move(type);
  value.name_ = std::move(name);
  return {static_cast<uint32_t>(values_.size() - 1)};
}

ValueId Graph::add_input(Type type, std::string name) {
  const ValueId id = new_value(Value::Kind::input, std::move(type), std::move(name));
  values_[id.index].slot_ = static_cast<uint32_t>(inputs_.size());
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_constant(Tensor tensor, std::string name) {
  AG_CHECK_USER(tensor.is_present(), ValueError, "[graph] constant '{}': expected elements, got a tensor without them",
                printable(name));
  const ValueId id = new_value(Value::Kind::constant, tensor.type(), std::move(name));
  values_[id.index].elements_ = std::move(tensor);
  return id;
}

// A number that no node of the graph has, the same whenever the same graph is built; graphs of different names, such as
// the bodies in a model, begin elsewhere.
void Graph::give_unique_ids(const OpDef& op, Attributes& attributes) const {
  for (const AttributeSpec& spec : op.attributes) {
    if (!spec.unique || attributes.contains(spec.name)) continue;
    std::set<int64_t> taken;
    for (const Node& node : nodes_) {
      const auto* id = node.op_ ? node.attributes_.find_as<int64_t>(spec.name) : nullptr;
      if (id) taken.insert(*id);
    }
    for (int64_t number = 0; !attributes.contains(spec.name); ++number) {
      const Hash128 hash = Hasher().add(name_).add(number).finish();
      const auto id = static_cast<int64_t>(hash.low & kUniqueIdMask);
      if (!taken.contains(id)) attributes.set(spec.name, id);
    }
  }
}

NodeId Graph::add_node(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes, NodeOptions options) {
  const std::string where = options.provenance.to_string();
  give_unique_ids(op, attributes);
  complete_attributes(op, attributes, where);
  const size_t num_outputs = resolve_num_outputs(op, options.num_outputs, where);
  check_inputs(op, *this, inputs, where);
  check_effect(op, where);
  std::vector<Type> types = infer_node(op, *this, inputs, attributes, num_outputs, where);
  const NodeId id =
      add_node_typed(op, std::move(inputs), std::move(attributes), std::move(types), std::move(options.provenance));
  if (has_effect(op, nodes_[id.index].attributes_)) keep(nodes_[id.index].outputs_.at(0));
  return id;
}

NodeId Graph::add_node_typed(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes,
                             std::vector<Type> output_types, Provenance provenance) {
  const NodeId id{static_cast<uint32_t>(nodes_.size())};
  Node& node = nodes_.emplace_back();
  node.op_ = &op;
  node.inputs_ = std::move(inputs);
  node.attributes_ = std::move(attributes);
  node.provenance_ = std::move(provenance);
  node.outputs_.reserve(output_types.size());
  for (size_t slot = 0; slot < output_types.size(); ++slot) {
    const ValueId output = new_value(Value::Kind::output, std::move(output_types[slot]), "");
    values_[output.index].producer_ = id;
    values_[output.index].slot_ = static_cast<uint32_t>(slot);
    node.outputs_.push_back(output);
  }
  for (size_t slot = 0; slot < node.inputs_.size(); ++slot) {
    if (node.inputs_[slot].is_valid()) add_use(node.inputs_[slot], {id, static_cast<uint32_t>(slot)});
  }
  ++num_nodes_;
  return id;
}

void Graph::add_output(ValueId value, std::string name) {
  AG_CHECK(is_live(value), "output '{}' is not a value of this graph", name);
  outputs_.push_back(value);
  output_names_.push_back(std::move(name));
}

// ---- Reading ---------------------------------------------------------------------------------------------------

std::vector<NodeId> Graph::nodes() const {
  std::vector<NodeId> ids;
  ids.reserve(num_nodes_);
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op_) ids.push_back({i});
  }
  return ids;
}

std::vector<ValueId> Graph::constants() const {
  std::vector<ValueId> ids;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_constant()) ids.push_back({i});
  }
  return ids;
}

size_t Graph::num_output_uses(ValueId value) const {
  const auto updates =
      std::count_if(updates_.begin(), updates_.end(), [&](const StateUpdate& update) { return update.value == value; });
  return static_cast<size_t>(std::count(outputs_.begin(), outputs_.end(), value) + updates +
                             std::count(kept_.begin(), kept_.end(), value));
}

// ---- Changing --------------------------------------------------------------------------------------------------

Node& Graph::change(NodeId id) {
  if (journal_.transaction) journal_.transaction->keep(id);
  return nodes_[id.index];
}

Value& Graph::change(ValueId id) {
  if (journal_.transaction) journal_.transaction->keep(id);
  return values_[id.index];
}

void Graph::add_use(ValueId value, Use use) {
  AG_CHECK(is_live(value), "value {} is not in this graph", value.index);
  change(value).uses_.push_back(use);
}

void Graph::remove_use(ValueId value, Use use) {
  auto& uses = change(value).uses_;
  const auto it = std::find(uses.begin(), uses.end(), use);
  AG_CHECK(it != uses.end(), "use of value {} is not recorded", value.index);
  *it = uses.back();
  uses.pop_back();
}

void Graph::set_input(NodeId node, size_t slot, ValueId value) {
  auto& inputs = change(node).inputs_;
  const Use use{node, static_cast<uint32_t>(slot)};
  if (slot >= inputs.size()) inputs.resize(slot + 1);
  if (inputs[slot].is_valid()) remove_use(inputs[slot], use);
  inputs[slot] = value;
  if (value.is_valid()) add_use(value, use);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  const std::vector<Use> uses = std::exchange(change(from).uses_, {});
  for (const Use& use : uses) {
    change(use.node).inputs_[use.slot] = to;
    add_use(to, use);
  }
  std::replace(outputs_.begin(), outputs_.end(), from, to);
  for (StateUpdate& update : updates_) {
    if (update.value == from) update.value = to;
  }
  if (std::find(kept_.begin(), kept_.end(), to) != kept_.end()) {
    std::erase(kept_, from);
  } else {
    std::replace(kept_.begin(), kept_.end(), from, to);
  }
}

void Graph::erase_node(NodeId id) {
  Node& node = change(id);
  for (const ValueId output : node.outputs_) {
    AG_CHECK(values_[output.index].uses_.empty() && num_output_uses(output) == 0, "{} still has readers",
             describe(*this, id));
    change(output) = Value();
  }
  for (size_t slot = 0; slot < node.inputs_.size(); ++slot) {
    if (node.inputs_[slot].is_valid()) remove_use(node.inputs_[slot], {id, static_cast<uint32_t>(slot)});
  }
  node = Node();
  --num_nodes_;
}

void Graph::erase_value(ValueId id) {
  Value& value = change(id);
  AG_CHECK(!value.producer_.is_valid(), "value {} belongs to a node", id.index);
  if (value.is_state()) {
    std::erase_if(updates_, [&](const StateUpdate& update) { return update.state == id; });
    std::erase(states_, id);
  }
  AG_CHECK(value.uses_.empty() && num_output_uses(id) == 0, "value {} still has readers", id.index);
  if (value.is_input()) {
    std::erase(inputs_, id);
    for (size_t slot = 0; slot < inputs_.size(); ++slot) {
      change(inputs_[slot]).slot_ = static_cast<uint32_t>(slot);
    }
  }
  value = Value();
}

size_t Graph::erase_dead() {
  std::vector<uint8_t> is_output(values_.size(), 0);
  for (const ValueId root : roots()) is_output[root.index] = 1;
  const auto is_dead = [&](NodeId id) {
    const Node& node = nodes_[id.index];
    return node.op_ && std::all_of(node.outputs_.begin(), node.outputs_.end(),
                                   [&](ValueId v) { return values_[v.index].uses_.empty() && !is_output[v.index]; });
  };
  std::vector<NodeId> work;
  for (const NodeId id : nodes()) {
    if (is_dead(id)) work.push_back(id);
  }
  size_t erased = 0;
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!is_dead(id)) continue;
    std::vector<NodeId> producers;
    for (const ValueId input : nodes_[id.index].inputs_) {
      if (input.is_valid() && values_[input.index].producer_.is_valid()) {
        producers.push_back(values_[input.index].producer_);
      }
    }
    erase_node(id);
    ++erased;
    for (const NodeId producer : producers) {
      if (is_dead(producer)) work.push_back(producer);
    }
  }
  for (uint32_t i = 0; i < values_.size(); ++i) {
    if (values_[i].is_constant() && values_[i].uses_.empty() && !is_output[i]) change(ValueId{i}) = Value();
  }
  return erased;
}

void Graph::set_constant(ValueId id, Tensor tensor) {
  Value& value = change(id);
  AG_CHECK(value.is_constant(), "value {} is not a constant", id.index);
  value.type_ = tensor.type();
  value.elements_ = std::move(tensor);
}

std::string describe(const Graph& graph, NodeId id) {
  if (!graph.is_live(id)) return fmt::format("erased node #{}", id.index);
  const Node& node = graph.node(id);
  const std::string origin = node.provenance().to_string();
  std::string text = fmt::format("node #{} {}", id.index, node.op().name);
  if (!origin.empty()) text += fmt::format(" \"{}\"", printable(origin));
  std::string_view before = " at ";
  for (const std::string& place : node.provenance().places()) {
    text += fmt::format("{}{}", std::exchange(before, ", "), printable(place));
  }
  return text;
}

}  // namespace autograph
