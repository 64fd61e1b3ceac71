#include "io/onnx/contrib/contrib.h"

#include <algorithm>

#include "autograph/verify.h"
#include "base/check.h"
#include "graph/nested/new_nodes.h"
#include "graph/schema.h"
#include "io/onnx/contrib/body.h"
#include "tensor/front_axis.h"

namespace autograph::io {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::vector<Param> parse_params(std::string_view list) {
  std::vector<Param> params;
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    std::string_view name = trimmed(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
    Param param;
    if (name.ends_with('?') || name.ends_with('*')) {
      param.arity = name.back() == '?' ? Arity::optional : Arity::variadic;
      name.remove_suffix(1);
    }
    param.name = name;
    params.push_back(param);
  }
  return params;
}

// "conv, add, activation".
std::vector<std::string_view> parse_ops(std::string_view list) {
  std::vector<std::string_view> ops;
  for (const Param& param : parse_params(list)) {
    if (param.name == "activation") {
      const std::vector<std::string_view> all = activation_ops();
      ops.insert(ops.end(), all.begin(), all.end());
    } else {
      ops.push_back(param.name);
    }
  }
  return ops;
}

// Ranks may hang on shapes that the file computes; inference with known values finds them.
void resolve_ranks(const ForeignNode& node) {
  const bool unknown = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) {
    return v.is_valid() && node.graph.type(v).is_tensor() && !node.graph.type(v).shape().has_rank();
  });
  if (unknown) infer_types(node.graph);
}

// Most bodies compute with every input; what is no number goes to no op behind them.
void check_kinds(const ContribOp& op, const ForeignNode& node) {
  for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
    if (!node.has_input(slot)) continue;
    const Type type = node.input_type(slot);
    const bool is_text = type.is_tensor() && type.dtype() == DType::string;
    if (is_text && op.takes_texts) continue;
    const bool is_number = type.is_tensor() && !is_text && type.dtype() != DType::c64 && type.dtype() != DType::c128;
    AG_CHECK_USER(is_number, TypeError, "[{}] input {}: expected a tensor of numbers, got {}", node.op_type, slot,
                  to_string(type));
  }
}

// ImportFn of all rows.
std::vector<ValueId> spell_out(ForeignNode& node) {
  const auto& op = static_cast<const ContribOp&>(node.op);
  const std::string where = node.provenance.to_string();
  complete_attributes(op, node.attributes, where);
  check_inputs(op, node.graph, node.inputs, where);
  check_kinds(op, node);
  resolve_ranks(node);
  const size_t first_new = node.graph.node_capacity();
  ContribCall call(node);
  const std::vector<Var> results = op.body(call);
  set_provenance_of_new(node.graph, first_new, node.provenance);
  std::vector<ValueId> outputs;
  for (const Var& result : results) outputs.push_back(result.is_valid() ? result.id() : ValueId{});
  return outputs;
}

}  // namespace

// ---- ContribCall -----------------------------------------------------------------------------------------------

ContribCall::ContribCall(ForeignNode& node) : node_(node) {}

size_t ContribCall::slot_of(std::string_view name) const {
  const auto& params = node_.op.inputs;
  const auto it = std::find_if(params.begin(), params.end(), [&](const Param& p) { return p.name == name; });
  AG_CHECK(it != params.end(), "{} has no input '{}'", node_.op.name, name);
  return static_cast<size_t>(it - params.begin());
}

Var ContribCall::operator[](std::string_view name) const {
  const size_t slot = slot_of(name);
  return node_.has_input(slot) ? Var(node_.graph, node_.inputs[slot]) : Var();
}

std::vector<Var> ContribCall::all(std::string_view name) const {
  std::vector<Var> vars;
  for (size_t slot = slot_of(name); slot < node_.inputs.size(); ++slot) {
    vars.push_back(node_.has_input(slot) ? Var(node_.graph, node_.inputs[slot]) : Var());
  }
  return vars;
}

int64_t ContribCall::rank(Var v) const {
  if (!v.shape().has_rank()) refuse("input of unknown rank", "the body depends on the rank");
  return v.rank();
}

int64_t ContribCall::extent(Var v, int64_t axis) const {
  const int64_t r = rank(v);
  if (axis < -r || axis >= r) refuse("rank", fmt::format("axis {} of {}", axis, to_string(v.type())));
  const Dim& dim = v.shape()[front_axis(axis, r)];
  if (!dim.is_known()) refuse("input of unknown extent", fmt::format("axis {} of {}", axis, to_string(v.type())));
  return dim.value();
}

std::optional<Tensor> ContribCall::known(Var v) const {
  if (!v.is_valid() || !graph().value(v.id()).is_constant()) return std::nullopt;
  return graph().value(v.id()).constant();
}

void ContribCall::refuse(std::string_view what, std::string_view detail) const {
  throw UnsupportedError(
      fmt::format("[{}] {}: {}{}", node_.op_type, what, detail, node_suffix(node_.provenance.to_string())));
}

void ContribCall::only(std::string_view attribute, std::initializer_list<int64_t> allowed) const {
  const int64_t* value = attributes().find_as<int64_t>(attribute);
  if (!value || std::find(allowed.begin(), allowed.end(), *value) != allowed.end()) return;
  refuse(fmt::format("attribute '{}'", attribute), fmt::format("{} is not supported", *value));
}

void ContribCall::without(std::string_view input) const {
  if (has(input)) refuse(fmt::format("input '{}'", input), "not supported");
}

// ---- The table -------------------------------------------------------------------------------------------------

ContribOp contrib_op(std::string_view name, std::string_view inputs, std::string_view outputs, std::string_view becomes,
                     ContribBody body, std::vector<AttributeSpec> attributes, std::string_view domain) {
  ContribOp op;
  op.name = name;
  op.inputs = parse_params(inputs);
  op.outputs = parse_params(outputs);
  op.attributes = std::move(attributes);
  op.onnx = {{.name = name, .since = 1, .domain = domain, .import = spell_out}};
  op.body = body;
  op.becomes = parse_ops(becomes);
  return op;
}

std::vector<AttributeSpec> attributes_of(std::string_view op, std::vector<AttributeSpec> more) {
  std::vector<AttributeSpec> all = get_op(op).attributes;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Attributes shared_attributes(const ContribCall& call, std::string_view op) {
  Attributes shared;
  for (const auto& [name, value] : call.attributes()) {
    if (find_attribute(get_op(op), name)) shared.set(name, value);
  }
  return shared;
}

const std::vector<ContribOp>& contrib_ops() {
  static const std::vector<ContribOp> table = [] {
    std::vector<ContribOp> all;
    for (const auto& family :
         {contrib_activations(), contrib_attention(), contrib_block_quantized(), contrib_blocked_channels(),
          contrib_channels_last(), contrib_classic_models(), contrib_experimental(), contrib_group_query_attention(),
          contrib_linear_attention(), contrib_mixture_of_experts(), contrib_normalization(), contrib_products(),
          contrib_quantized(), contrib_quantized_products(), contrib_rotary(), contrib_support_vectors()}) {
      all.insert(all.end(), family.begin(), family.end());
    }
    return all;
  }();
  return table;
}

}  // namespace autograph::io
