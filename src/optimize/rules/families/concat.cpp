// Rules that move elementwise ops and pools past concat and split, and rules among concats and splits. Exact.
#include <algorithm>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// ---- Nodes in front of a concat, all of a kind --------------------------------------------------------------------

// The producers of `values` when all are read here alone, are of one op with the same attributes, and have
// `num_inputs` inputs and one output; else empty.
std::vector<NodeId> producers_of_a_kind(const Graph& graph, const std::vector<ValueId>& values, size_t num_inputs) {
  const NodeId first = graph.value(values.front()).producer();
  return makers_of(graph, values, [&](const Node& node) {
    return node.outputs().size() == 1 && num_given_inputs(node) == num_inputs && same_op(graph.node(first), node);
  });
}

bool fit_together(const Graph& graph, const std::vector<ValueId>& values, int64_t axis) {
  return std::all_of(values.begin(), values.end(), [&](ValueId value) {
    return graph.type(value).is_static() && graph.type(value).dtype() == graph.type(values.front()).dtype() &&
           same_dims_but(dims_of(graph, value), dims_of(graph, values.front()), axis);
  });
}

std::vector<NodeId> unary_producers(const RuleMatch& match) {
  const Graph& graph = match.graph();
  std::vector<NodeId> nodes = producers_of_a_kind(graph, match.list("xs"), 1);
  if (nodes.empty() || !is_in_class(OpClass::unary, graph.node(nodes.front()))) return {};
  return nodes;
}

// Ops that treat each image and channel alone: they commute with joining along those axes.
bool is_channelwise(const Node& node) {
  return is_one_of(node.op(), {&average_pool_def(), &max_pool_def(), &lp_pool_def(), &global_average_pool_def(),
                               &global_max_pool_def()});
}

std::vector<NodeId> pool_producers(const RuleMatch& match) {
  const Graph& graph = match.graph();
  if (match.integer("k") > 1) return {};
  const std::vector<NodeId> nodes = producers_of_a_kind(graph, match.list("xs"), 1);
  if (nodes.empty() || !is_channelwise(graph.node(nodes.front()))) return {};
  return fit_together(graph, inputs_of(graph, nodes), match.integer("k")) ? nodes : std::vector<NodeId>{};
}

// f([x, y, ...]) in place of [f(x), f(y), ...].
std::vector<ValueId> apply_behind(RuleBuilder& builder, const std::vector<NodeId>& nodes) {
  builder.include(nodes);
  const ValueId joined = builder.concat(inputs_of(builder.graph(), nodes), builder.match().integer("k"));
  return {builder.add_like(builder.graph().node(nodes.front()), {joined})};
}

// [f(x), f(y), ...] in place of f([x, y, ...]).
std::vector<ValueId> apply_before(RuleBuilder& builder) {
  std::vector<ValueId> results;
  for (const ValueId value : builder.match().list("xs")) {
    results.push_back(builder.add_like(builder.match().op_node("f"), {value}));
  }
  return {builder.concat(results, builder.match().integer("k"))};
}

// ---- Operands of binary ops ---------------------------------------------------------------------------------------

// How the operands of several ops become one operand of one op.
enum class Joining : uint8_t { impossible, joined, shared };

// Joined: each has the extents of its op's result, `axis` apart perhaps on all the same way. Shared: all are the same
// value, which does not vary along `axis`.
Joining joining_of(const Graph& graph, const std::vector<ValueId>& operands, const std::vector<ValueId>& results,
                   int64_t axis) {
  const Dims whole = dims_of(graph, results.front());
  const bool are_full = std::equal(operands.begin(), operands.end(), results.begin(), [&](ValueId a, ValueId b) {
    return graph.type(a).is_static() && dims_of(graph, a) == dims_of(graph, b);
  });
  if (are_full && fit_together(graph, operands, axis)) return Joining::joined;
  const Dims first = graph.type(operands.front()).is_static() ? dims_of(graph, operands.front()) : Dims{-1};
  const int64_t own_axis = axis - static_cast<int64_t>(whole.size()) + static_cast<int64_t>(first.size());
  const bool are_same = std::all_of(operands.begin(), operands.end(), [&](ValueId v) { return v == operands.front(); });
  if (are_same && first != Dims{-1} && (own_axis < 0 || first[static_cast<size_t>(own_axis)] == 1)) {
    return Joining::shared;
  }
  // Weights that vary along the axis as their results do: biases of channels.
  if (own_axis < 0) return Joining::impossible;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!is_weight(graph, operands[i])) return Joining::impossible;
    const Dims dims = dims_of(graph, operands[i]);
    if (!same_dims_but(dims, first, own_axis)) return Joining::impossible;
    const int64_t extent = dims_of(graph, results[i])[static_cast<size_t>(axis)];
    if (dims[static_cast<size_t>(own_axis)] != extent) return Joining::impossible;
  }
  return Joining::joined;
}

