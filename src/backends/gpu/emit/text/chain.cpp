#include "backends/gpu/emit/text/chain.h"

#include <algorithm>

#include "autograph/graph.h"
#include "backends/gpu/emit/text/scalar_text.h"
#include "base/join.h"
#include "ops/defs.h"
#include "ops/reduction/axes.h"

namespace autograph::gpu {

Chain::Chain(const KernelCall& call, const OpDef* producer)
    : call_(call), producer_op_(producer), dims_(call.output_dims(0)) {
  if (&call.op == &fused_def()) look_at_body();
}

// The body must be of elementwise nodes on values that broadcast to the dims of the chain.
void Chain::look_at_body() {
  body_ = call_.attributes.get<GraphRef>("body").get();
  results_ = body_->outputs();
  is_read_.assign(call_.inputs.size(), false);
  for (const NodeId id : body_->nodes()) {
    const Node& node = body_->node(id);
    if (is_reduction(node.op()) && node.outputs().size() == 1 && results_.size() == 1 &&
        node.output(0) == results_[0]) {
      reduction_ = &node;
      results_ = {node.inputs()[0]};
    } else if (&node.op() == producer_op_ && !producer_ && node.outputs().size() == 1) {
      producer_ = &node;
      continue;
    } else if (!node.op().scalar || node.outputs().size() != 1) {
      refusal_ = fmt::format("a body with {}", node.op().name);
      return;
    }
    for (const ValueId v : node.inputs()) {
      const auto at = std::find(body_->inputs().begin(), body_->inputs().end(), v);
      if (v.is_valid() && at != body_->inputs().end())
        is_read_[static_cast<size_t>(at - body_->inputs().begin())] = true;
    }
  }
  const Type& type = body_->type(results_[0]);
  if (!type.is_static()) {
    refusal_ = "a body whose shapes are not known";
    return;
  }
  dims_ = type.shape().static_dims();
  for (size_t k = 0; k < call_.outputs.size() && !reduction_; ++k) {
    if (call_.output_dims(k) != dims_) refusal_ = "outputs of several shapes";
  }
}

// What a producer alone reads need not broadcast to the dims of the chain.
bool Chain::reads(size_t slot) const { return call_.has_input(slot) && (!producer_ || is_read_[slot]); }

std::vector<Parameter> Chain::parameters() const {
  std::vector<Parameter> list;
  for (size_t slot = 0; slot < call_.inputs.size(); ++slot) {
    if (!reads(slot)) continue;
    list.push_back(input_parameter(fmt::format("x{}", slot), storage_type(call_.inputs[slot].dtype()), slot));
  }
  return list;
}

void Chain::cover(IndexType& index) const {
  index.cover(num_elements(dims_));
  for (size_t slot = 0; slot < call_.inputs.size(); ++slot) {
    if (call_.has_input(slot)) index.cover(num_elements(call_.input_dims(slot)));
  }
}

// Each element is written by the work item that has read those at its position, and by no other.
std::vector<uint32_t> Chain::in_place_inputs() const {
  std::vector<uint32_t> slots;
  if (reduction_ || call_.outputs.size() > 1) return slots;
  const DType output = call_.outputs[0].dtype();
  for (size_t slot = 0; slot < call_.inputs.size(); ++slot) {
    if (!reads(slot) || call_.input_dims(slot) != dims_) continue;
    if (element_size(call_.inputs[slot].dtype()) == element_size(output)) slots.push_back(static_cast<uint32_t>(slot));
  }
  return slots;
}

Chain::Scalar Chain::load_input(size_t slot, std::string_view i) const {
  const DType dtype = call_.inputs[slot].dtype();
  if (has_four_) return {dtype, load(dtype, fmt::format("four{}", slot), i)};
  IndexType index;
  cover(index);
  const std::string at = position(index, i, broadcast_walk(call_.input_dims(slot), dims_));
  return {dtype, load(dtype, fmt::format("x{}", slot), at)};
}

void Chain::read_four(Writer& writer, std::string_view first, int64_t count) {
  has_four_ = true;
  const bool has_rest = count % 4 != 0;
  for (size_t slot = 0; slot < call_.inputs.size(); ++slot) {
    if (!reads(slot)) continue;
    const Walk walk = broadcast_walk(call_.input_dims(slot), dims_);
    const auto at = [&](const std::string& i) { return position(writer.index(), i, walk); };
    writer.line("{} four{}[4];", storage_type(call_.inputs[slot].dtype()), slot);
    if (repeats_in_fours(walk)) {
      writer.line("four{0}[0] = four{0}[1] = four{0}[2] = four{0}[3] = x{0}[{1}];", slot, at(std::string(first)));
      continue;
    }
    const bool is_whole = walks_in_fours(walk);
    if (is_whole && has_rest) writer.open("if ({} + 4 <= {})", first, writer.index().literal(count));
    if (is_whole) writer.line("LOAD4(four{0}, x{0} + ({1}));", slot, at(std::string(first)));
    if (is_whole && !has_rest) continue;
    if (is_whole) {
      writer.close();
      writer.open("else");
    }
    const std::string i = fmt::format("({} + j)", first);
    const std::string element = fmt::format("x{}[{}]", slot, at(i));
    writer.line("for (i32 j = 0; j < 4; ++j) four{}[j] = {};", slot,
                has_rest ? fmt::format("{} < {} ? {} : 0", i, writer.index().literal(count), element) : element);
    if (is_whole) writer.close();
  }
}

std::string Chain::write_node(Writer& writer, const OpDef& op, const Attributes& attributes,
                              const std::vector<Scalar>& x, DType output) {
  std::vector<ScalarOperand> operands;
  for (const Scalar& scalar : x) operands.push_back({scalar.dtype, scalar.text});
  const auto text = scalar_text(writer, op, attributes, operands, output);
  if (!text) {
    std::vector<std::string_view> dtypes;
    for (const Scalar& scalar : x) dtypes.push_back(to_string(scalar.dtype));
    if (refusal_.empty()) refusal_ = fmt::format("no text for {} of {}", op.name, bracketed(dtypes));
    return "";
  }
  const std::string name = writer.new_name("v");
  writer.line("const {} {} = {};", compute_type(output), name, *text);
  return rounded(output, name);
}

std::vector<std::string> Chain::write(Writer& writer, std::string_view i, const std::string& produced) {
  if (body_) return write_body(writer, i, produced);
  std::vector<Scalar> operands;
  for (size_t slot = 0; slot < call_.inputs.size(); ++slot) {
    Scalar scalar;
    if (call_.has_input(slot)) {
      const std::string name = writer.new_name("v");
      scalar = load_input(slot, i);
      if (compute_type(scalar.dtype).empty()) {
        refusal_ = fmt::format("elements of {}", to_string(scalar.dtype));
        return {""};
      }
      writer.line("const {} {} = {};", compute_type(scalar.dtype), name, scalar.text);
      scalar.text = name;
    }
    operands.push_back(scalar);
  }
  return {write_node(writer, call_.op, call_.attributes, operands, call_.outputs[0].dtype())};
}

Chain::Scalar Chain::of_value(const std::vector<Scalar>& values, ValueId v) {
  if (!v.is_valid()) return {};
  const Value& value = body_->value(v);
  if (!value.is_constant()) return values[v.index];
  const Tensor& constant = value.constant();
  if (constant.num_elements() != 1 || compute_type(constant.dtype()).empty()) {
    refusal_ = "a constant that is no number";
    return {};
  }
  if (is_float(constant.dtype())) return {constant.dtype(), literal(constant.dtype(), constant.to_f64()[0])};
  if (constant.dtype() == DType::boolean) return {constant.dtype(), constant.to_f64()[0] != 0 ? "1" : "0"};
  return {constant.dtype(), literal(constant.dtype(), constant.to_i64()[0])};
}

std::vector<std::string> Chain::write_body(Writer& writer, std::string_view i, const std::string& produced) {
  std::vector<Scalar> values(body_->value_capacity());
  if (producer_) {
    const ValueId made = producer_->output(0);
    values[made.index] = {body_->type(made).dtype(), produced};
  }
  for (size_t slot = 0; slot < call_.inputs.size(); ++slot) {
    if (!reads(slot)) continue;
    Scalar& value = values[body_->inputs()[slot].index];
    value = load_input(slot, i);
    const std::string name = writer.new_name("v");
    writer.line("const {} {} = {};", compute_type(value.dtype), name, value.text);
    value.text = name;
  }
  for (const NodeId id : body_->topological_order()) {
    const Node& node = body_->node(id);
    if (&node == reduction_ || &node == producer_) continue;
    std::vector<Scalar> operands;
    for (const ValueId v : node.inputs()) operands.push_back(of_value(values, v));
    const DType output = body_->type(node.output(0)).dtype();
    values[node.output(0).index] = {output, write_node(writer, node.op(), node.attributes(), operands, output)};
    if (!refusal_.empty()) return {};
  }
  std::vector<std::string> texts;
  for (const ValueId v : results_) texts.push_back(of_value(values, v).text);
  return texts;
}

// What is kept between two nodes is rounded as if it had been written.
std::string rounded(DType dtype, const std::string& name) {
  if (dtype != DType::f16 && dtype != DType::bf16) return name;
  return fmt::format("from_{0}(to_{0}({1}))", to_string(dtype), name);
}

}  // namespace autograph::gpu
