// Rules that move transposes and reshapes: past elementwise ops and each other, through products and concats. Exact.
#include <algorithm>
#include <numeric>

#include "ops/defs.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// ---- Transposes ---------------------------------------------------------------------------------------------------

std::vector<ValueId> compose(RuleBuilder& builder) {
  const std::vector<int64_t>& first = builder.match().integers("p");
  std::vector<int64_t> perm;
  for (const int64_t axis : builder.match().integers("q")) perm.push_back(first[static_cast<size_t>(axis)]);
  if (std::is_sorted(perm.begin(), perm.end())) return {builder.value("x")};
  return {builder.transpose(builder.value("x"), perm)};
}

// Does the permutation exchange the last two axes and leave the others?
bool swaps_matrices(const std::vector<int64_t>& perm) {
  const size_t rank = perm.size();
  if (rank < 2) return false;
  for (size_t axis = 0; axis + 2 < rank; ++axis) {
    if (perm[axis] != static_cast<int64_t>(axis)) return false;
  }
  return perm[rank - 2] == static_cast<int64_t>(rank) - 1;
}

std::vector<int64_t> matrix_swap(size_t rank) {
  std::vector<int64_t> perm(rank);
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

bool can_transpose_product(const RuleMatch& match) {
  return swaps_matrices(match.integers("p")) && match.integers("p") == match.integers("q");
}

bool can_transpose_operands(const RuleMatch& match) {
  return swaps_matrices(match.integers("p")) && match.dims("a").size() >= 2 && match.dims("b").size() >= 2;
}

std::vector<ValueId> transpose_operands(RuleBuilder& builder) {
  const ValueId a = builder.transpose(builder.value("a"), matrix_swap(builder.match().dims("a").size()));
  const ValueId b = builder.transpose(builder.value("b"), matrix_swap(builder.match().dims("b").size()));
  return {builder.add(matmul_def(), {b, a})};
}

// The transposes in front of a concat, when all are the same and read here alone.
std::vector<NodeId> transposes_joined(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const std::vector<ValueId> values = match.list("xs");
  const NodeId first = graph.value(values.front()).producer();
  return makers_of(graph, values, [&](const Node& node) {
    return &node.op() == &transpose_def() && node.attributes().contains("perm") && same_op(graph.node(first), node);
  });
}

std::vector<ValueId> transpose_behind_concat(RuleBuilder& builder) {
  const std::vector<NodeId> nodes = transposes_joined(builder.match());
  const std::vector<int64_t> perm = builder.graph().node(nodes.front()).attributes().integers("perm");
  builder.include(nodes);
  const int64_t axis = perm[static_cast<size_t>(builder.match().integer("k"))];
  return {builder.transpose(builder.concat(inputs_of(builder.graph(), nodes), axis), perm)};
}

// split(transpose(x)) as transposes of split(x).
std::vector<ValueId> transpose_behind_split(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  const std::vector<int64_t> perm = match.integers("p");
  const auto axis = static_cast<size_t>(match.integer("k"));
  const std::vector<int64_t> sizes = extents_along(builder.graph(), match.list("ys"), match.integer("k"));
  std::vector<ValueId> results;
  for (const ValueId piece : builder.split(builder.value("x"), sizes, perm[axis])) {
    results.push_back(builder.transpose(piece, perm));
  }
  return results;
}

// ---- Reshapes -----------------------------------------------------------------------------------------------------

bool can_reshape_result(const RuleMatch& match) { return same_dims(match, "x", "y") && same_dims(match, "s", "t"); }

std::vector<ValueId> reshape_result(RuleBuilder& builder) {
  const ValueId joined = builder.add_like(builder.match().op_node("f"), {builder.value("x"), builder.value("y")});
  return {builder.reshape(joined, builder.match().dims("v"))};
}

// A product of rows that a reshape has put together: [a, b, k] as [a b, k].
bool keeps_last_axis(const Dims& a, const Dims& b) { return a.size() >= 2 && b.size() >= 2 && a.back() == b.back(); }

bool can_move_behind_product(const RuleMatch& match) {
  return keeps_last_axis(match.dims("x"), match.dims("r")) && match.dims("w").size() == 2;
}

std::vector<ValueId> reshape_behind_product(RuleBuilder& builder) {
  const ValueId product = builder.add(matmul_def(), {builder.value("x"), builder.value("w")});
  return {builder.reshape(product, builder.match().dims("m"))};
}

const Rule kRules[] = {
    // transpose(transpose(x)) -> transpose(x), or x
    {.name = "transpose.compose",
     .before = "t = transpose[perm=p](x); u = transpose[perm=q](t)",
     .after = "u = transpose(x), by both permutations",
     .kind = shrinks,
     .build = compose,
     .dtypes = dtypes::kAll},
    // f(transpose(x)) -> transpose(f(x))
    {.name = "transpose.unary_before",
     .before = "t = transpose[perm=p](x); y = unary<f>(t)",
     .after = "u = unary<f>(x); y = transpose[perm=p](u)",
     .kind = canonicalizes,
     .dtypes = dtypes::kAll},
    // transpose(f(x)) -> f(transpose(x))
    {.name = "transpose.unary_behind",
     .before = "u = unary<f>(x); y = transpose[perm=p](u)",
     .after = "t = transpose[perm=p](x); y = unary<f>(t)",
     .kind = canonicalizes,
     .dtypes = dtypes::kAll},
    // f(transpose(x), transpose(y)) -> transpose(f(x, y))
    {.name = "transpose.join_binary",
     .before = "s = transpose[perm=p](x); t = transpose[perm=p](y); v = binary<f>(s, t)",
     .after = "u = binary<f>(x, y); v = transpose[perm=p](u)",
     .kind = shrinks,
     .guard_doc = "x and y have the same shape",
     .guard = x_y_agree,
     .dtypes = dtypes::kAll},
    // transpose(f(x, y)) -> f(transpose(x), transpose(y))
    {.name = "transpose.part_binary",
     .before = "u = binary<f>(x, y); v = transpose[perm=p](u)",
     .after = "s = transpose[perm=p](x); t = transpose[perm=p](y); v = binary<f>(s, t)",
     .guard_doc = "x and y have the same shape",
     .guard = x_y_agree,
     .dtypes = dtypes::kAll},
    // A^T B^T -> (B A)^T
    {.name = "transpose.product_of_transposed",
     .before = "s = transpose[perm=p](a); t = transpose[perm=q](b); m = matmul(s, t)",
     .after = "u = matmul(b, a); m = transpose[perm=p](u)",
     .kind = shrinks,
     .guard_doc = "both exchange the last two axes of tensors of the same rank",
     .guard = can_transpose_product},
    // (A B)^T -> B^T A^T
    {.name = "transpose.transposed_product",
     .before = "m = matmul(a, b); t = transpose[perm=p](m)",
     .after = "s = transpose(a); u = transpose(b); t = matmul(u, s)",
     .guard_doc = "a and b have rank 2 or more; p exchanges the last two axes",
     .guard = can_transpose_operands,
     .build = transpose_operands},
    // [x^T, y^T, ...] -> [x, y, ...]^T
    {.name = "transpose.behind_concat",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = transpose[perm=p](us): u = concat[axis=p[k]](us...); c = transpose[perm=p](u)",
     .kind = shrinks,
     .guard_doc = "all xs are transposes with the same permutation, which is given, and read here alone",
     .guard = [](const RuleMatch& match) { return !transposes_joined(match).empty(); },
     .build = transpose_behind_concat,
     .dtypes = dtypes::kAll},
    // split(x^T) -> split(x)^T
    {.name = "transpose.behind_split",
     .before = "t = transpose[perm=p](x); ys... = split[axis=k](t)",
     .after = "us... = split[axis=p[k]](x); ys = transpose[perm=p](us)",
     .build = transpose_behind_split,
     .dtypes = dtypes::kAll},

    // reshape(reshape(x)) -> reshape(x)
    {.name = "reshape.compose",
     .before = "r = reshape[allowzero=a](x, $s); q = reshape[allowzero=b](r, $t)",
     .after = "q = reshape(x, extents of q)",
     .kind = shrinks,
     .build = [](RuleBuilder& builder) -> std::vector<ValueId> {
       return {builder.reshape(builder.value("x"), builder.match().dims("q"))};
     },
     .dtypes = dtypes::kAll},
    // reshape(x) to the shape of x -> x
    {.name = "reshape.remove",
     .before = "r = reshape[allowzero=a](x, $s)",
     .after = "r = x",
     .kind = shrinks,
     .guard_doc = "x and r have the same shape",
     .guard = [](const RuleMatch& match) { return same_dims(match, "x", "r"); },
     .dtypes = dtypes::kAll},
    // f(reshape(x)) -> reshape(f(x))
    {.name = "reshape.unary_before",
     .before = "r = reshape[allowzero=a](x, $s); y = unary<f>(r)",
     .after = "u = unary<f>(x); y = reshape[allowzero=a](u, $s)",
     .kind = canonicalizes,
     .dtypes = dtypes::kAll},
    // reshape(f(x)) -> f(reshape(x))
    {.name = "reshape.unary_behind",
     .before = "u = unary<f>(x); y = reshape[allowzero=a](u, $s)",
     .after = "r = reshape[allowzero=a](x, $s); y = unary<f>(r)",
     .kind = canonicalizes,
     .dtypes = dtypes::kAll},
    // f(reshape(x), reshape(y)) -> reshape(f(x, y))
    {.name = "reshape.join_binary",
     .before = "s = reshape[allowzero=a](x, $p); t = reshape[allowzero=b](y, $q); v = binary<f>(s, t)",
     .after = "u = binary<f>(x, y); v = reshape(u, extents of v)",
     .kind = shrinks,
     .guard_doc = "x and y have the same shape, and so have s and t",
     .guard = can_reshape_result,
     .build = reshape_result,
     .dtypes = dtypes::kAll},
    // reshape(x) W -> reshape(x W)
    {.name = "reshape.behind_product",
     .before = "r = reshape[allowzero=a](x, $s); m = matmul(r, $w)",
     .after = "u = matmul(x, w); m = reshape(u, extents of m)",
     .kind = canonicalizes,
     .guard_doc = "x has the last extent of r; both have rank 2 or more; w is a matrix",
     .guard = can_move_behind_product,
     .build = reshape_behind_product},
};

}  // namespace

std::span<const Rule> transpose_rules() { return kRules; }

}  // namespace autograph