ValueId joined_operand(RuleBuilder& builder, const std::vector<ValueId>& operands, const std::vector<ValueId>& results,
                       int64_t axis) {
  if (joining_of(builder.graph(), operands, results, axis) == Joining::shared) return operands.front();
  const auto rank = static_cast<int64_t>(builder.dims(results.front()).size());
  const auto own_rank = static_cast<int64_t>(builder.dims(operands.front()).size());
  return builder.concat(operands, axis - rank + own_rank);
}

std::vector<NodeId> binary_producers(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const std::vector<ValueId> results = match.list("xs");
  const std::vector<NodeId> nodes = producers_of_a_kind(graph, results, 2);
  if (nodes.empty() || !is_in_class(OpClass::binary, graph.node(nodes.front()))) return {};
  int joined = 0;
  for (const size_t slot : {0, 1}) {
    const Joining joining = joining_of(graph, inputs_of(graph, nodes, slot), results, match.integer("k"));
    if (joining == Joining::impossible) return {};
    joined += joining == Joining::joined ? 1 : 0;
  }
  return joined > 0 ? nodes : std::vector<NodeId>{};
}

std::vector<ValueId> join_binary(RuleBuilder& builder) {
  const std::vector<NodeId> nodes = binary_producers(builder.match());
  const std::vector<ValueId> results = builder.match().list("xs");
  std::vector<ValueId> inputs;
  builder.include(nodes);
  for (const size_t slot : {0, 1}) {
    const std::vector<ValueId> operands = inputs_of(builder.graph(), nodes, slot);
    inputs.push_back(joined_operand(builder, operands, results, builder.match().integer("k")));
  }
  return {builder.add_like(builder.graph().node(nodes.front()), inputs)};
}

// ---- Nodes behind a split, all of a kind --------------------------------------------------------------------------

// The only readers of `values`, one each, of one op with the same attributes and `num_inputs` inputs that reads the
// value as the same input; else empty.
std::vector<NodeId> readers_of_a_kind(const Graph& graph, const std::vector<ValueId>& values, OpClass op_class) {
  std::vector<NodeId> nodes;
  std::optional<uint32_t> slot;
  for (const ValueId value : values) {
    if (!has_one_reader(graph, value)) return {};
    const Use use = graph.value(value).uses().front();
    const Node& node = graph.node(use.node);
    if (!is_in_class(op_class, node) || (slot && *slot != use.slot)) return {};
    if (!nodes.empty() && !same_op(graph.node(nodes.front()), node)) return {};
    if (std::find(nodes.begin(), nodes.end(), use.node) != nodes.end()) return {};
    slot = use.slot;
    nodes.push_back(use.node);
  }
  return nodes.size() > 1 ? nodes : std::vector<NodeId>{};
}

std::vector<NodeId> unary_readers(const RuleMatch& match) {
  return readers_of_a_kind(match.graph(), match.list("ys"), OpClass::unary);
}

// The results of `nodes` become the pieces of `whole`; the pieces of the old split are not read any more.
std::vector<ValueId> split_behind(RuleBuilder& builder, const std::vector<NodeId>& nodes, ValueId whole) {
  const Graph& graph = builder.graph();
  const int64_t axis = builder.match().integer("k");
  std::vector<ValueId> pieces = builder.match().list("ys");
  const std::vector<ValueId> made = builder.split(whole, extents_along(graph, pieces, axis), axis);
  for (size_t i = 0; i < nodes.size(); ++i) builder.replace(graph.node(nodes[i]).output(0), made[i]);
  return pieces;
}

std::vector<ValueId> split_after_unary(RuleBuilder& builder) {
  const std::vector<NodeId> nodes = unary_readers(builder.match());
  builder.include(nodes);
  return split_behind(builder, nodes, builder.add_like(builder.graph().node(nodes.front()), {builder.value("x")}));
}

