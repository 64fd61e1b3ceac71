// Rules that move slices to where less is computed, and that make one split, or nothing, of several of them. Exact.
#include <algorithm>

#include "ops/defs.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/families/slice_form.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// The form of the slice that is statement `statement` of the pattern.
std::optional<SliceForm> form_of(const RuleMatch& match, size_t statement) {
  return slice_form(match.graph(), match.nodes()[statement]);
}

template <size_t kStatement>
bool has_form(const RuleMatch& match) {
  return form_of(match, kStatement).has_value();
}

// ---- Slices of slices and past elementwise ops ----------------------------------------------------------------------

std::vector<ValueId> compose(RuleBuilder& builder) {
  return {add_slice(builder, builder.value("x"), composed(*form_of(builder.match(), 0), *form_of(builder.match(), 1)))};
}

std::vector<ValueId> part_binary(RuleBuilder& builder) {
  const SliceForm form = *form_of(builder.match(), 1);
  std::vector<ValueId> operands;
  for (const char* name : {"x", "y"}) {
    const ValueId operand = builder.value(name);
    operands.push_back(add_slice(builder, operand, form_of_operand(form, builder.dims(operand))));
  }
  return {builder.add_like(builder.match().op_node("f"), operands)};
}

// The operands have one shape and lose the same.
bool can_join_binary(const RuleMatch& match) {
  const auto form = form_of(match, 0);
  return form && match.dims("x") == match.dims("y") && form == form_of(match, 1);
}

std::vector<ValueId> join_binary(RuleBuilder& builder) {
  const SliceForm form = *form_of(builder.match(), 0);
  const ValueId whole = builder.add_like(builder.match().op_node("f"), {builder.value("x"), builder.value("y")});
  return {add_slice(builder, whole, form)};
}

// ---- Slices and transposes ------------------------------------------------------------------------------------------

std::vector<ValueId> slice_before_transpose(RuleBuilder& builder) {
  const SliceForm form = *form_of(builder.match(), 1);
  const std::vector<int64_t>& perm = builder.match().integers("p");
  SliceForm moved(form.size());
  for (size_t axis = 0; axis < form.size(); ++axis) moved[static_cast<size_t>(perm[axis])] = form[axis];
  return {builder.transpose(add_slice(builder, builder.value("x"), moved), perm)};
}

std::vector<ValueId> slice_behind_transpose(RuleBuilder& builder) {
  const SliceForm form = *form_of(builder.match(), 0);
  const std::vector<int64_t>& perm = builder.match().integers("p");
  SliceForm moved;
  for (const int64_t axis : perm) moved.push_back(form[static_cast<size_t>(axis)]);
  return {add_slice(builder, builder.transpose(builder.value("x"), perm), moved)};
}

// ---- Slices of products ---------------------------------------------------------------------------------------------

bool can_slice_operands(const RuleMatch& match) {
  return has_form<1>(match) && match.dims("w").size() == 2 && match.dims("x").size() >= 2;
}

// Rows of the product are rows of x, columns are columns of w.
std::vector<ValueId> slice_operands(RuleBuilder& builder) {
  const SliceForm form = *form_of(builder.match(), 1);
  SliceForm rows = whole_form(builder.match().dims("x"));
  std::copy(form.begin(), form.end() - 1, rows.begin());
  SliceForm columns = whole_form(builder.match().dims("w"));
  columns.back() = form.back();
  return {builder.add(matmul_def(),
                      {add_slice(builder, builder.value("x"), rows), add_slice(builder, builder.value("w"), columns)})};
}

// Images and channels, nothing else.
bool can_slice_channels(const RuleMatch& match) {
  const auto form = form_of(match, 1);
  if (!form) return false;
  return std::all_of(form->begin() + 2, form->end(), [](const SliceAxis& axis) { return axis.is_whole(); });
}

std::vector<ValueId> slice_channels(RuleBuilder& builder) {
  const SliceForm form = *form_of(builder.match(), 1);
  const ConvForm conv = conv_form(builder.graph(), builder.match().nodes()[0]);
  SliceForm images = whole_form(builder.dims(conv.x));
  images[0] = form[0];
  SliceForm filters = whole_form(builder.dims(conv.w));
  filters[0] = form[1];
  const ValueId x = add_slice(builder, conv.x, images);
  const ValueId w = add_slice(builder, conv.w, filters);
  const ValueId bias = conv.b.is_valid() ? add_slice(builder, conv.b, {form[1]}) : ValueId{};
  return {add_conv(builder, conv, x, w, bias, 1)};
}

