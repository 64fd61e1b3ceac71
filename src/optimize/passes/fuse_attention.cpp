// fuse_attention: softmax(scale * q k^T + mask) v becomes one attention node, with the reshapes and transposes around
// it.
//
//   packed    q, k, v as they come from their linear layers, [batch, length, heads * size], or as pieces of one tensor
//             [batch, length, 3 * heads * size], which a split then cuts; the result likewise. All transposes go.
//   per head  [batch, heads, length, size] where the way to the packed form is blocked (rotary embeddings, a cache).
//
// Where the operands come from is traced through views, transposes, picked positions, repeated heads and scalar factors
// (optimize/axis_trace.h), so that every spelling of the head split is found: [batch, heads, ...] or
// [batch * heads, ...], the scale on q, on k, on both or on the scores, keys transposed together with the split or
// after it, groups of query heads that share a key (expand). Masks are added up; a condition that sets scores to minus
// infinity becomes a bool mask.
//
// Holds before: f32, f16 or bf16; heads and sizes known; masks end in the number of keys and broadcast otherwise;
// nothing outside reads scores or weights; the scale is not negative; the device has a kernel for the result. A row
// whose keys are all hidden by minus infinity becomes 0 where the spelled-out form gives NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "optimize/attention_operands.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {

const OpDef& add_def();
const OpDef& attention_def();
const OpDef& not_def();
const OpDef& reshape_def();
const OpDef& split_def();
const OpDef& transpose_def();
const OpDef& where_def();

