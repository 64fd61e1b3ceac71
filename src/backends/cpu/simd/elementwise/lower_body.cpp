#include "backends/cpu/simd/elementwise/lower_body.h"

#include "ops/defs.h"

namespace autograph::simd {
namespace {

// A constant of a body: a number, or a tensor that the program brings along.
TileValue constant_value(const Tensor& constant, const KernelCall& call, TileProgram& program) {
  if (constant.num_elements() == 1 && constant.dtype() == DType::i32) return program.integer(*constant.data<int32_t>());
  if (constant.num_elements() == 1 && is_tile_type(constant.dtype()) && constant.dtype() != DType::boolean) {
    return program.number(static_cast<float>(constant.to_f64()[0]));
  }
  program.constants.push_back(constant);
  return input_value(call.inputs.size() + program.constants.size() - 1);
}

// Values of a body's middle may be smaller than the outputs: they are computed at full size, which gives the same
// elements.
class BodyLowering {
 public:
  BodyLowering(const KernelCall& call, const Graph& body, TileProgram& program)
      : call_(call), body_(body), program_(program), values_(body.value_capacity()) {
    for (size_t k = 0; k < body.inputs().size(); ++k) values_[body.inputs()[k].index] = input_value(k);
  }

  std::string add(const Node& node) {
    const bool known = node.op().scalar || is_quantization(node.op());
    if (!known || node.outputs().size() != 1) return std::string(node.op().name) + " in the body";
    const ValueId result = node.output(0);
    std::vector<TileValue> operands;
    std::vector<Type> types;
    std::vector<Tensor> constants;
    for (const ValueId v : node.inputs()) {
      operands.push_back(v.is_valid() ? value(v) : TileValue());
      types.push_back(v.is_valid() ? body_.type(v) : Type());
      constants.push_back(v.is_valid() && body_.value(v).is_constant() ? body_.value(v).constant() : Tensor());
    }
    TileValue& made = values_[result.index];
    std::string reason =
        append_node(program_, {node.op(), node.attributes(), types, body_.type(result), operands, constants}, made);
    // What is written is saturated on the way.
    const bool is_read = !body_.value(result).uses().empty();
    if (reason.empty() && is_read && &node.op() == &quantize_linear_def()) {
      made = append_saturation(program_, made, body_.type(result).dtype());
    }
    return reason;
  }

  // Constants become values when they are first read: what else is in the body may have constants, too.
  TileValue value(ValueId v) {
    TileValue& known = values_[v.index];
    if (known.kind == TileValue::Kind::none && body_.value(v).is_constant()) {
      known = constant_value(body_.value(v).constant(), call_, program_);
    }
    return known;
  }

 private:
  const KernelCall& call_;
  const Graph& body_;
  TileProgram& program_;
  std::vector<TileValue> values_;  // by value of the body
};

}  // namespace

std::string lower_body(const KernelCall& call, const Graph& body, std::span<const NodeId> nodes,
                       std::span<const ValueId> outputs, TileProgram& program) {
  BodyLowering lowering(call, body, program);
  for (const NodeId id : nodes) {
    std::string reason = lowering.add(body.node(id));
    if (!reason.empty()) return reason;
  }
  for (const ValueId v : outputs) program.outputs.push_back(lowering.value(v));
  return "";
}

}  // namespace autograph::simd