bool can_take_strides(const RuleMatch& match) {
  if (!has_form<0>(match)) return false;
  const ConvForm conv = conv_form(match.graph(), match.nodes()[1]);
  return all_are(conv.kernel, 1) && all_are(conv.pads, 0) && !all_are(conv.strides, 1);
}

std::vector<ValueId> take_strides(RuleBuilder& builder) {
  ConvForm conv = conv_form(builder.graph(), builder.match().nodes()[1]);
  SliceForm pixels = whole_form(builder.dims(conv.x));
  for (size_t k = 0; k < conv.strides.size(); ++k) {
    SliceAxis& axis = pixels[k + 2];
    axis.count = (axis.extent - 1) / conv.strides[k] + 1;
    axis.step = axis.count > 1 ? conv.strides[k] : 1;
    conv.strides[k] = 1;
  }
  const SliceForm form = composed(*form_of(builder.match(), 0), pixels);
  return {add_conv(builder, conv, add_slice(builder, builder.value("x"), form), conv.w, conv.b, conv.group)};
}

// ---- Slices of concats, concats of slices ---------------------------------------------------------------------------

// What a slice of a concat takes of it: which of the inputs, and what of each.
struct TakenPiece {
  ValueId value;
  SliceForm form;
};

// Empty when the slice goes along another axis, jumps, or takes parts of more than one input.
std::vector<TakenPiece> pieces_of_concat(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const NodeId concat = producer_of_op(graph, match.value("x"), concat_def());
  const auto form = form_of(match, 0);
  if (!concat.is_valid() || !form) return {};
  const auto axis = only_axis(*form);
  const auto joined = static_cast<size_t>(axis_of(graph, concat));
  if (!axis || *axis != joined || !(*form)[joined].is_range()) return {};
  const SliceAxis& range = (*form)[joined];
  std::vector<TakenPiece> pieces;
  int64_t first = 0;
  size_t parts = 0;
  for (const ValueId input : graph.node(concat).inputs()) {
    if (!graph.type(input).is_static()) return {};
    SliceForm piece = whole_form(dims_of(graph, input));
    SliceAxis& taken = piece[joined];
    const int64_t begin = std::max(range.first, first);
    const int64_t end = std::min(range.end(), first + taken.extent);
    if (begin < end) {
      taken.first = begin - first;
      taken.count = end - begin;
      parts += taken.is_whole() ? 0 : 1;
      pieces.push_back({input, piece});
    }
    first += taken.extent;
  }
  return parts < 2 ? pieces : std::vector<TakenPiece>{};
}

std::vector<ValueId> take_pieces(RuleBuilder& builder) {
  const NodeId concat = producer_of_op(builder.graph(), builder.value("x"), concat_def());
  const int64_t axis = builder.graph().node(concat).attributes().integer("axis");
  const std::vector<TakenPiece> pieces = pieces_of_concat(builder.match());
  builder.include(concat);
  std::vector<ValueId> values;
  for (const TakenPiece& piece : pieces) values.push_back(add_slice(builder, piece.value, piece.form));
  return {builder.concat(values, axis)};
}

// One slice in place of the slices in front of a concat, when they lie side by side in one value.
struct JoinedSlices {
  std::vector<NodeId> nodes;
  ValueId whole;
  SliceForm form;
};

std::optional<JoinedSlices> joined_slices(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const auto axis = static_cast<size_t>(match.integer("k"));
  JoinedSlices joined;
  for (const ValueId value : match.list("xs")) {
    const NodeId node = producer_of_op(graph, value, slice_def());
    if (!node.is_valid() || !has_one_reader(graph, value) || !graph.type(graph.node(node).input(0)).is_static()) {
      return std::nullopt;
    }
    const ValueId whole = graph.node(node).input(0);
    const auto form = slice_form(graph, node);
    if (!form || !(*form)[axis].is_range()) return std::nullopt;
    if (joined.nodes.empty()) {
      joined.whole = whole;
      joined.form = *form;
    } else {
      SliceForm next = joined.form;
      next[axis].first = joined.form[axis].end();
      next[axis].count = (*form)[axis].count;
      if (whole != joined.whole || *form != next) return std::nullopt;
      joined.form[axis].count += next[axis].count;
    }
    joined.nodes.push_back(node);
  }
  return joined.nodes.size() > 1 ? std::optional(joined) : std::nullopt;
}

