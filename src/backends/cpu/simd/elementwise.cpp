// Every elementwise op that has instructions, and fused chains of them, as tile programs.
#include "autograph/graph.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/tile_program.h"
#include "ops/op_list.h"

namespace autograph::simd {
namespace {

TileValue input_value(size_t k) { return {TileValue::Kind::input, static_cast<uint32_t>(k)}; }

// One node.
std::string lower_node(const KernelCall& call, TileProgram& program) {
  std::vector<TileValue> operands;
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    operands.push_back(call.has_input(k) ? input_value(k) : TileValue());
  }
  TileValue result;
  std::string reason =
      append_node(program, {call.op, call.attributes, call.inputs, call.outputs[0], operands, call.constants}, result);
  program.outputs = {result};
  return reason;
}

// A constant of a body: a number, or a tensor that the program brings along.
TileValue constant_value(const Tensor& constant, const KernelCall& call, TileProgram& program) {
  if (constant.num_elements() == 1 && is_tile_type(constant.dtype()) && constant.dtype() != DType::boolean) {
    return program.number(static_cast<float>(constant.to_f64()[0]));
  }
  program.constants.push_back(constant);
  return input_value(call.inputs.size() + program.constants.size() - 1);
}

// The body of a fused node. Values of its middle may be smaller than the outputs: they are computed at full size, which
// gives the same elements.
std::string lower_body(const KernelCall& call, TileProgram& program) {
  const Graph& body = *call.attributes.get<GraphRef>("body");
  std::vector<TileValue> values(body.value_capacity());
  for (size_t k = 0; k < body.inputs().size(); ++k) values[body.inputs()[k].index] = input_value(k);
  for (const ValueId v : body.constants()) {
    values[v.index] = constant_value(body.value(v).constant(), call, program);
  }
  for (const NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    const bool known = node.op().scalar || is_quantization(node.op());
    if (!known || node.outputs().size() != 1) return std::string(node.op().name) + " in the body";
    // Bytes are saturated when they are written.
    const bool is_last = body.num_output_uses(node.output(0)) > 0 && body.value(node.output(0)).uses().empty();
    if (&node.op() == &quantize_linear_def() && !is_last) return "a quantization in the middle of the body";
    std::vector<TileValue> operands;
    std::vector<Type> types;
    std::vector<Tensor> constants;
    for (const ValueId v : node.inputs()) {
      operands.push_back(v.is_valid() ? values[v.index] : TileValue());
      types.push_back(v.is_valid() ? body.type(v) : Type());
      constants.push_back(v.is_valid() && body.value(v).is_constant() ? body.value(v).constant() : Tensor());
    }
    const Type output = body.type(node.output(0));
    std::string reason = append_node(program, {node.op(), node.attributes(), types, output, operands, constants},
                                     values[node.output(0).index]);
    if (!reason.empty()) return reason;
  }
  for (const ValueId v : body.outputs()) program.outputs.push_back(values[v.index]);
  return "";
}

std::string lower(const KernelCall& call, TileProgram& program) {
  return &call.op == &fused_def() ? lower_body(call, program) : lower_node(call, program);
}

std::string why_not(const KernelCall& call) {
  if (!call.op.scalar && !is_quantization(call.op) && &call.op != &fused_def()) return "not an elementwise op";
  TileProgram program;
  std::string reason = lower(call, program);
  return reason.empty() ? why_not_tiles(call, program) : reason;
}

Prepared prepare(const KernelCall& call) {
  TileProgram program;
  lower(call, program);
  return {make_tile_kernel(call, std::move(program)), ""};
}

}  // namespace

KernelDef elementwise_kernel() {
  return {.name = "cpu.elementwise_simd", .op = "", .why_not = why_not, .prepare = prepare, .variants = tile_variants};
}

KernelDef fused_elementwise_kernel() {
  return {.name = "cpu.fused_elementwise_simd",
          .op = "fused",
          .why_not = why_not,
          .prepare = prepare,
          .variants = tile_variants};
}

}  // namespace autograph::simd
