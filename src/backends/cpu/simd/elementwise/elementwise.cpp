// Every elementwise op that has instructions, and fused chains of them, as tile programs.
#include "autograph/graph.h"
#include "backends/cpu/simd/elementwise/lower_body.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"

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

// The body of a fused node.
std::string lower_fused(const KernelCall& call, TileProgram& program) {
  const Graph& body = *call.attributes.get<GraphRef>("body");
  return lower_body(call, body, body.topological_order(), body.outputs(), program);
}

std::string lower(const KernelCall& call, TileProgram& program) {
  return &call.op == &fused_def() ? lower_fused(call, program) : lower_node(call, program);
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
          .op = fused_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = tile_variants};
}

}  // namespace autograph::simd
