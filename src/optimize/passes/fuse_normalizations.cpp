// fuse_layer_norm, fuse_rms_norm: normalizations over the trailing dims that a model spells out become one node.
//
//   layer norm  d / sqrt(mean(d^2) + epsilon) * scale + bias   with d = x - mean(x)
//   rms norm    x / sqrt(mean(x^2) + epsilon) * scale
//
// The epsilon may be missing (exporters drop one of 1e-12). The division may also be a product with 1 / sqrt(...), the
// reciprocal or the power -1/2; the square d^2 or d * d. Scale and bias may be missing. Casts of x to f32 and of the
// result back, as half-precision models have them, go too: the ops compute in f32 anyway. Holds before: f32, f16 or
// bf16; both means are over the same trailing axes with keepdims; the sizes of these are known; scale and bias have
// just these dims; nothing outside reads a value inside; the device has a kernel for the result. The epsilon is the
// model's. Means over other axes (channels first) stay: the ops have no form for them.
#include <algorithm>
#include <cstring>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// 1 / sqrt(mean(d^2) + epsilon), found from its root downwards.
struct InverseRoot {
  ValueId d;
  int64_t axis;  // first axis of the mean, counted from the end
  double epsilon;
};

// d * inverse root, before scale and bias.
struct Normal {
  ValueId value;     // the normalised elements
  ValueId x;         // what is normalised
  bool is_centered;  // layer norm
  int64_t axis;
  double epsilon;
};

// The first of the trailing axes (counted from the end) over which `mean` goes, with keepdims; nothing otherwise.
std::optional<int64_t> trailing_axes(const Graph& graph, const Node& mean) {
  const Shape& x = graph.type(mean.input(0)).shape();
  auto axes = integer_constants(graph, mean.input(1));
  if (!axes || axes->empty() || !x.has_rank() || !mean.attributes().flag("keepdims")) return std::nullopt;
  for (int64_t& axis : *axes) axis = axis < 0 ? axis : axis - x.rank();
  std::sort(axes->begin(), axes->end());
  for (size_t k = 0; k < axes->size(); ++k) {
    if ((*axes)[k] != static_cast<int64_t>(k) - static_cast<int64_t>(axes->size())) return std::nullopt;
  }
  return axes->front();
}

// d of d^2; `reads` becomes how often the square reads it.
ValueId squared(const Graph& graph, ValueId v, size_t& reads) {
  if (const Node* pow = made_once_by(graph, v, pow_def())) {
    reads = 1;
    return scalar_constant(graph, pow->input(1)) == 2.0 ? pow->input(0) : ValueId{};
  }
  const Node* mul = made_once_by(graph, v, mul_def());
  reads = 2;
  return mul && mul->input(0) == mul->input(1) ? mul->input(0) : ValueId{};
}

// Reads `v` as mean(d^2) + epsilon.
std::optional<InverseRoot> match_variance(const Graph& graph, ValueId v, size_t& reads) {
  const Affine sum = affine_of(graph, v);
  if (sum.factor != 1 || !(sum.offset >= 0)) return std::nullopt;
  const Node* mean = made_once_by(graph, sum.x, reduce_mean_def());
  const auto axis = mean ? trailing_axes(graph, *mean) : std::nullopt;
  const ValueId d = axis ? squared(graph, mean->input(0), reads) : ValueId{};
  if (!d.is_valid()) return std::nullopt;
  return InverseRoot{d, *axis, sum.offset};
}

// The value under the root when `v` is 1 / sqrt(value); invalid otherwise.
ValueId under_inverse_root(const Graph& graph, ValueId v) {
  if (const Node* pow = made_once_by(graph, v, pow_def())) {
    return scalar_constant(graph, pow->input(1)) == -0.5 ? pow->input(0) : ValueId{};
  }
  ValueId root;
  if (const Node* reciprocal = made_once_by(graph, v, reciprocal_def())) root = reciprocal->input(0);
  if (const Node* div = made_once_by(graph, v, div_def())) {
    if (scalar_constant(graph, div->input(0)) == 1.0) root = div->input(1);
  }
  const Node* sqrt = root.is_valid() ? made_once_by(graph, root, sqrt_def()) : nullptr;
  return sqrt ? sqrt->input(0) : ValueId{};
}

// d and the value under the root, when `node` is d / sqrt(value) or d * (1 / sqrt(value)).
std::optional<std::pair<ValueId, ValueId>> match_quotient(const Graph& graph, const Node& node) {
  if (&node.op() == &div_def()) {
    const Node* sqrt = made_once_by(graph, node.input(1), sqrt_def());
    if (!sqrt) return std::nullopt;
    return std::pair(node.input(0), sqrt->input(0));
  }
  if (&node.op() != &mul_def()) return std::nullopt;
  for (const size_t slot : {0, 1}) {
    const ValueId under = under_inverse_root(graph, node.input(slot));
    if (under.is_valid()) return std::pair(node.input(1 - slot), under);
  }
  return std::nullopt;
}