std::vector<ValueId> join_slices(RuleBuilder& builder) {
  const JoinedSlices joined = *joined_slices(builder.match());
  builder.include(joined.nodes);
  return {add_slice(builder, joined.whole, joined.form)};
}

// ---- Slices that share out a value ----------------------------------------------------------------------------------

// The slices of x along the axis of the matched ones, in order, when each begins where the one before ends and nothing
// is left over.
std::vector<NodeId> covering_slices(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const ValueId x = match.value("x");
  const auto first = form_of(match, 0);
  const auto axis = first ? only_axis(*first) : std::nullopt;
  if (!axis) return {};
  const auto is_alike = [&](NodeId node) {
    const auto form = slice_form(graph, node);
    return form && only_axis(*form) == axis && (*form)[*axis].is_range();
  };
  const NodeId a = match.nodes()[0];
  const NodeId b = match.nodes()[1];
  if (!is_alike(a) || !is_alike(b) || !are_first_two(graph, x, 0, a, b, is_alike)) return {};
  std::vector<std::pair<SliceAxis, NodeId>> parts;
  for (const NodeId node : readers_of(graph, x, slice_def(), 0)) {
    if (is_alike(node)) parts.emplace_back((*slice_form(graph, node))[*axis], node);
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& left, const auto& right) { return left.first.first < right.first.first; });
  std::vector<NodeId> nodes;
  int64_t next = 0;
  for (const auto& [part, node] : parts) {
    if (part.first != next) return {};
    next = part.end();
    nodes.push_back(node);
  }
  return next == (*first)[*axis].extent ? nodes : std::vector<NodeId>{};
}

std::vector<ValueId> split_instead(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const RuleMatch& match = builder.match();
  const std::vector<NodeId> nodes = covering_slices(match);
  const size_t axis = *only_axis(*form_of(match, 0));
  builder.include(nodes);
  return builder.hand_out_pieces(outputs_of(graph, nodes), builder.value("x"), static_cast<int64_t>(axis));
}

