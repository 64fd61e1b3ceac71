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
// after it, groups of query heads that share a key (expand). Masks become one in the order of the model: what a
// condition hides loses the masks before it, so that two of finfo.min stay one. A condition alone that sets scores to
// minus infinity stays a bool mask.
//
// The attention op gives 0 for a row whose keys are all hidden by minus infinity, the spelled-out form NaN. So the mask
// gets NaN in such rows, unless it is constant and has none, or the model itself makes 0 of NaN.
//
// Holds before: f32, f16 or bf16; heads and sizes known; masks end in the number of keys and broadcast otherwise;
// nothing outside reads scores or weights; the scale is positive; the device has a kernel for the result.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "graph/nested/new_nodes.h"
#include "ops/defs.h"
#include "optimize/attention_operands.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

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
    set_provenance_of_new(graph_, first_new, origins);
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
    if (!keep_if_expected(graph_, context_, fused)) return false;
    ValueId output = first_output(fused);
    if (graph_.type(output).shape() != graph_.type(result).shape()) {
      output = reshaped(graph_, output, graph_.type(result).shape().static_dims());
    }
    replace_pattern(graph_, result, output);
    return true;
  }

  // ---- Operands ----

  ValueId first_output(NodeId node) const { return graph_.node(node).output(0); }

  // The source as [batch, length, width].
  ValueId packed(const HeadSource& source, const AttentionExtents& extents, const Dim& length, int64_t width) {
    const Shape whole{extents.batch, length, Dim(width) * Dim(source.pieces)};
    const ValueId value = whole.is_static() ? reshaped(graph_, source.value, whole.static_dims()) : source.value;
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
    return reshaped(graph_, value, shape.static_dims());
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

  // The mask on [batch, heads, queries, keys].
  ValueId shaped_mask(const ScoreMask& mask, const AttentionExtents& extents) {
    const std::vector<Dim> dims = *mask_dims(mask.value, extents);
    return dims == graph_.type(mask.value).shape().dims() ? mask.value
                                                          : reshaped(graph_, mask.value, Shape(dims).static_dims());
  }

  Var in_f32(ValueId v) {
    return graph_.type(v).dtype() == DType::f32 ? Var(graph_, v) : cast(Var(graph_, v), DType::f32);
  }

  // Several masks may have different float dtypes.
  ValueId added(ValueId bias, ValueId mask) {
    if (!bias.is_valid()) return mask;
    if (graph_.type(bias).dtype() == graph_.type(mask).dtype()) return add(Var(graph_, bias), Var(graph_, mask)).id();
    return add(in_f32(bias), in_f32(mask)).id();
  }

  // `bias` where the keys are seen (invalid: 0), and what the model puts in place of the scores elsewhere.
  ValueId selected(ValueId bias, const ScoreMask& mask, ValueId condition) {
    const Var hidden(graph_, reshaped(graph_, mask.hidden, {}));
    const bool is_same = !bias.is_valid() || graph_.type(bias).dtype() == graph_.type(mask.hidden).dtype();
    const Var seen = bias.is_valid() ? (is_same ? Var(graph_, bias) : in_f32(bias)) : scalar_like(hidden, 0);
    const Var other = is_same ? hidden : in_f32(hidden.id());
    return mask.hides_when ? where(Var(graph_, condition), other, seen).id()
                           : where(Var(graph_, condition), seen, other).id();
  }

  // All masks as one; invalid when there is none.
  ValueId combined_mask(const AttentionScores& found, const AttentionExtents& extents) {
    if (found.masks.empty()) return {};
    if (const ValueId condition = as_condition(found, extents); condition.is_valid()) return condition;
    ValueId bias;
    bool may_hide_all = false;
    for (const ScoreMask& mask : found.masks) {
      const ValueId value = shaped_mask(mask, extents);
      if (mask.is_condition) {
        may_hide_all |= scalar_constant(graph_, mask.hidden) == -kInfinity;
        bias = selected(bias, mask, value);
      } else {
        // The sum of two may be minus infinity where neither is.
        may_hide_all |= bias.is_valid() || !every_row_has(value, [](double element) { return element != -kInfinity; });
        bias = added(bias, value);
      }
    }
    return may_hide_all && !found.zeroes_nan ? with_nan_rows(bias) : bias;
  }

  // The bool mask of a lone condition, if rows without keys are 0 in the model too, or there are none.
  ValueId as_condition(const AttentionScores& found, const AttentionExtents& extents) {
    const ScoreMask& mask = found.masks.front();
    const bool is_infinite = mask.is_condition && scalar_constant(graph_, mask.hidden) == -kInfinity;
    if (found.masks.size() > 1 || !is_infinite) return {};
    const auto is_seen = [&](double element) { return (element != 0) != mask.hides_when; };
    if (!found.zeroes_nan && !every_row_has(mask.value, is_seen)) return {};
    const ValueId value = shaped_mask(mask, extents);
    return mask.hides_when ? logical_not(Var(graph_, value)).id() : value;
  }

  // Is it a constant with such an element in each row of the last axis?
  bool every_row_has(ValueId v, const std::function<bool(double)>& holds) const {
    if (!graph_.value(v).is_constant()) return false;
    const Tensor& tensor = graph_.value(v).constant();
    const std::vector<double> elements = tensor.to_f64();
    const auto columns = static_cast<std::ptrdiff_t>(tensor.dims().back());
    for (auto row = elements.begin(); row != elements.end(); row += columns) {
      if (std::none_of(row, row + columns, holds)) return false;
    }
    return true;
  }

  // NaN in rows that hide all keys.
  ValueId with_nan_rows(ValueId mask) {
    const Var m(graph_, mask);
    const Var is_hidden = equal(reduce_max(m, {-1}), scalar_like(m, -kInfinity));
    return where(is_hidden, scalar_like(m, std::numeric_limits<double>::quiet_NaN()), m).id();
  }

  Graph& graph_;
  const PassContext& context_;
  std::map<std::pair<ValueId, int64_t>, NodeId> splits_;
};

}  // namespace

bool fuse_attention(Graph& graph, PassContext& context) {
  AttentionFuser fuser(graph, context);
  return rewrite_nodes(graph, [&](NodeId id) { return fuser.fuse(id); });
}

}  // namespace autograph
