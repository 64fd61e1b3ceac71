// Idioms: pieces of graphs as exporters write them (torch, tf2onnx, paddle2onnx, keras, the optimiser of ONNX Runtime),
// one file for each family. make_idiom_graph() puts one to six of them together.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "random_graph/idioms/idiom_graph.h"

namespace autograph {

/// A family of idioms.
struct IdiomFamily {
  std::string_view name;
  void (*add)(IdiomGraph&);  ///< Adds one block.
  int weight = 1;            ///< How often, against the others.
};

/// All families.
std::span<const IdiomFamily> idiom_families();

/// A graph of one to six blocks; the names of their families, in order, to `blocks` if it is given.
TestGraph make_idiom_graph(uint64_t seed, std::vector<std::string_view>* blocks = nullptr);

// ---- Families, each in the file of its name ----
void add_conv_epilogue(IdiomGraph& g);
void add_matmul_epilogue(IdiomGraph& g);
void add_normalization(IdiomGraph& g);
void add_squeeze_excite(IdiomGraph& g);
void add_residual_block(IdiomGraph& g);
void add_pools_and_joins(IdiomGraph& g);
void add_attention(IdiomGraph& g);
void add_nhwc_sandwich(IdiomGraph& g);
void add_shape_chain(IdiomGraph& g);
void add_control_flow(IdiomGraph& g);
void add_recurrent_layer(IdiomGraph& g);
void add_quantized_chain(IdiomGraph& g);
void add_packed_linear(IdiomGraph& g);
void add_vocoder(IdiomGraph& g);
void add_integer_chain(IdiomGraph& g);
void add_arithmetic_chain(IdiomGraph& g);
void add_contrib_layer(IdiomGraph& g);
void add_contrib_quantized(IdiomGraph& g);
void add_contrib_attention(IdiomGraph& g);
void add_contrib_images(IdiomGraph& g);

// ---- What several of them use ----

/// One op as it stands behind a convolution (`axis` 1) or a product (`axis` -1); keeps the shape.
Var add_epilogue_op(IdiomGraph& g, Var x, int64_t axis);
/// An activation, as one op or spelled out; keeps the shape.
Var add_activation(IdiomGraph& g, Var x);
/// A batch normalization with constant statistics.
Var add_batch_norm(IdiomGraph& g, Var x);
/// A convolution to `out` channels that keeps the plane unless `may_shrink`.
Var add_conv(IdiomGraph& g, Var x, int64_t out, bool may_shrink = false);

}  // namespace autograph