namespace {

// The operands of a fused node.
struct Operands {
  HeadSource q, k, v;
};

// `find` applied to all operands; repeats of keys and values are left out when both have the same.
std::optional<Operands> find_operands(const Graph& graph, const AttentionScores& found, const AttentionExtents& extents,
                                      decltype(find_packed)* find) {
  const auto q = find(graph, attention_queries(found, extents), false);
  if (!q) return std::nullopt;
  for (const bool through_repeats : {true, false}) {
    const auto k = find(graph, attention_keys(found, extents), through_repeats);
    const auto v = find(graph, attention_values(found, extents), through_repeats);
    if (k && v && k->repeats == v->repeats) return Operands{*q, *k, *v};
  }
  return std::nullopt;
}

class AttentionFuser {
 public:
  AttentionFuser(Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  bool fuse(NodeId softmax) {
    const auto found = match_attention_scores(graph_, graph_.node(softmax));
    auto extents = found ? attention_extents(graph_, *found) : std::nullopt;
    if (!extents) return false;
    if (extents->merged_batch) {
      const int64_t batch = merged_batch_extent(graph_, attention_queries(*found, *extents));
      extents->batch = batch;
      extents->heads /= batch;
    }
    const std::vector<Dim> split{extents->batch, extents->heads};
    if (!found->split_batch.empty() && (!extents->merged_batch || found->split_batch != split)) return false;
    const auto first_new = static_cast<uint32_t>(graph_.node_capacity());
    const auto fits = [&](const ScoreMask& mask) { return mask_dims(mask.value, *extents).has_value(); };
    if (!std::all_of(found->masks.begin(), found->masks.end(), fits)) return false;
    if (!fuse_packed(*found, *extents) && !fuse_per_head(*found, *extents)) return false;
    share_origins(first_new);
    return true;
  }

 private:
  // replace_pattern() gave the origins of all old nodes to the last new one; the others come from them as well.
  void share_origins(uint32_t first_new) {
    Provenance origins;
    for (uint32_t i = first_new; i < graph_.node_capacity(); ++i) {
      if (graph_.is_live(NodeId{i})) origins = Provenance::merged(origins, graph_.node(NodeId{i}).provenance());
    }
    for (uint32_t i = first_new; i < graph_.node_capacity(); ++i) {
      if (graph_.is_live(NodeId{i})) graph_.set_provenance(NodeId{i}, origins);
    }
  }

  // ---- Forms ----

  bool fuse_packed(const AttentionScores& found, const AttentionExtents& extents) {
    const ValueId result = find_packed_reader(graph_, attention_result(found, extents));
    const auto operands = result.is_valid() ? find_operands(graph_, found, extents, find_packed) : std::nullopt;
    if (!operands) return false;
    const int64_t kv_heads = extents.heads / operands->k.repeats;
    const std::vector<ValueId> inputs{
        packed(operands->q, extents, extents.queries, extents.heads * extents.size),
        packed(operands->k, extents, extents.keys, kv_heads * extents.size),
        packed(operands->v, extents, extents.keys, kv_heads * extents.value_size),
    };
    const Attributes heads{{"q_num_heads", extents.heads}, {"kv_num_heads", kv_heads}};
    return replace(found, extents, {inputs, heads, operands->q.scale * operands->k.scale}, result);
  }

  bool fuse_per_head(const AttentionScores& found, const AttentionExtents& extents) {
    const auto operands = find_operands(graph_, found, extents, find_per_head);
    if (!operands) return false;
    if (extents.merged_batch && !Shape{extents.queries, extents.keys}.is_static()) return false;
    const int64_t kv_heads = extents.heads / operands->k.repeats;
    const std::vector<ValueId> inputs{
        per_head(operands->q, {extents.batch, extents.heads, extents.queries, extents.size}),
        per_head(operands->k, {extents.batch, kv_heads, extents.keys, extents.size}),
        per_head(operands->v, {extents.batch, kv_heads, extents.keys, extents.value_size})};
    return replace(found, extents, {inputs, {}, operands->q.scale * operands->k.scale}, found.result);
  }

  struct Call {
    std::vector<ValueId> inputs;
    Attributes attributes;
    double scale;  // of the operands
  };

  bool replace(const AttentionScores& found, const AttentionExtents& extents, Call call, ValueId result) {
    const double scale = found.scale * call.scale;
    if (!(scale >= 0) || !std::isfinite(scale)) return false;
    const ValueId mask = combined_mask(found, extents);
    if (mask.is_valid()) call.inputs.push_back(mask);
    call.attributes.set("scale", static_cast<float>(scale));
    const NodeId fused = graph_.add_node(attention_def(), call.inputs, call.attributes, {{}, 1});
    if (!context_.expects_kernel || !context_.expects_kernel(graph_, fused)) {
      erase_unread(graph_, fused);
      return false;
    }
    ValueId output = first_output(fused);
    if (graph_.type(output).shape() != graph_.type(result).shape()) {
      output = reshaped(output, graph_.type(result).shape().static_dims());
    }
    replace_pattern(graph_, result, output);
    return true;
  }

  // ---- Operands ----

  ValueId first_output(NodeId node) const { return graph_.node(node).output(0); }

  ValueId reshaped(ValueId v, const Dims& dims) {
    if (graph_.type(v).is_static() && graph_.type(v).shape().static_dims() == dims) return v;
    const ValueId shape = graph_.add_constant(Tensor::vector(dims));
    return first_output(graph_.add_node(reshape_def(), {v, shape}));
  }

  // The source as [batch, length, width].
  ValueId packed(const HeadSource& source, const AttentionExtents& extents, const Dim& length, int64_t width) {
    const Shape whole{extents.batch, length, Dim(width) * Dim(source.pieces)};
    const ValueId value = whole.is_static() ? reshaped(source.value, whole.static_dims()) : source.value;
    return source.pieces == 1 ? value : piece_of(value, source);
  }

  // One of the pieces along the last axis; a tensor is split once for all who read a piece.
  ValueId piece_of(ValueId value, const HeadSource& source) {
    NodeId& split = splits_[{source.value, source.pieces}];
    if (!graph_.is_live(split)) {
      const Attributes attributes{{"axis", int64_t{2}}, {"num_outputs", source.pieces}};
      split = graph_.add_node(split_def(), {value}, attributes, {{}, static_cast<int>(source.pieces)});
    }
    return graph_.node(split).output(static_cast<size_t>(source.piece));
  }

  // The source as [batch, heads, length, size]; it has this shape already while an extent is not known.
  ValueId per_head(const HeadSource& source, const Shape& shape) {
    if (!shape.is_static()) return source.value;
    ValueId value = source.value;
    if (!source.perm.empty()) value = first_output(graph_.add_node(transpose_def(), {value}, {{"perm", source.perm}}));
    return reshaped(value, shape.static_dims());
  }

  // ---- Masks ----

  // The dims that a mask on the scores gets: without leading extents of 1 beyond the rank, and with batch and heads
  // apart. Nothing when it does not fit, or would need a reshape while an extent is not known.
  std::optional<std::vector<Dim>> mask_dims(ValueId mask, const AttentionExtents& extents) const {
    const Shape& shape = graph_.type(mask).shape();
    if (!shape.has_rank()) return std::nullopt;
    std::vector<Dim> dims = shape.dims();
    while (dims.size() > 4 && dims.front().value_or(0) == 1) dims.erase(dims.begin());
    std::vector<Dim> expected{extents.batch, extents.heads, extents.queries, extents.keys};
    const bool is_merged = extents.merged_batch && dims.size() == 3;
    if (is_merged) expected = {Dim(extents.batch.value() * extents.heads), extents.queries, extents.keys};
    if (dims.empty() || dims.size() > expected.size() || !dims.back().same_as(extents.keys)) return std::nullopt;
    for (size_t back = 2; back <= dims.size(); ++back) {
      const Dim& dim = dims[dims.size() - back];
      if (dim.value_or(0) != 1 && !dim.same_as(expected[expected.size() - back])) return std::nullopt;
    }
    if (is_merged && dims[0].value_or(0) != 1) {
      dims[0] = extents.heads;
      dims.insert(dims.begin(), extents.batch);
    }
    if (dims != shape.dims() && !Shape(dims).is_static()) return std::nullopt;
    return dims;
  }

  // The mask as attention takes it: bool where minus infinity is chosen, else what is added.
  ValueId attention_mask(const ScoreMask& mask, const AttentionExtents& extents, bool is_alone) {
    const std::vector<Dim> dims = *mask_dims(mask.value, extents);
    ValueId value = mask.value;
    if (dims != graph_.type(value).shape().dims()) value = reshaped(value, Shape(dims).static_dims());
    if (!mask.is_condition) return value;
    const double hidden = *scalar_constant(graph_, mask.hidden);
    if (is_alone && hidden == -std::numeric_limits<double>::infinity()) {
      return mask.hides_when ? first_output(graph_.add_node(not_def(), {value})) : value;
    }
    const Var seen = scalar_like(Var(graph_, mask.hidden), 0);
    std::vector<ValueId> choice{value, seen.id(), reshaped(mask.hidden, {})};
    if (mask.hides_when) std::swap(choice[1], choice[2]);
    return first_output(graph_.add_node(where_def(), choice));
  }

  // The sum of all masks; invalid when there is none.
  ValueId combined_mask(const AttentionScores& found, const AttentionExtents& extents) {
    ValueId sum;
    for (const ScoreMask& mask : found.masks) {
      const ValueId next = attention_mask(mask, extents, found.masks.size() == 1);
      sum = sum.is_valid() ? first_output(graph_.add_node(add_def(), {sum, next})) : next;
    }
    return sum;
  }

  Graph& graph_;
  const PassContext& context_;
  std::map<std::pair<ValueId, int64_t>, NodeId> splits_;
};

}  // namespace

bool fuse_attention(Graph& graph, PassContext& context) {
  bool changed = false;
  AttentionFuser fuser(graph, context);
  for (const NodeId id : graph.topological_order()) {
    if (graph.is_live(id)) changed = fuser.fuse(id) || changed;
  }
  return changed;
}

}  // namespace autograph
