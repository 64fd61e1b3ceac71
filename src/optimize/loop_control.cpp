#include "optimize/loop_control.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "autograph/op_def.h"
#include "base/check.h"
#include "graph/run_reference.h"

namespace autograph {
namespace {

// Counters and conditions are small; whatever is larger is work for a kernel.
constexpr int64_t kMaxElements = 16;
// Of calls of a reference on so small values: well under a second.
constexpr int64_t kMaxCalls = 200'000;

}  // namespace

LoopControl::LoopControl(const Graph& graph, const KnownValues& known, const LoopParts& parts)
    : graph_(graph), known_(known), parts_(parts), assumed_(parts.states.size(), 0), last_(parts.states.size()) {}

const Tensor* LoopControl::known_outer(ValueId outer) const {
  if (!outer.is_valid()) return nullptr;
  if (graph_.value(outer).is_constant()) return &graph_.value(outer).constant();
  const auto found = known_.find(outer.index);
  return found == known_.end() ? nullptr : &found->second;
}

bool LoopControl::is_small(ValueId inner) const {
  const Type& type = parts_.body.type(inner);
  return type.is_tensor() && type.dtype() != DType::string && type.is_static() &&
         type.shape().num_elements().value_or(kMaxElements + 1) <= kMaxElements;
}

bool LoopControl::is_followed(ValueId inner) const {
  return !inner.is_valid() || follows_[inner.index] != 0 || parts_.body.value(inner).is_constant();
}

// Finds all nodes that follow from the states assumed to.
void LoopControl::assume() {
  follows_.assign(parts_.body.value_capacity(), 0);
  nodes_.clear();
  follows_[parts_.turn.index] = 1;
  follows_[parts_.condition.index] = 1;
  for (size_t k = 0; k < assumed_.size(); ++k) follows_[parts_.states[k].inner.index] = assumed_[k];
  for (const auto& capture : parts_.captures) {
    if (const Tensor* tensor = known_outer(capture.outer)) {
      follows_[capture.inner.index] = 1;
      values_[capture.inner.index] = *tensor;
    }
  }
  for (const NodeId id : parts_.body.topological_order()) {
    const Node& node = parts_.body.node(id);
    const OpDef& op = node.op();
    if (!op.traits.pure || op.traits.random || op.evaluate || (!op.reference && !op.scalar)) continue;
    const auto followed = [&](ValueId v) { return is_followed(v); };
    const auto small = [&](ValueId v) { return is_small(v); };
    if (!std::all_of(node.inputs().begin(), node.inputs().end(), followed)) continue;
    if (!std::all_of(node.outputs().begin(), node.outputs().end(), small)) continue;
    for (const ValueId v : node.outputs()) follows_[v.index] = 1;
    nodes_.push_back(id);
  }
}

// A state that was assumed to follow must be made by what follows, and keep its type.
bool LoopControl::drop_wrong_states() {
  bool changed = false;
  for (size_t k = 0; k < assumed_.size(); ++k) {
    const auto& state = parts_.states[k];
    const bool holds = is_followed(state.next) && parts_.body.type(state.next) == parts_.body.type(state.inner);
    if (!assumed_[k] || holds) continue;
    assumed_[k] = 0;
    changed = true;
  }
  return changed;
}

bool LoopControl::run() {
  const Tensor* limit = known_outer(parts_.limit);
  const Tensor* condition = known_outer(parts_.first_condition);
  if ((parts_.limit.is_valid() && !limit) || (parts_.first_condition.is_valid() && !condition)) return false;
  if ((limit && limit->num_elements() != 1) || (condition && condition->num_elements() != 1)) return false;
  for (size_t k = 0; k < assumed_.size(); ++k) {
    const Tensor* initial = known_outer(parts_.states[k].outer);
    assumed_[k] =
        initial && is_small(parts_.states[k].inner) && initial->type() == parts_.body.type(parts_.states[k].inner);
    if (assumed_[k]) values_[parts_.states[k].inner.index] = *initial;
  }
  do assume();
  while (drop_wrong_states());
  if (!is_followed(parts_.next_condition)) return false;

  values_[parts_.condition.index] = condition ? *condition : Tensor::scalar(true);
  if (values_[parts_.condition.index].dims() != parts_.body.type(parts_.condition).shape().static_dims()) return false;
  const int64_t max_turns = limit ? limit->to_i64()[0] : std::numeric_limits<int64_t>::max();
  const auto calls = static_cast<int64_t>(nodes_.size()) + 1;
  try {
    while (num_turns_ < max_turns && *values_[parts_.condition.index].data<bool>()) {
      if ((num_turns_ + 1) * calls > kMaxCalls || !run_turn(num_turns_)) return false;
      ++num_turns_;
    }
  } catch (const UserError&) {
    return false;  // belongs to the run
  }
  for (size_t k = 0; k < assumed_.size(); ++k) {
    if (assumed_[k]) last_[k] = values_[parts_.states[k].inner.index];
  }
  return true;
}

bool LoopControl::run_turn(int64_t turn) {
  const Graph& body = parts_.body;
  const auto value_of = [&](ValueId v) {
    return body.value(v).is_constant() ? body.value(v).constant() : values_.at(v.index);
  };
  values_[parts_.turn.index] = Tensor::scalar(turn);
  const auto keep = [&](ValueId v) { tables_[v.index].push_back(values_.at(v.index)); };
  keep(parts_.turn);
  keep(parts_.condition);
  for (size_t k = 0; k < assumed_.size(); ++k) {
    if (assumed_[k]) keep(parts_.states[k].inner);
  }
  for (const NodeId id : nodes_) {
    const Node& node = body.node(id);
    std::vector<Tensor> inputs;
    for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? value_of(v) : Tensor());
    std::vector<Type> types;
    for (const ValueId v : node.outputs()) types.push_back(body.type(v));
    std::vector<Tensor> results = run_reference(node.op(), node.attributes(), inputs, types);
    for (size_t k = 0; k < results.size(); ++k) {
      values_[node.output(k).index] = std::move(results[k]);
      keep(node.output(k));
    }
  }
  std::vector<Tensor> next;
  for (const auto& state : parts_.states) {
    const bool is_assumed = assumed_[next.size()] != 0;
    next.push_back(is_assumed ? value_of(state.next) : Tensor());
  }
  const Tensor condition = value_of(parts_.next_condition);
  if (condition.dims() != values_[parts_.condition.index].dims()) return false;
  values_[parts_.condition.index] = condition;
  for (size_t k = 0; k < next.size(); ++k) {
    if (assumed_[k]) values_[parts_.states[k].inner.index] = next[k];
  }
  return true;
}

bool LoopControl::has(ValueId inner) const { return inner.is_valid() && tables_.contains(inner.index); }

Tensor LoopControl::table(ValueId inner) const {
  const std::vector<Tensor>& rows = tables_.at(inner.index);
  Dims dims = rows.front().dims();
  dims.insert(dims.begin(), static_cast<int64_t>(rows.size()));
  Tensor table = Tensor::empty(rows.front().dtype(), dims);
  char* to = static_cast<char*>(table.mutable_raw());
  for (const Tensor& row : rows) {
    std::memcpy(to, row.raw(), row.size_bytes());
    to += row.size_bytes();
  }
  return table;
}

Tensor LoopControl::last(const LoopParts::State& state) const {
  return last_[static_cast<size_t>(&state - parts_.states.data())];
}

}  // namespace autograph