// What d is centred from: x when d = x - mean(x) over the same axes, and only the formula reads d and the mean.
ValueId centered_from(const Graph& graph, const InverseRoot& root, size_t reads) {
  const Node* sub = made_by(graph, root.d, sub_def());
  if (!sub || num_reads(graph, root.d) != reads) return {};
  const Node* mean = made_once_by(graph, sub->input(1), reduce_mean_def());
  if (!mean || mean->input(0) != sub->input(0) || trailing_axes(graph, *mean) != root.axis) return {};
  return sub->input(0);
}

std::optional<Normal> match_normal(const Graph& graph, const Node& node) {
  const auto quotient = match_quotient(graph, node);
  if (!quotient || !is_short_float(graph.type(quotient->first))) return std::nullopt;
  size_t reads = 0;
  const auto root = match_variance(graph, quotient->second, reads);
  if (!root || root->d != quotient->first) return std::nullopt;
  const ValueId x = centered_from(graph, *root, reads + 1);
  return Normal{node.output(0), x.is_valid() ? x : root->d, x.is_valid(), root->axis, root->epsilon};
}

// The sizes of the dims from `axis` (counted from the end) on; nothing when they are not known.
std::optional<Dims> tail_dims(const Graph& graph, ValueId x, int64_t axis) {
  const Shape& shape = graph.type(x).shape();
  if (!shape.has_rank() || shape.rank() < -axis) return std::nullopt;
  Dims dims;
  for (int64_t a = shape.rank() + axis; a < shape.rank(); ++a) {
    if (!shape[a].is_known()) return std::nullopt;
    dims.push_back(shape[a].value());
  }
  return dims;
}

// Do the dims of `v` equal `tail`, but for leading ones?
bool has_tail_dims(const Graph& graph, ValueId v, const Dims& tail, int64_t max_rank) {
  const Type& type = graph.type(v);
  if (!type.is_static() || type.shape().rank() > max_rank) return false;
  Dims dims = type.shape().static_dims();
  while (dims.size() > tail.size() && dims.front() == 1) dims.erase(dims.begin());
  return dims == tail;
}

// The reader of `v` when it is the only one, has op `op`, and combines it with a value of the dims `tail`.
struct Applied {
  NodeId node;
  ValueId parameter;
};

std::optional<Applied> applied_parameter(const Graph& graph, ValueId v, const OpDef& op, const Dims& tail) {
  if (num_reads(graph, v) != 1 || graph.value(v).uses().empty()) return std::nullopt;
  const Use use = graph.value(v).uses().front();
  const Node& node = graph.node(use.node);
  if (&node.op() != &op) return std::nullopt;
  const ValueId parameter = node.input(1 - use.slot);
  const int64_t rank = graph.type(v).shape().rank();
  if (!has_tail_dims(graph, parameter, tail, rank)) return std::nullopt;
  return Applied{use.node, parameter};
}

// Where the value behind a cast to f32 comes from, when the result goes back to its dtype by the only reader.
void drop_casts(const Graph& graph, Normal& normal) {
  const Node* widen = made_by(graph, normal.x, cast_def());
  if (!widen || num_reads(graph, normal.value) != 1 || graph.value(normal.value).uses().empty()) return;
  const Node& narrow = graph.node(graph.value(normal.value).uses().front().node);
  const Type& source = graph.type(widen->input(0));
  const bool is_wider = graph.type(normal.x).dtype() == DType::f32 && is_short_float(source);
  if (!is_wider || &narrow.op() != &cast_def() || narrow.attributes().get<DType>("to") != source.dtype()) return;
  normal.x = widen->input(0);
  normal.value = narrow.output(0);
}

// A constant of ones with these dims, for a normalization without a scale.
ValueId ones_like(Graph& graph, ValueId x, const Dims& dims) {
  const Tensor one = graph.value(scalar_like(Var(graph, x), 1).id()).constant();
  Tensor ones = Tensor::zeros(one.dtype(), dims);
  for (size_t at = 0; at < ones.size_bytes(); at += one.size_bytes()) {
    std::memcpy(static_cast<char*>(ones.mutable_raw()) + at, one.raw(), one.size_bytes());
  }
  return graph.add_constant(std::move(ones));
}

// Adds the fused node for `normal` and replaces `root`, unless the device has no kernel for it.
bool replace(Graph& graph, const PassContext& context, const Normal& normal, std::vector<ValueId> inputs,
             ValueId root) {
  const OpDef& op = normal.is_centered ? layer_normalization_def() : rms_normalization_def();
  const NodeId fused =
      graph.add_node(op, std::move(inputs), {{"axis", normal.axis}, {"epsilon", static_cast<float>(normal.epsilon)}});
  if (!context.expects_kernel || !context.expects_kernel(graph, fused)) {
    graph.erase_node(fused);
    return false;
  }
  replace_pattern(graph, root, graph.node(fused).output(0));
  return true;
}

