#include "graph/infer_node.h"

#include <algorithm>

#include "base/check.h"
#include "graph/schema.h"
#include "tensor/front_axis.h"

namespace autograph {

// ---- InferContext ----------------------------------------------------------------------------------------------

const Type& InferContext::input(size_t slot) const {
  static const Type kNone;
  return slot < input_types_.size() ? input_types_[slot] : kNone;
}

std::optional<std::vector<int64_t>> InferContext::known_integers(size_t slot) const {
  const Tensor* tensor = known_value(slot);
  if (!tensor) return std::nullopt;
  return tensor->to_i64();
}

namespace {

std::vector<Type> types_of_outputs(const Graph& graph) {
  std::vector<Type> types;
  for (const ValueId output : graph.outputs()) types.push_back(graph.type(output));
  return types;
}

// Was a nested graph inferred for these inputs, with nothing left open?
bool is_inferred_for(const Graph& body, const std::vector<Type>& inputs) {
  const auto is_static = [&](ValueId v) { return body.type(v).is_tensor() && body.type(v).is_static(); };
  const auto is_alike = [&](ValueId v, const Type& type) { return is_static(v) && body.type(v) == type; };
  return std::equal(body.inputs().begin(), body.inputs().end(), inputs.begin(), inputs.end(), is_alike) &&
         std::all_of(body.outputs().begin(), body.outputs().end(), is_static);
}

}  // namespace

std::vector<Type> InferContext::infer_nested(std::string_view attribute, const std::vector<Type>& input_types) const {
  const Graph& given = *attributes_->get<GraphRef>(attribute);
  if (given.inputs().size() != input_types.size()) {
    fail<ValueError>(attribute, fmt::format("expected {} inputs of the nested graph, got {}", input_types.size(),
                                            given.inputs().size()));
  }
  if (is_inferred_for(given, input_types)) return types_of_outputs(given);
  Graph body = given;
  for (size_t i = 0; i < input_types.size(); ++i) {
    if (input_types[i].kind() != Type::Kind::none) body.set_type(body.inputs()[i], input_types[i]);
  }
  autograph::infer_types(body);
  return types_of_outputs(body);
}

void InferContext::set_output(size_t slot, Type type) {
  if (slot < output_types_.size()) output_types_[slot] = std::move(type);
}

std::string InferContext::message(std::string_view what, std::string_view detail) const {
  return fmt::format("[{}] {}: {}{}", op_->name, what, detail, node_suffix(where_));
}

int64_t InferContext::normalized_axis(int64_t axis, int64_t rank, std::string_view what) const {
  if (axis < -rank || axis >= rank) {
    fail<ValueError>(what, fmt::format("expected {}..{} for rank {}, got {}", -rank, rank - 1, rank, axis));
  }
  return front_axis(axis, rank);
}

void InferContext::require_rank(size_t slot, int64_t rank) const {
  const Shape& s = shape(slot);
  if (!has_input(slot) || !s.has_rank() || s.rank() == rank) return;
  const Param* param = find_param(op_->inputs, slot);
  fail<ShapeError>(fmt::format("input '{}'", param ? param->name : "?"),
                   fmt::format("expected rank {}, got {}", rank, to_string(s)));
}

// ---- Running infer ---------------------------------------------------------------------------------------------

namespace {

class NodeInferContext : public InferContext {
 public:
  NodeInferContext(const OpDef& op, std::vector<Type> types, std::vector<const Tensor*> values,
                   const Attributes& attributes, size_t num_outputs, const std::string& where)
      : values_(std::move(values)) {
    op_ = &op;
    attributes_ = &attributes;
    where_ = where;
    input_types_ = std::move(types);
    output_types_.resize(num_outputs);
  }

  const Tensor* known_value(size_t slot) const override { return slot < values_.size() ? values_[slot] : nullptr; }

  std::vector<Type> run() {
    op_->infer(*this);
    for (size_t slot = 0; slot < output_types_.size(); ++slot) {
      AG_CHECK(output_types_[slot].kind() != Type::Kind::none, "[{}] infer left output {} without a type", op_->name,
               slot);
    }
    check_dtypes(*op_, input_types_, output_types_, where_);
    return std::move(output_types_);
  }

 private:
  std::vector<const Tensor*> values_;
};

}  // namespace

std::vector<Type> infer_node(const OpDef& op, const Graph& graph, const std::vector<ValueId>& inputs,
                             const Attributes& attributes, size_t num_outputs, const std::string& where,
                             const KnownValues* known) {
  std::vector<Type> types(inputs.size());
  std::vector<const Tensor*> values(inputs.size(), nullptr);
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    if (!inputs[slot].is_valid()) continue;
    const Value& value = graph.value(inputs[slot]);
    types[slot] = value.type();
    if (value.is_constant()) {
      values[slot] = &value.constant();
    } else if (known) {
      const auto it = known->find(inputs[slot].index);
      if (it != known->end()) values[slot] = &it->second;
    }
  }
  return NodeInferContext(op, std::move(types), std::move(values), attributes, num_outputs, where).run();
}

std::vector<Type> infer_call(const OpDef& op, std::vector<Type> input_types, const std::vector<Tensor>& values,
                             const Attributes& attributes, size_t num_outputs, const std::string& where) {
  std::vector<const Tensor*> pointers(input_types.size(), nullptr);
  for (size_t slot = 0; slot < values.size() && slot < pointers.size(); ++slot) {
    if (values[slot].is_present()) pointers[slot] = &values[slot];
  }
  return NodeInferContext(op, std::move(input_types), std::move(pointers), attributes, num_outputs, where).run();
}

}  // namespace autograph