const Rule kRules[] = {
    // slice(slice(x)) -> slice(x)
    {.name = "slice.compose",
     .before = "r = slice(x, s...); q = slice(r, t...)",
     .after = "q = slice(x), by both",
     .kind = shrinks,
     .guard_doc = "positions are constants",
     .guard = [](const RuleMatch& match) { return has_form<0>(match) && has_form<1>(match); },
     .build = compose,
     .dtypes = dtypes::kAll},
    // slice(f(x)) -> f(slice(x))
    {.name = "slice.unary_behind",
     .before = "u = unary<f>(x); y = slice(u, s...)",
     .after = "r = slice(x, s...); y = unary<f>(r)",
     .kind = shrinks,
     .dtypes = dtypes::kAll},
    // f(slice(x)) -> slice(f(x))
    {.name = "slice.unary_before",
     .before = "r = slice(x, s...); y = unary<f>(r)",
     .after = "u = unary<f>(x); y = slice(u, s...)",
     .dtypes = dtypes::kAll},
    // slice(f(x, y)) -> f(slice(x), slice(y))
    {.name = "slice.part_binary",
     .before = "u = binary<f>(x, y); v = slice(u, s...)",
     .after = "a = slice(x, s...); b = slice(y, s...); v = binary<f>(a, b)",
     .guard_doc = "positions are constants; operands stay whole where they broadcast",
     .guard = has_form<1>,
     .build = part_binary,
     .dtypes = dtypes::kAll},
    // f(slice(x), slice(y)) -> slice(f(x, y))
    {.name = "slice.join_binary",
     .before = "a = slice(x, s...); b = slice(y, t...); v = binary<f>(a, b)",
     .after = "u = binary<f>(x, y); v = slice(u, s...)",
     .guard_doc = "positions are constants and the same; x and y have the same shape",
     .guard = can_join_binary,
     .build = join_binary,
     .dtypes = dtypes::kAll},
    // slice(x^T) -> slice(x)^T
    {.name = "slice.before_transpose",
     .before = "t = transpose[perm=p](x); y = slice(t, s...)",
     .after = "r = slice(x), along the axes where those of t were; y = transpose[perm=p](r)",
     .kind = shrinks,
     .guard_doc = "positions are constants",
     .guard = has_form<1>,
     .build = slice_before_transpose,
     .dtypes = dtypes::kAll},
    // slice(x)^T -> slice(x^T)
    {.name = "slice.behind_transpose",
     .before = "r = slice(x, s...); y = transpose[perm=p](r)",
     .after = "t = transpose[perm=p](x); y = slice(t), along the axes where those of r are now",
     .guard_doc = "positions are constants",
     .guard = has_form<0>,
     .build = slice_behind_transpose,
     .dtypes = dtypes::kAll},
    // slice(x W) -> slice(x) slice(W)
    {.name = "slice.of_product",
     .before = "m = matmul(x, $w); y = slice(m, s...)",
     .after = "a = slice(x), its rows; b = slice(w), its columns; y = matmul(a, b)",
     .kind = shrinks,
     .guard_doc = "positions are constants; x has rank 2 or more; w is a matrix",
     .guard = can_slice_operands,
     .build = slice_operands},
    // slice(conv(x, w)) -> conv(x, slice(w))
    {.name = "slice.of_conv",
     .before = "c = conv[strides=e, pads=p, dilations=d, group=1](x, $w, b...); y = slice(c, s...)",
     .after =
         "u = slice(x), its images; v = slice(w), its filters; y = conv[strides=e, pads=p, dilations=d](u, v, b...)",
     .outputs = {"y"},
     .kind = shrinks,
     .guard_doc = "positions are constants; pixels are not sliced",
     .guard = can_slice_channels,
     .build = slice_channels},
    // conv(slice(x), w) with strides -> conv(slice(x), w), where the slice jumps
    {.name = "slice.take_strides",
     .before = "r = slice(x, s...); y = conv[strides=e, pads=p, dilations=d, group=g](r, w, b...)",
     .after = "u = slice(x), its steps times e; y = conv[group=g](u, w, b...)",
     .kind = shrinks,
     .guard_doc = "positions are constants; kernels have one tap and no pads, and strides are not all 1",
     .guard = can_take_strides,
     .build = take_strides},
    // slice([x, y, z]) -> [y, slice(z)]
    {.name = "slice.of_concat",
     .before = "y = slice(x, s...)",
     .after = "where x = concat[axis=k](us...): y = a concat of some of us, one of them perhaps a slice",
     .kind = shrinks,
     .guard_doc = "x is a concat along the axis of the slice, which takes neighbours, and all of each input but one",
     .guard = [](const RuleMatch& match) { return !pieces_of_concat(match).empty(); },
     .build = take_pieces,
     .dtypes = dtypes::kAll},
    // [x[a:b], x[b:c]] -> x[a:c]
    {.name = "concat.of_slices",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = slices of u side by side: c = slice(u), or u",
     .kind = shrinks,
     .guard_doc =
         "all xs are slices of the same value, read here alone; each begins along k where the one before ends, "
         "and they are the same along other axes",
     .guard = [](const RuleMatch& match) { return joined_slices(match).has_value(); },
     .build = join_slices,
     .dtypes = dtypes::kAll},
    // x[:a], x[a:b], x[b:] -> split(x)
    {.name = "slice.to_split",
     .before = "a = slice(x, s...); b = slice(x, t...)",
     .after = "a, b = split[axis=k](x), in their order",
     .outputs = {"a", "b"},
     .kind = canonicalizes,
     .guard_doc = "a, b and the other slices of x along one axis share out x: nothing is left over or taken twice",
     .guard = [](const RuleMatch& match) { return !covering_slices(match).empty(); },
     .build = split_instead,
     .dtypes = dtypes::kAll},
};

}  // namespace

std::span<const Rule> slice_rules() { return kRules; }

}  // namespace autograph
