// The passes, one per source file in this folder. True: the graph has changed.
#pragma once

#include "optimize/pass.h"

namespace autograph {

bool order_effects(Graph& graph, PassContext& context);
bool upcast_half(Graph& graph, PassContext& context);
bool decompose(Graph& graph, PassContext& context);
bool update_rows(Graph& graph, PassContext& context);
bool fold_constants(Graph& graph, PassContext& context);
bool fold_constants_before_integers(Graph& graph, PassContext& context);
bool lower_quantized(Graph& graph, PassContext& context);
bool use_integers(Graph& graph, PassContext& context);
bool use_block_matmul(Graph& graph, PassContext& context);
bool keep_bytes(Graph& graph, PassContext& context);
bool eliminate_identity(Graph& graph, PassContext& context);
bool resolve_shapes(Graph& graph, PassContext& context);
bool simplify_shapes(Graph& graph, PassContext& context);
bool simplify_arithmetic(Graph& graph, PassContext& context);
bool common_subexpressions(Graph& graph, PassContext& context);
bool flush_subnormals(Graph& graph, PassContext& context);
bool fold_batch_norm(Graph& graph, PassContext& context);
bool fold_scale(Graph& graph, PassContext& context);
bool fold_pad(Graph& graph, PassContext& context);
bool fuse_softmax(Graph& graph, PassContext& context);
bool fuse_attention(Graph& graph, PassContext& context);
bool fuse_recurrent(Graph& graph, PassContext& context);
bool fuse_scanned_cell(Graph& graph, PassContext& context);
bool simplify_loops(Graph& graph, PassContext& context);
bool simplify_branches(Graph& graph, PassContext& context);
bool count_turns(Graph& graph, PassContext& context);
bool fuse_layer_norm(Graph& graph, PassContext& context);
bool fuse_group_norm(Graph& graph, PassContext& context);
bool fuse_rms_norm(Graph& graph, PassContext& context);
bool fuse_activations(Graph& graph, PassContext& context);
bool fuse_experts(Graph& graph, PassContext& context);
bool lower_einsum(Graph& graph, PassContext& context);
bool use_global_pool(Graph& graph, PassContext& context);
bool lower_batch_norm(Graph& graph, PassContext& context);
bool apply_before_concat(Graph& graph, PassContext& context);
bool fuse_squeeze_excite(Graph& graph, PassContext& context);
bool fuse_epilogues(Graph& graph, PassContext& context);
bool fuse_elementwise(Graph& graph, PassContext& context);
bool dead_code(Graph& graph, PassContext& context);

}  // namespace autograph
