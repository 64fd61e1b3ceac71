// The bodies of fused nodes as tile programs.
#pragma once

#include <string>

#include "autograph/graph.h"
#include "backends/cpu/simd/elementwise/tile_program.h"

namespace autograph::simd {

/// Input k of a call, of the program made for it.
inline TileValue input_value(size_t k) { return {TileValue::Kind::input, static_cast<uint32_t>(k)}; }

/// Appends `nodes` of a body, in this order, and makes `outputs` the outputs of the program. Returns why that cannot be
/// done, or "".
std::string lower_body(const KernelCall& call, const Graph& body, std::span<const NodeId> nodes,
                       std::span<const ValueId> outputs, TileProgram& program);

}  // namespace autograph::simd