// The readers, when what they read besides the pieces can be joined to one operand.
std::vector<NodeId> binary_readers(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const std::vector<ValueId> pieces = match.list("ys");
  const std::vector<NodeId> nodes = readers_of_a_kind(graph, pieces, OpClass::binary);
  if (nodes.empty()) return {};
  const size_t slot = graph.node(nodes.front()).input(0) == pieces.front() ? 0 : 1;
  const std::vector<ValueId> others = inputs_of(graph, nodes, 1 - slot);
  const std::vector<ValueId> results = outputs_of(graph, nodes);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!graph.type(results[i]).is_static() || dims_of(graph, results[i]) != dims_of(graph, pieces[i])) return {};
    // Nothing that comes from the pieces, or is a piece.
    if (!is_weight(graph, others[i])) return {};
  }
  return joining_of(graph, others, results, match.integer("k")) == Joining::impossible ? std::vector<NodeId>{} : nodes;
}

std::vector<ValueId> split_after_binary(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const std::vector<NodeId> nodes = binary_readers(builder.match());
  builder.include(nodes);
  const size_t slot = graph.node(nodes.front()).input(0) == builder.match().list("ys").front() ? 0 : 1;
  const std::vector<ValueId> others = inputs_of(graph, nodes, 1 - slot);
  const ValueId other = joined_operand(builder, others, outputs_of(graph, nodes), builder.match().integer("k"));
  const ValueId x = builder.value("x");
  const std::vector<ValueId> inputs = slot == 0 ? std::vector{x, other} : std::vector{other, x};
  return split_behind(builder, nodes, builder.add_like(graph.node(nodes.front()), inputs));
}

// The readers of two splits with the same cuts: piece i of one and piece i of the other.
struct PairedReaders {
  std::vector<NodeId> nodes;
  NodeId other;     // the other split
  size_t slot = 0;  // where the pieces of the matched split are read
};

std::optional<PairedReaders> paired_readers(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const std::vector<ValueId> pieces = match.list("ys");
  PairedReaders found{readers_of_a_kind(graph, pieces, OpClass::binary), {}, 0};
  if (found.nodes.empty()) return std::nullopt;
  found.slot = graph.node(found.nodes.front()).input(0) == pieces.front() ? 0 : 1;
  const std::vector<ValueId> others = inputs_of(graph, found.nodes, 1 - found.slot);
  found.other = graph.value(others.front()).producer();
  if (!found.other.is_valid() || found.other == match.nodes()[0]) return std::nullopt;
  const Node& other = graph.node(found.other);
  if (&other.op() != &split_def() || other.outputs() != others) return std::nullopt;
  if (!graph.type(other.input(0)).is_static() || axis_of(graph, found.other) != match.integer("k")) return std::nullopt;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (!same_shape_but(graph, pieces[i], others[i], -1) || !has_one_reader(graph, others[i])) return std::nullopt;
  }
  // Each pair is found once, from the split that was made first.
  return match.nodes()[0] < found.other ? std::optional(found) : std::nullopt;
}

std::vector<ValueId> split_after_pairs(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const PairedReaders found = *paired_readers(builder.match());
  builder.include(found.nodes);
  builder.include(found.other);
  const ValueId x = builder.value("x");
  const ValueId z = graph.node(found.other).input(0);
  const std::vector<ValueId> inputs = found.slot == 0 ? std::vector{x, z} : std::vector{z, x};
  return split_behind(builder, found.nodes, builder.add_like(graph.node(found.nodes.front()), inputs));
}

// ---- Concats and splits of each other -----------------------------------------------------------------------------

// The concat along `axis` that makes `value`, for this reader alone; else an invalid id.
NodeId inner_concat(const Graph& graph, ValueId value, int64_t axis) {
  const NodeId producer = producer_of_op(graph, value, concat_def());
  return producer.is_valid() && axis_of(graph, producer) == axis && has_one_reader(graph, value) ? producer : NodeId{};
}

bool has_inner_concat(const RuleMatch& match) {
  const std::vector<ValueId> list = match.list("xs");
  return std::any_of(list.begin(), list.end(),
                     [&](ValueId value) { return inner_concat(match.graph(), value, match.integer("k")).is_valid(); });
}

std::vector<ValueId> flatten_concat(RuleBuilder& builder) {
  const int64_t axis = builder.match().integer("k");
  std::vector<ValueId> values;
  for (const ValueId value : builder.match().list("xs")) {
    const NodeId inner = inner_concat(builder.graph(), value, axis);
    if (inner.is_valid()) {
      const auto& inputs = builder.graph().node(inner).inputs();
      builder.include(inner);
      values.insert(values.end(), inputs.begin(), inputs.end());
    } else {
      values.push_back(value);
    }
  }
  return {builder.add(concat_def(), values, {{"axis", axis}})};
}