// A layer norm with its scale and bias.
struct ScaledNormal {
  Normal normal;
  ValueId scale;
  ValueId bias;
};

// d and inverse root of the norm of `x` whose mean is `mean`, when s = scale / sqrt(mean(d^2) + epsilon).
std::optional<ScaledNormal> match_scaling(const Graph& graph, ValueId s, ValueId x, ValueId mean) {
  const Node* product = made_by(graph, s, mul_def());
  const Node* average = made_by(graph, mean, reduce_mean_def());
  if (!product || num_reads(graph, s) != 2 || !average || average->input(0) != x || num_reads(graph, mean) != 2)
    return {};
  for (const size_t slot : {0, 1}) {
    const ValueId under = under_inverse_root(graph, product->input(slot));
    size_t reads = 0;
    const auto root = under.is_valid() ? match_variance(graph, under, reads) : std::nullopt;
    const Node* sub = root ? made_by(graph, root->d, sub_def()) : nullptr;
    if (!sub || num_reads(graph, root->d) != reads || trailing_axes(graph, *average) != root->axis) continue;
    const bool is_difference =
        (sub->input(0) == x && sub->input(1) == mean) || (sub->input(0) == mean && sub->input(1) == x);
    if (!is_difference) continue;
    return ScaledNormal{{{}, x, true, root->axis, root->epsilon}, product->input(1 - slot), {}};
  }
  return std::nullopt;
}

// x * s + (bias - mean * s), the parts in any order.
std::optional<ScaledNormal> match_scaled_normal(const Graph& graph, const Node& add) {
  for (const size_t slot : {0, 1}) {
    const Node* product = made_once_by(graph, add.input(slot), mul_def());
    const Node* rest = made_once_by(graph, add.input(1 - slot), sub_def());
    const Node* shift = rest ? made_once_by(graph, rest->input(1), mul_def()) : nullptr;
    if (!product || !shift) continue;
    for (const size_t x : {0, 1}) {
      for (const size_t mean : {0, 1}) {
        if (product->input(1 - x) != shift->input(1 - mean)) continue;
        auto found = match_scaling(graph, product->input(1 - x), product->input(x), shift->input(mean));
        if (!found) continue;
        found->bias = rest->input(0);
        return found;
      }
    }
  }
  return std::nullopt;
}

bool fuse_scaled(Graph& graph, const PassContext& context, NodeId id) {
  const Node& node = graph.node(id);
  const auto found = &node.op() == &add_def() ? match_scaled_normal(graph, node) : std::nullopt;
  if (!found || !is_short_float(graph.type(found->normal.x))) return false;
  const auto tail = tail_dims(graph, found->normal.x, found->normal.axis);
  if (!tail) return false;
  const int64_t rank = graph.type(found->normal.x).shape().rank();
  for (const ValueId parameter : {found->scale, found->bias}) {
    if (!has_tail_dims(graph, parameter, *tail, rank)) return false;
  }
  return replace(graph, context, found->normal, {found->normal.x, found->scale, found->bias}, node.output(0));
}

bool fuse_plain(Graph& graph, const PassContext& context, NodeId id, bool is_centered) {
  auto normal = match_normal(graph, graph.node(id));
  if (!normal || normal->is_centered != is_centered) return false;
  drop_casts(graph, *normal);
  const auto tail = tail_dims(graph, normal->x, normal->axis);
  if (!tail) return false;
  ValueId root = normal->value;
  std::vector<ValueId> inputs{normal->x};
  const auto scale = applied_parameter(graph, root, mul_def(), *tail);
  if (scale) root = graph.node(scale->node).output(0);
  inputs.push_back(scale ? scale->parameter : ones_like(graph, normal->x, *tail));
  const auto bias = is_centered ? applied_parameter(graph, root, add_def(), *tail) : std::nullopt;
  if (bias) root = graph.node(bias->node).output(0);
  if (bias) inputs.push_back(bias->parameter);
  return replace(graph, context, *normal, std::move(inputs), root);
}

bool fuse(Graph& graph, const PassContext& context, NodeId id, bool is_centered) {
  return (is_centered && fuse_scaled(graph, context, id)) || fuse_plain(graph, context, id, is_centered);
}

bool fuse_all(Graph& graph, const PassContext& context, bool is_centered) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (graph.is_live(id)) changed = fuse(graph, context, id, is_centered) || changed;
  }
  return changed;
}

}  // namespace

bool fuse_layer_norm(Graph& graph, PassContext& context) { return fuse_all(graph, context, true); }

bool fuse_rms_norm(Graph& graph, PassContext& context) { return fuse_all(graph, context, false); }

}  // namespace autograph
