#include "graph/schema.h"

#include <algorithm>

#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"

namespace autograph {
namespace {

// The dtype that a value binds its type variable to: that of the tensor inside, whatever wraps it.
DType element_dtype(const Type& type) {
  switch (type.kind()) {
    case Type::Kind::tensor: return type.dtype();
    case Type::Kind::sequence:
    case Type::Kind::optional: return element_dtype(type.element());
    case Type::Kind::none: return DType::undefined;
  }
  return DType::undefined;
}

// Binds the type variables of `params` to the dtypes of `types`, in `bound` (parallel to op.types).
void bind_dtypes(const OpDef& op, const std::vector<Param>& params, const std::vector<Type>& types,
                 std::vector<DType>& bound, const char* what, const std::string& where) {
  for (size_t slot = 0; slot < types.size(); ++slot) {
    const Param* param = find_param(params, slot);
    const DType dtype = element_dtype(types[slot]);
    if (!param || param->type_var.empty() || dtype == DType::undefined) continue;
    for (size_t t = 0; t < op.types.size(); ++t) {
      if (op.types[t].name != param->type_var) continue;
      AG_CHECK_USER(op.types[t].allowed.contains(dtype), TypeError, "[{}] {} '{}': expected {}, got {}{}", op.name,
                    what, param->name, to_string(op.types[t].allowed), to_string(dtype), node_suffix(where));
      // Variadic parameters of ops like if and loop are heterogeneous: they use no type variable.
      AG_CHECK_USER(bound[t] == DType::undefined || bound[t] == dtype, TypeError,
                    "[{}] {} '{}': expected {} like the others of {}, got {}{}", op.name, what, param->name,
                    to_string(bound[t]), op.types[t].name, to_string(dtype), node_suffix(where));
      bound[t] = dtype;
    }
  }
}

void check_attribute(const OpDef& op, const AttributeSpec& spec, const AttributeValue& value,
                     const std::string& where) {
  AG_CHECK_USER(type_of(value) == spec.type, TypeError, "[{}] attribute '{}': expected {}, got {}{}", op.name,
                spec.name, to_string(spec.type), to_string(type_of(value)), node_suffix(where));
  if (spec.allowed.empty()) return;
  const auto& text = std::get<std::string>(value);
  AG_CHECK_USER(std::find(spec.allowed.begin(), spec.allowed.end(), text) != spec.allowed.end(), ValueError,
                "[{}] attribute '{}': expected one of {}, got '{}'{}", op.name, spec.name, bracketed(spec.allowed),
                text, node_suffix(where));
}

size_t required_count(const std::vector<Param>& params) {
  size_t count = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].arity == Arity::single) count = i + 1;
  }
  return count;
}

// How many there may be, in words.
std::string allowed_count(const std::vector<Param>& params) {
  const size_t least = required_count(params);
  if (!params.empty() && params.back().arity == Arity::variadic) return fmt::format("{} or more", least);
  return least == params.size() ? fmt::format("{}", least) : fmt::format("{} to {}", least, params.size());
}

}  // namespace

std::string node_suffix(const std::string& where) {
  return where.empty() ? "" : fmt::format(" (node \"{}\")", printable(where));
}

void check_attributes(const OpDef& op, const Attributes& attributes, const std::string& where) {
  for (const auto& [name, value] : attributes) {
    const AttributeSpec* spec = find_attribute(op, name);
    if (!spec) {
      std::vector<std::string> known;
      for (const auto& s : op.attributes) known.emplace_back(s.name);
      throw ValueError(fmt::format("[{}] attribute '{}': unknown{}{}", op.name, name, did_you_mean(name, known),
                                   node_suffix(where)));
    }
    check_attribute(op, *spec, value, where);
  }
  for (const auto& spec : op.attributes) {
    AG_CHECK_USER(!(spec.required || spec.default_value) || attributes.contains(spec.name), ValueError,
                  "[{}] attribute '{}': required but missing{}", op.name, spec.name, node_suffix(where));
  }
}

void complete_attributes(const OpDef& op, Attributes& attributes, const std::string& where) {
  for (const auto& spec : op.attributes) {
    if (spec.default_value && !attributes.contains(spec.name)) attributes.set(spec.name, *spec.default_value);
  }
  check_attributes(op, attributes, where);
}

const Param* find_param(const std::vector<Param>& params, size_t slot) {
  if (slot < params.size()) return &params[slot];
  return !params.empty() && params.back().arity == Arity::variadic ? &params.back() : nullptr;
}

size_t num_fixed_inputs(const OpDef& op) {
  return op.inputs.size() - (!op.inputs.empty() && op.inputs.back().arity == Arity::variadic ? 1 : 0);
}

size_t resolve_num_outputs(const OpDef& op, int asked, const std::string& where) {
  const size_t least = required_count(op.outputs);
  if (asked < 0) {
    AG_CHECK_USER(op.outputs.empty() || op.outputs.back().arity != Arity::variadic, ValueError,
                  "[{}] outputs: their number must be given{}", op.name, node_suffix(where));
    return least;
  }
  const auto count = static_cast<size_t>(asked);
  AG_CHECK_USER(count >= least && (count == 0 || find_param(op.outputs, count - 1)), ValueError,
                "[{}] outputs: expected {}, got {}{}", op.name, allowed_count(op.outputs), count, node_suffix(where));
  return count;
}

void check_inputs(const OpDef& op, const Graph& graph, const std::vector<ValueId>& inputs, const std::string& where) {
  const size_t least = required_count(op.inputs);
  AG_CHECK_USER(inputs.size() >= least && (inputs.empty() || find_param(op.inputs, inputs.size() - 1)), ValueError,
                "[{}] inputs: expected {}, got {}{}", op.name, allowed_count(op.inputs), inputs.size(),
                node_suffix(where));
  std::vector<Type> types(inputs.size());
  for (size_t slot = 0; slot < inputs.size(); ++slot) {
    const Param& param = *find_param(op.inputs, slot);
    if (inputs[slot].is_valid()) {
      AG_CHECK(graph.is_live(inputs[slot]), "[{}] input {} is not a value of the graph", op.name, slot);
      types[slot] = graph.type(inputs[slot]);
    } else {
      AG_CHECK_USER(param.arity != Arity::single, ValueError, "[{}] input '{}': required but missing{}", op.name,
                    param.name, node_suffix(where));
    }
  }
  check_dtypes(op, types, {}, where);
}

void check_effect(const OpDef& op, const std::string& where) {
  const bool has_effect = op.traits.effect || op.traits.collective;
  AG_CHECK_USER(!has_effect || !op.traits.pure, ValueError,
                "[{}] traits: expected pure = false of an op with an effect, got true{}", op.name, node_suffix(where));
}

void check_dtypes(const OpDef& op, const std::vector<Type>& inputs, const std::vector<Type>& outputs,
                  const std::string& where) {
  std::vector<DType> bound(op.types.size(), DType::undefined);
  bind_dtypes(op, op.inputs, inputs, bound, "input", where);
  bind_dtypes(op, op.outputs, outputs, bound, "output", where);
}

}  // namespace autograph
