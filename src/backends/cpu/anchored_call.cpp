#include "backends/cpu/anchored_call.h"

#include <algorithm>

#include "autograph/verify.h"
#include "ops/defs.h"

namespace autograph {
namespace {

bool is_one_of(const OpDef& op, std::span<const OpDef* const> ops) {
  return std::find(ops.begin(), ops.end(), &op) != ops.end();
}

}  // namespace

std::shared_ptr<const Graph> typed_body(const KernelCall& call) {
  const GraphRef& body = call.attributes.get<GraphRef>("body");
  bool same = body->inputs().size() == call.inputs.size();
  for (size_t i = 0; same && i < call.inputs.size(); ++i) same = body->type(body->inputs()[i]) == call.inputs[i];
  if (same) return body;
  auto typed = std::make_shared<Graph>(*body);
  for (size_t i = 0; i < call.inputs.size() && i < typed->inputs().size(); ++i) {
    typed->set_type(typed->inputs()[i], call.inputs[i]);
  }
  infer_types(*typed);
  return typed;
}

const Operand& other_operand(const EpilogueOp& op) { return op.operands[op.operands[0].is_chain ? 1 : 0]; }

std::optional<float> known_number(const EpilogueOp& op, size_t slot, float otherwise) {
  if (slot >= op.operands.size() || !op.operands[slot].type.is_tensor()) return otherwise;
  const Tensor& constant = op.operands[slot].constant;
  // Not so exponents, which may be integers.
  if (!constant.is_present() || constant.num_elements() != 1 || constant.dtype() != DType::f32) return std::nullopt;
  return constant.data<float>()[0];
}

std::shared_ptr<const AnchoredCall> AnchoredCall::read(const KernelCall& call, std::span<const OpDef* const> anchors) {
  if (&call.op != &fused_def() && !is_one_of(call.op, anchors)) return nullptr;
  const auto read = [&] { return read_any(call); };
  std::shared_ptr<const AnchoredCall> result = call.readings ? call.readings->get<AnchoredCall>(read) : read();
  return result && is_one_of(result->op(), anchors) ? result : nullptr;
}

std::shared_ptr<const AnchoredCall> AnchoredCall::read_any(const KernelCall& call) {
  auto result = std::make_shared<AnchoredCall>();
  if (&call.op == &fused_def()) {
    if (!result->read_body(call)) return nullptr;
  } else {
    if (call.outputs.size() != 1) return nullptr;
    result->op_ = &call.op;
    result->attributes_ = &call.attributes;
    result->output_ = call.outputs[0];
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      result->operands_.push_back(
          {static_cast<int>(i), call.constant(i) ? *call.constant(i) : Tensor(), call.inputs[i], false});
    }
  }
  for (const Operand& operand : result->operands_) {
    result->operand_types_.push_back(operand.type);
    result->constants_.push_back(operand.constant);
  }
  return result;
}

bool AnchoredCall::read_body(const KernelCall& call) {
  body_ = typed_body(call);
  const Graph& body = *body_;
  if (body.outputs().size() != 1 || body.inputs().size() != call.inputs.size()) return false;
  ValueId chain;  // what the nodes so far have made
  for (const NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    if (node.outputs().size() != 1) return false;
    std::vector<Operand> operands;
    for (const ValueId v : node.inputs()) operands.push_back(read_operand(call, body, v, chain));
    const auto num_chain = std::count_if(operands.begin(), operands.end(), [](const Operand& o) { return o.is_chain; });
    if (!chain.is_valid()) {
      if (node.op().traits.elementwise) return false;
      op_ = &node.op();
      attributes_ = &node.attributes();
      operands_ = std::move(operands);
      output_ = body.type(node.output(0));
    } else {
      if (num_chain != 1 || !node.op().traits.elementwise || body.type(node.output(0)) != output_) return false;
      for (const Operand& o : operands) {
        if (o.input < 0 && !o.constant.is_present() && !o.is_chain && o.type.is_tensor()) return false;
      }
      epilogue_.push_back({&node.op(), &node.attributes(), std::move(operands)});
    }
    // Nothing but the next node may look at the value.
    if (chain.is_valid() && body.value(chain).uses().size() != 1) return false;
    chain = node.output(0);
  }
  return chain.is_valid() && body.outputs()[0] == chain && body.value(chain).uses().empty();
}

Operand AnchoredCall::read_operand(const KernelCall& call, const Graph& body, ValueId value, ValueId chain) const {
  Operand operand;
  if (!value.is_valid()) return operand;
  operand.type = body.type(value);
  operand.is_chain = chain.is_valid() && value == chain;
  const Value& v = body.value(value);
  if (v.is_constant()) operand.constant = v.constant();
  if (!v.is_input()) return operand;
  operand.input = static_cast<int>(v.slot());
  if (const Tensor* known = call.constant(v.slot())) operand.constant = *known;
  return operand;
}

const Operand& AnchoredCall::operand(size_t slot) const {
  static const Operand kMissing;
  return slot < operands_.size() ? operands_[slot] : kMissing;
}

KernelCall AnchoredCall::anchor_call(int threads) const {
  return {*op_, *attributes_, operand_types_, {&output_, 1}, constants_, threads};
}

std::shared_ptr<const AnchoredCall> read_conv(const KernelCall& call) {
  const OpDef* const anchors[] = {&conv_def()};
  return AnchoredCall::read(call, anchors);
}

std::shared_ptr<const AnchoredCall> read_product(const KernelCall& call) {
  const OpDef* const anchors[] = {&matmul_def(), &gemm_def()};
  return AnchoredCall::read(call, anchors);
}

}  // namespace autograph