// The concat behind x of split(x), when every cut falls between two of its inputs: how many inputs each piece takes.
std::vector<size_t> inputs_of_pieces(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const int64_t axis = match.integer("k");
  const NodeId concat = producer_of_op(graph, match.value("x"), concat_def());
  if (!concat.is_valid() || axis_of(graph, concat) != axis) return {};
  const std::vector<ValueId>& inputs = graph.node(concat).inputs();
  std::vector<size_t> counts;
  size_t next = 0;
  for (const int64_t size : extents_along(graph, match.list("ys"), axis)) {
    int64_t sum = 0;
    const size_t first = next;
    while (sum < size && next < inputs.size()) {
      if (!graph.type(inputs[next]).is_static()) return {};
      sum += dims_of(graph, inputs[next++])[static_cast<size_t>(axis)];
    }
    if (sum != size || next == first) return {};
    counts.push_back(next - first);
  }
  return next == inputs.size() ? counts : std::vector<size_t>{};
}

std::vector<ValueId> take_inputs(RuleBuilder& builder) {
  const std::vector<size_t> counts = inputs_of_pieces(builder.match());
  const NodeId concat = producer_of_op(builder.graph(), builder.value("x"), concat_def());
  const std::vector<ValueId> inputs = builder.graph().node(concat).inputs();
  std::vector<ValueId> pieces;
  auto next = inputs.begin();
  builder.include(concat);
  for (const size_t count : counts) {
    const auto end = next + static_cast<std::ptrdiff_t>(count);
    pieces.push_back(builder.concat({next, end}, builder.match().integer("k")));
    next = end;
  }
  return pieces;
}

// The split along the same axis that makes x of split(x), for this reader alone.
NodeId outer_split(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const ValueId x = match.value("x");
  const NodeId producer = graph.value(x).producer();  // of any of its pieces
  const bool is_split = producer.is_valid() && &graph.node(producer).op() == &split_def();
  return is_split && axis_of(graph, producer) == match.integer("k") && has_one_reader(graph, x) ? producer : NodeId{};
}

std::vector<ValueId> flatten_split(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const NodeId outer = outer_split(builder.match());
  const int64_t axis = builder.match().integer("k");
  const std::vector<ValueId> outer_pieces = graph.node(outer).outputs();
  const std::vector<ValueId> inner_pieces = builder.match().list("ys");
  std::vector<ValueId> old;
  for (const ValueId piece : outer_pieces) {
    if (piece == builder.value("x")) {
      old.insert(old.end(), inner_pieces.begin(), inner_pieces.end());
    } else {
      old.push_back(piece);
    }
  }
  builder.include(outer);
  return builder.hand_out_pieces(old, graph.node(outer).input(0), axis);
}

