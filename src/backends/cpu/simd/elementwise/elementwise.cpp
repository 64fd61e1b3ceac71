// Every elementwise op that has instructions, and fused chains of them, as tile programs.
#include <algorithm>
#include <set>

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

// Nodes behind `bytes`, a value in the middle of a body, when the outputs need nothing else; else nothing.
size_t num_nodes_of_bytes(const Graph& body, ValueId bytes) {
  std::set<NodeId> behind;
  std::vector<ValueId> open = body.outputs();
  while (!open.empty()) {
    const ValueId v = open.back();
    open.pop_back();
    if (!v.is_valid() || v == bytes || body.value(v).is_constant()) continue;
    const NodeId maker = body.value(v).producer();
    if (!maker.is_valid()) return 0;
    if (!behind.insert(maker).second) continue;
    for (const ValueId input : body.node(maker).inputs()) open.push_back(input);
  }
  return behind.size();
}

// A program would compute what is looked up in less time (byte_table.cpp).
bool ends_in_table(const Graph& body) {
  const bool gives_floats = body.type(body.outputs()[0]).dtype() == DType::f32;
  const size_t few = gives_floats ? 2 : 1;
  const auto ids = body.nodes();
  return std::any_of(ids.begin(), ids.end(), [&](NodeId id) {
    const Node& node = body.node(id);
    return &node.op() == &quantize_linear_def() && num_nodes_of_bytes(body, node.output(0)) > few;
  });
}

std::string why_not(const KernelCall& call) {
  if (&call.op == &fused_def() && ends_in_table(*call.attributes.get<GraphRef>("body"))) {
    return "a table of the bytes that are made on the way";
  }
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
