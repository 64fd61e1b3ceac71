// Every elementwise op that has instructions, as a tile program for this one node.
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/tile_program.h"

namespace autograph::simd {
namespace {

std::string lower(const KernelCall& call, TileProgram& program) {
  std::vector<TileValue> operands;
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    operands.push_back(call.has_input(k) ? TileValue{TileValue::Kind::input, static_cast<uint32_t>(k)} : TileValue());
  }
  TileValue result;
  std::string reason =
      append_node(program, {call.op, call.attributes, call.inputs, call.outputs[0], operands, call.constants}, result);
  program.outputs = {result};
  return reason;
}

std::string why_not(const KernelCall& call) {
  if (!call.op.scalar) return "not an elementwise op";
  std::string reason = why_not_tiles(call);
  if (!reason.empty()) return reason;
  TileProgram program;
  return lower(call, program);
}

Prepared prepare(const KernelCall& call) {
  TileProgram program;
  lower(call, program);
  return {make_tile_kernel(call, std::move(program)), ""};
}

}  // namespace

KernelDef elementwise_kernel() {
  return {.name = "cpu.elementwise_simd", .op = "", .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::simd