const Rule kRules[] = {
    // [f(x), f(y), ...] -> f([x, y, ...])
    {.name = "concat.unary_behind",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = f(us): u = concat[axis=k](us...); c = f(u)",
     .kind = shrinks,
     .guard_doc = "all xs are made by the same elementwise op with one input, and read here alone",
     .guard = [](const RuleMatch& match) { return !unary_producers(match).empty(); },
     .build = [](RuleBuilder& builder) { return apply_behind(builder, unary_producers(builder.match())); },
     .dtypes = dtypes::kAll},
    // f([x, y, ...]) -> [f(x), f(y), ...]
    {.name = "concat.unary_before",
     .before = "c = concat[axis=k](xs...); y = unary<f>(c)",
     .after = "us = f(xs); y = concat[axis=k](us...)",
     .guard_doc = "two values or more",
     .guard = [](const RuleMatch& match) { return match.list("xs").size() > 1; },
     .build = apply_before,
     .dtypes = dtypes::kAll},
    // [pool(x), pool(y), ...] -> pool([x, y, ...]), along images or channels
    {.name = "concat.pool_behind",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = pool(us): u = concat[axis=k](us...); c = pool(u)",
     .kind = shrinks,
     .guard_doc = "k is 0 or 1; all xs are made by the same pool with the same attributes, and read here alone",
     .guard = [](const RuleMatch& match) { return !pool_producers(match).empty(); },
     .build = [](RuleBuilder& builder) { return apply_behind(builder, pool_producers(builder.match())); }},
    // [x + u, y + v, ...] -> [x, y, ...] + [u, v, ...], or + u where all add the same
    {.name = "concat.binary_behind",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = f(us, vs): u = concat[axis=k](us...); v = concat[axis=k](vs...); c = f(u, v)",
     .guard_doc =
         "all xs are made by the same elementwise op with two inputs, and read here alone; left sides, and right "
         "sides, have the shape of their result, or are weights with its extent along k, or are the same "
         "value, which does not vary along k",
     .guard = [](const RuleMatch& match) { return !binary_producers(match).empty(); },
     .build = join_binary,
     .dtypes = dtypes::kAll},
    // [[x, y], z] -> [x, y, z]
    {.name = "concat.flatten",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs has concat[axis=k](us...): c = concat[axis=k](us..., xs...)",
     .kind = shrinks,
     .guard_doc = "one of xs is a concat along the same axis, read here alone",
     .guard = has_inner_concat,
     .build = flatten_concat,
     .dtypes = dtypes::kAll},
    // concat(split(x)) -> x
    {.name = "concat.of_split",
     .before = "ys... = split[axis=k](x); c = concat[axis=k](ys...)",
     .after = "c = x",
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // split([x, y, z]) -> x, [y, z]
    {.name = "split.of_concat",
     .before = "ys... = split[axis=k](x)",
     .after = "where x = concat[axis=k](us...): ys = us, or concats of them",
     .kind = shrinks,
     .guard_doc = "x is a concat along the same axis, and every cut falls between two of its inputs",
     .guard = [](const RuleMatch& match) { return !inputs_of_pieces(match).empty(); },
     .build = take_inputs,
     .dtypes = dtypes::kAll},
    // a, split(b) where a, b = split(x) -> split(x)
    {.name = "split.flatten",
     .before = "ys... = split[axis=k](x)",
     .after = "where us..., x = split[axis=k](u): us..., ys... = split[axis=k](u)",
     .kind = shrinks,
     .guard_doc = "x is a piece of a split along the same axis, and read here alone",
     .guard = [](const RuleMatch& match) { return outer_split(match).is_valid(); },
     .build = flatten_split,
     .dtypes = dtypes::kAll},
    // f(a), f(b) where a, b = split(x) -> split(f(x))
    {.name = "split.unary_before",
     .before = "ys... = split[axis=k](x)",
     .after = "where rs = f(ys): u = f(x); rs... = split[axis=k](u)",
     .kind = shrinks,
     .guard_doc = "all ys are read once, by the same elementwise op with one input",
     .guard = [](const RuleMatch& match) { return !unary_readers(match).empty(); },
     .build = split_after_unary,
     .dtypes = dtypes::kAll},
    // a + c, b + d where a, b = split(x) -> split(x + [c, d])
    {.name = "split.binary_before",
     .before = "ys... = split[axis=k](x)",
     .after = "where rs = f(ys, ws): w = concat[axis=k](ws...); u = f(x, w); rs... = split[axis=k](u)",
     .kind = shrinks,
     .guard_doc =
         "all ys are read once, by the same elementwise op with two inputs that keeps their shape; what they are "
         "combined with are weights with the extent of the piece along k, or one weight that does not vary "
         "along k",
     .guard = [](const RuleMatch& match) { return !binary_readers(match).empty(); },
     .build = split_after_binary,
     .dtypes = dtypes::kAll},
    // f(a, c), f(b, d) where a, b = split(x) and c, d = split(z) -> split(f(x, z))
    {.name = "split.pairs_before",
     .before = "ys... = split[axis=k](x)",
     .after = "where zs... = split[axis=k](z), rs = f(ys, zs): u = f(x, z); rs... = split[axis=k](u)",
     .kind = shrinks,
     .guard_doc = "all ys are read once, by the same elementwise op with two inputs, together with the same piece of "
                  "another split with the same cuts, read there alone",
     .guard = [](const RuleMatch& match) { return paired_readers(match).has_value(); },
     .build = split_after_pairs,
     .dtypes = dtypes::kAll},
    // f(x), f(y), ... where x, y = split(u): the way back: split(f(u)) -> f(split(u))
    {.name = "split.unary_behind",
     .before = "u = unary<f>(x); ys... = split[axis=k](u)",
     .after = "us... = split[axis=k](x); ys = f(us)",
     .guard_doc = "two pieces or more",
     .guard = [](const RuleMatch& match) { return match.list("ys").size() > 1; },
     .build =
         [](RuleBuilder& builder) {
           const int64_t axis = builder.match().integer("k");
           const auto sizes = extents_along(builder.graph(), builder.match().list("ys"), axis);
           std::vector<ValueId> results;
           for (const ValueId piece : builder.split(builder.value("x"), sizes, axis)) {
             results.push_back(builder.add_like(builder.match().op_node("f"), {piece}));
           }
           return results;
         },
     .dtypes = dtypes::kAll},
};

}  // namespace

std::span<const Rule> concat_rules() { return kRules; }

}  // namespace autograph
