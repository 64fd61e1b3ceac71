#include "backends/gpu/emit/text/epilogue.h"

#include <algorithm>

#include "autograph/graph.h"
#include "ops/defs.h"

namespace autograph::gpu {
Epilogue::Epilogue(const KernelCall& call, const OpDef& producer)
    : call_(call), op_(producer), attributes_(&call.attributes) {
  if (&call.op == &fused_def()) {
    chain_.emplace(call, &producer);
    read_body();
    return;
  }
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) slots_.push_back(call.has_input(slot) ? slot : kNone);
  inputs_.assign(call.inputs.begin(), call.inputs.end());
  outputs_.assign(call.outputs.begin(), call.outputs.end());
}

void Epilogue::read_body() {
  refusal_ = chain_->refusal();
  if (refusal_.empty() && !chain_->producer()) refusal_ = fmt::format("no {} at the beginning", op_.name);
  if (refusal_.empty() && chain_->reduction()) refusal_ = "a reduction at the end";
  if (refusal_.empty() && call_.outputs.size() != 1) refusal_ = "several outputs";
  if (!refusal_.empty()) return;
  const Graph& body = *chain_->body();
  const Node& node = *chain_->producer();
  attributes_ = &node.attributes();
  for (const ValueId v : node.inputs()) {
    const auto at = std::find(body.inputs().begin(), body.inputs().end(), v);
    if (v.is_valid() && at == body.inputs().end()) refusal_ = "an operand that is no input of the body";
    slots_.push_back(v.is_valid() ? static_cast<size_t>(at - body.inputs().begin()) : kNone);
    inputs_.push_back(v.is_valid() && refusal_.empty() ? call_.inputs[slots_.back()] : Type());
  }
  outputs_ = {body.type(node.output(0))};
  if (!outputs_[0].is_static() || outputs_[0].shape().static_dims() != chain_->dims()) {
    refusal_ = "a body whose shapes are not those of its first node";
  }
}

KernelCall Epilogue::producer() const {
  KernelCall call{.op = op_, .attributes = *attributes_, .inputs = inputs_, .outputs = outputs_, .constants = {}};
  call.threads = call_.threads;
  call.exact = call_.exact;
  return call;
}

Parameter Epilogue::operand(std::string name, size_t slot) const {
  return input_parameter(std::move(name), storage_type(inputs_[slot].dtype()), slots_[slot]);
}

std::vector<Parameter> Epilogue::parameters() const {
  std::vector<Parameter> list;
  if (chain_) list = chain_->parameters();
  list.push_back(output_parameter("y", storage_type(call_.outputs[0].dtype())));
  return list;
}

void Epilogue::cover(IndexType& index) const { cover_operands(index, call_); }

void Epilogue::store(Writer& writer, const std::string& at, const std::string& value) {
  const DType output = call_.outputs[0].dtype();
  if (!chain_) {
    writer.line("{}", gpu::store(output, "y", at, value));
    return;
  }
  const DType made = outputs_[0].dtype();
  const std::string name = writer.new_name("v");
  writer.line("const {} {} = {};", compute_type(made), name, value);
  const std::vector<std::string> results = chain_->write(writer, at, rounded(made, name));
  refusal_ = chain_->refusal();
  if (refusal_.empty()) writer.line("{}", gpu::store(output, "y", at, results[0]));
}

std::vector<uint32_t> Epilogue::in_place_inputs() const {
  std::vector<uint32_t> slots;
  if (!chain_) return slots;
  for (const uint32_t slot : chain_->in_place_inputs()) {
    if (std::find(slots_.begin(), slots_.end(), slot) == slots_.end()) slots.push_back(slot);
  }
  return slots;
}

}  // namespace autograph::gpu
