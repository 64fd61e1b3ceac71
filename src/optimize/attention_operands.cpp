#include "optimize/attention_operands.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "optimize/axis_trace.h"
#include "optimize/match.h"

namespace autograph {
namespace {

HeadTensor head_tensor(ValueId value, const AttentionExtents& extents, const Dim& length, int64_t size) {
  HeadTensor tensor{value, {HeadAxis::heads, HeadAxis::length, HeadAxis::size}, extents.batch, length};
  tensor.heads = extents.heads;
  tensor.size = size;
  if (!extents.merged_batch) tensor.axes.insert(tensor.axes.begin(), HeadAxis::batch);
  return tensor;
}

AxisTrace trace_of(const Graph& graph, const HeadTensor& tensor, bool through_repeats) {
  return {graph, tensor.value, {.scales = tensor.takes_scale, .repeats = through_repeats}};
}

HeadAxis axis_of(const AxisPart& part, const HeadTensor& tensor) {
  const HeadAxis axis = tensor.axes[static_cast<size_t>(part.role)];
  return axis == HeadAxis::heads && part.inner >= tensor.heads ? HeadAxis::batch : axis;
}

// The heads that the traced source holds; nothing when something else than heads is repeated.
std::optional<int64_t> source_heads(const AxisTrace& trace, const HeadTensor& tensor) {
  if (trace.repeats() == 1) return tensor.heads;
  const bool are_heads = tensor.axes[static_cast<size_t>(trace.repeated_role())] == HeadAxis::heads;
  if (!are_heads || tensor.axes.size() != 4 || tensor.heads % trace.repeats() != 0) return std::nullopt;
  return tensor.heads / trace.repeats();
}

// Do the parts of each axis stand outermost first?
bool has_ordered_parts(const AxisTrace& trace) {
  std::map<int64_t, int64_t> inner;
  for (const AxisPart& part : trace.parts()) {
    if (part.role == AxisPart::kPicked) continue;
    const auto [last, is_first] = inner.emplace(part.role, part.inner);
    if (!is_first && part.inner >= last->second) return false;
    last->second = part.inner;
  }
  return true;
}

// The picked part when the parts stand in packed order with at most one picked part, in front of the heads; a part of
// extent 1 when there is none.
std::optional<AxisPart> packed_order(const AxisTrace& trace, const HeadTensor& tensor) {
  if (!has_ordered_parts(trace)) return std::nullopt;
  AxisPart picked;
  picked.extent = 1;
  HeadAxis last = HeadAxis::batch;
  for (const AxisPart& part : trace.parts()) {
    const bool is_picked = part.role == AxisPart::kPicked;
    const HeadAxis axis = is_picked ? HeadAxis::heads : axis_of(part, tensor);
    if (axis < last || (is_picked && last == HeadAxis::heads)) return std::nullopt;
    if (is_picked) picked = part;
    last = axis;
  }
  return picked;
}

bool has_dims(const Graph& graph, ValueId v, const std::vector<Dim>& dims) {
  const Shape& shape = graph.type(v).shape();
  if (!shape.has_rank() || shape.dims().size() != dims.size()) return false;
  for (size_t a = 0; a < dims.size(); ++a) {
    if (!shape.dims()[a].same_as(dims[a])) return false;
  }
  return true;
}

std::vector<Dim> packed_dims(const HeadTensor& tensor, int64_t heads, int64_t pieces) {
  return {tensor.batch, tensor.length, Dim(pieces) * Dim(heads) * Dim(tensor.size)};
}

using PartLists = std::vector<std::vector<AxisPart>>;

// Where an axis stands in [batch, heads, length, size].
int per_head_place(const AxisPart& part, const HeadTensor& tensor) {
  constexpr int kPlaces[] = {0, 2, 1, 3};  // by HeadAxis
  return kPlaces[static_cast<size_t>(tensor.axes[static_cast<size_t>(part.role)])];
}

// Do the parts stand in the order batch, heads, length, size? With `exactly`, under just that shape.
bool is_per_head(const PartLists& axes, const HeadTensor& tensor, bool exactly) {
  if (exactly && axes.size() != tensor.axes.size()) return false;
  const size_t first = 4 - tensor.axes.size();  // without an axis of its own, the batch is with the heads
  int last = 0;
  for (size_t a = 0; a < axes.size(); ++a) {
    for (const AxisPart& part : axes[a]) {
      if (part.role == AxisPart::kPicked) return false;
      const int place = per_head_place(part, tensor);
      if (place < last || (exactly && a + first != static_cast<size_t>(place))) return false;
      last = place;
    }
  }
  return true;
}

// A permutation of the axes that puts them in this order; nothing when there is none.
std::optional<std::vector<int64_t>> per_head_permutation(const AxisTrace& trace, const HeadTensor& tensor) {
  const PartLists& axes = trace.axes();
  std::vector<int64_t> perm(axes.size());
  std::iota(perm.begin(), perm.end(), 0);
  const auto place = [&](int64_t axis) {
    const auto& parts = axes[static_cast<size_t>(axis)];
    return parts.empty() || parts[0].role == AxisPart::kPicked ? 0 : per_head_place(parts[0], tensor);
  };
  std::stable_sort(perm.begin(), perm.end(), [&](int64_t a, int64_t b) { return place(a) < place(b); });
  PartLists sorted;
  for (const int64_t axis : perm) sorted.push_back(axes[static_cast<size_t>(axis)]);
  return is_per_head(sorted, tensor, false) ? std::optional(perm) : std::nullopt;
}

// Dims of the leading axes and of those that two operands share.
bool extents_agree(const Shape& q, const Shape& k, const Shape& v) {
  const int64_t rank = q.rank();
  for (int64_t axis = 0; axis + 2 < rank; ++axis) {
    if (!q[axis].same_as(k[axis]) || !q[axis].same_as(v[axis])) return false;
  }
  return k[rank - 1].same_as(v[rank - 2]) && q[rank - 1].same_as(k[rank - 2]);
}

}  // namespace

std::optional<AttentionExtents> attention_extents(const Graph& graph, const AttentionScores& found) {
  const Type& q = graph.type(found.q);
  const Type& k = graph.type(found.k);
  const Type& v = graph.type(found.v);
  if (!is_short_float(q) || k.dtype() != q.dtype() || v.dtype() != q.dtype()) return std::nullopt;
  for (const Type* type : {&q, &k, &v}) {
    if (!type->shape().has_rank() || type->shape().rank() != q.shape().rank()) return std::nullopt;
  }
  const int64_t rank = q.shape().rank();
  if ((rank != 3 && rank != 4) || !extents_agree(q.shape(), k.shape(), v.shape())) return std::nullopt;
  const Dim& heads = q.shape()[rank - 3];
  const Dim& size = q.shape()[rank - 1];
  const Dim& value_size = v.shape()[rank - 1];
  if (heads.value_or(0) < 1 || size.value_or(0) < 1 || value_size.value_or(0) < 1) return std::nullopt;
  AttentionExtents extents;
  extents.merged_batch = rank == 3;
  extents.batch = rank == 3 ? Dim(1) : q.shape()[0];
  extents.heads = heads.value();
  extents.queries = q.shape()[rank - 2];
  extents.keys = k.shape()[rank - 1];
  extents.size = size.value();
  extents.value_size = value_size.value();
  return extents;
}

HeadTensor attention_queries(const AttentionScores& found, const AttentionExtents& extents) {
  HeadTensor queries = head_tensor(found.q, extents, extents.queries, extents.size);
  queries.takes_scale = true;
  return queries;
}

HeadTensor attention_keys(const AttentionScores& found, const AttentionExtents& extents) {
  HeadTensor keys = head_tensor(found.k, extents, extents.keys, extents.size);
  keys.takes_scale = true;
  std::swap(keys.axes[keys.axes.size() - 1], keys.axes[keys.axes.size() - 2]);
  return keys;
}

HeadTensor attention_values(const AttentionScores& found, const AttentionExtents& extents) {
  return head_tensor(found.v, extents, extents.keys, extents.value_size);
}

HeadTensor attention_result(const AttentionScores& found, const AttentionExtents& extents) {
  return head_tensor(found.result, extents, extents.queries, extents.value_size);
}

std::optional<HeadSource> find_packed(const Graph& graph, const HeadTensor& tensor, bool through_repeats) {
  AxisTrace trace = trace_of(graph, tensor, through_repeats);
  std::optional<HeadSource> best;
  do {
    const auto picked = packed_order(trace, tensor);
    const auto heads = source_heads(trace, tensor);
    if (!picked || !heads) continue;
    const std::vector<Dim> dims = packed_dims(tensor, *heads, picked->extent.value());
    if (!has_dims(graph, trace.source(), dims) && !Shape(dims).is_static()) continue;
    best = HeadSource{trace.source(), picked->extent.value(), picked->index, trace.scale(), trace.repeats(), {}};
  } while (trace.step_back());
  return best;
}

std::optional<HeadSource> find_per_head(const Graph& graph, const HeadTensor& tensor, bool through_repeats) {
  AxisTrace trace = trace_of(graph, tensor, through_repeats);
  std::optional<HeadSource> best;
  do {
    if (!has_ordered_parts(trace) || !source_heads(trace, tensor)) continue;
    const bool is_static = graph.type(trace.source()).is_static();
    const HeadSource source{trace.source(), 1, 0, trace.scale(), trace.repeats(), {}};
    if (is_per_head(trace.axes(), tensor, !is_static)) {
      best = source;
    } else if (const auto perm = is_static ? per_head_permutation(trace, tensor) : std::nullopt;
               perm && (!best || !best->perm.empty())) {
      best = source;
      best->perm = *perm;
    }
  } while (trace.step_back());
  return best;
}

ValueId find_packed_reader(const Graph& graph, const HeadTensor& tensor) {
  AxisTrace trace = trace_of(graph, tensor, false);
  const std::vector<Dim> dims = packed_dims(tensor, tensor.heads, 1);
  ValueId best;
  for (NodeId reader = only_reader(graph, trace.source()); reader.is_valid();
       reader = only_reader(graph, trace.source())) {
    if (!trace.step_forward(graph.node(reader))) break;
    if (!packed_order(trace, tensor)) continue;
    if (has_dims(graph, trace.source(), dims)) return trace.source();
    if (!best.is_valid() && graph.type(trace.source()).is_static()) best = trace.source();
  }
  return best;
}

int64_t merged_batch_extent(const Graph& graph, const HeadTensor& queries) {
  AxisTrace trace = trace_of(graph, queries, false);
  do {
    const std::vector<AxisPart> parts = trace.parts();
    if (parts.size() < 3 || parts[0].role != 0 || parts[1].role != 1 || parts[2].role != 0) continue;
    if (!parts[0].extent.is_known() || parts[0].inner * parts[0].extent.value() != queries.heads) continue;
    return parts[0].extent.value();
  } while (trace.step_back());
  return 1;
}

}  // namespace autograph
