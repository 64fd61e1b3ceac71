// Where the operands of an attention pattern lie before heads are split, transposed, scaled and repeated.
#pragma once

#include <optional>
#include <vector>

#include "autograph/graph.h"
#include "optimize/attention_scores.h"

namespace autograph {

/// Extents of an attention pattern.
struct AttentionExtents {
  bool merged_batch = false;  ///< Operands have rank 3: [batch * heads, ...].
  Dim batch;
  int64_t heads = 1;  ///< Of queries, after repeats of keys and values.
  Dim queries;
  Dim keys;
  int64_t size = 1;
  int64_t value_size = 1;
};

/// The extents, when operands are f32, f16 or bf16, agree in batch and heads, and heads and sizes are known.
std::optional<AttentionExtents> attention_extents(const Graph& graph, const AttentionScores& found);

/// What an axis of an operand means, in the order of the packed form [batch, length, heads * size].
enum class HeadAxis : uint8_t { batch, length, heads, size };

/// An operand, or the result.
struct HeadTensor {
  ValueId value;
  std::vector<HeadAxis> axes;  ///< Of `value`. Without `batch`, the axis of the heads holds batch and heads.
  Dim batch;
  Dim length;
  int64_t heads = 1;
  int64_t size = 1;
  bool takes_scale = false;  ///< A scalar factor may be left out, and is told.
};

HeadTensor attention_queries(const AttentionScores& found, const AttentionExtents& extents);
HeadTensor attention_keys(const AttentionScores& found, const AttentionExtents& extents);
HeadTensor attention_values(const AttentionScores& found, const AttentionExtents& extents);
HeadTensor attention_result(const AttentionScores& found, const AttentionExtents& extents);

/// A tensor from which an operand can be read.
struct HeadSource {
  ValueId value;
  int64_t pieces = 1;              ///< Packed: the last axis holds so many pieces of the operand's extent,
  int64_t piece = 0;               ///< and this is the one.
  double scale = 1;                ///< The operand is the source times this.
  int64_t repeats = 1;             ///< Each head stands for so many.
  std::vector<int64_t> perm = {};  ///< Per head: how to transpose the source first; empty: not at all.
};

/// The earliest source with the elements of [batch, length, heads * size] in order, be it under another shape (while
/// the extents are known) or as one piece among several. Repeats are looked through on request.
std::optional<HeadSource> find_packed(const Graph& graph, const HeadTensor& tensor, bool through_repeats);

/// The earliest source with the elements of [batch, heads, length, size] in order, else the earliest that a transpose
/// of its axes gives this order; of just this shape, or of [batch * heads, length, size], while an extent is not known.
std::optional<HeadSource> find_per_head(const Graph& graph, const HeadTensor& tensor, bool through_repeats);

/// The value behind `tensor`, through single readers, with the elements of the packed form in order; invalid: none.
ValueId find_packed_reader(const Graph& graph, const HeadTensor& tensor);

/// With operands of rank 3: how many of their first extent are the batch, told from where the queries come from.
int64_t merged_batch_extent(const Graph& graph, const HeadTensor& queries);

}  // namespace autograph
