// Rules about matrix products. Merged products take all products of a kind at once: 60 products of a recurrent net with
// three weights become three.
#include <algorithm>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

bool are_matrices(const RuleMatch& match, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) { return match.dims(name).size() >= 2; });
}

int64_t rank_of(const RuleMatch& match, std::string_view name) { return static_cast<int64_t>(match.dims(name).size()); }

bool can_regroup(const RuleMatch& match) { return are_matrices(match, {"a", "b", "c"}); }

bool can_factor(const RuleMatch& match) { return are_matrices(match, {"a", "b", "c"}) && same_dims(match, "a", "b"); }

bool can_distribute(const RuleMatch& match) { return can_factor(match) && same_dims(match, "a", "s"); }

// ---- A B + C D -> [A C] [B; D] ------------------------------------------------------------------------------------

bool can_join_pair(const RuleMatch& match) {
  return are_matrices(match, {"a", "b", "c", "d"}) && same_dims(match, "s", "t") &&
         same_dims_but(match.dims("a"), match.dims("c"), rank_of(match, "a") - 1) &&
         same_dims_but(match.dims("b"), match.dims("d"), rank_of(match, "b") - 2);
}

std::vector<ValueId> join_pair(RuleBuilder& builder) {
  const ValueId left = builder.concat({builder.value("a"), builder.value("c")}, rank_of(builder.match(), "a") - 1);
  const ValueId right = builder.concat({builder.value("b"), builder.value("d")}, rank_of(builder.match(), "b") - 2);
  return {builder.add(matmul_def(), {left, right})};
}

// ---- Products that share the left side ----------------------------------------------------------------------------

bool has_weight_matrix(const Graph& graph, NodeId product) {
  const ValueId w = graph.node(product).input(1);
  return is_weight(graph, w) && graph.type(w).is_static() && graph.type(w).shape().rank() == 2;
}

// The products x w with a weight matrix w.
std::vector<NodeId> weighted_products(const Graph& graph, ValueId x) {
  std::vector<NodeId> products = readers_of(graph, x, matmul_def(), 0);
  std::erase_if(products, [&](NodeId product) { return !has_weight_matrix(graph, product); });
  return products;
}

// Weights are no one's results, so that all products of x are independent.
bool leads_weighted_products(const RuleMatch& match) {
  const Graph& graph = match.graph();
  if (match.dims("v").size() != 2 || match.dims("w").size() != 2) return false;
  return are_first_two(graph, match.value("x"), 0, match.nodes()[0], match.nodes()[1],
                       [&](NodeId product) { return has_weight_matrix(graph, product); });
}

std::vector<ValueId> merge_columns(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const std::vector<NodeId> products = weighted_products(graph, builder.value("x"));
  builder.include(products);
  const ValueId weights = builder.concat(inputs_of(graph, products, 1), 1);
  const ValueId joined = builder.add(matmul_def(), {builder.value("x"), weights});
  return builder.hand_out_pieces(outputs_of(graph, products), joined, rank_of(builder.match(), "s") - 1);
}

// As above for two products with anything on the right.
bool can_merge_values(const RuleMatch& match) {
  const Graph& graph = match.graph();
  if (is_weight(graph, match.value("v")) && is_weight(graph, match.value("w"))) return false;
  return are_matrices(match, {"x", "v", "w"}) &&
         same_dims_but(match.dims("v"), match.dims("w"), rank_of(match, "v") - 1);
}

std::vector<ValueId> merge_values(RuleBuilder& builder) {
  const int64_t axis = rank_of(builder.match(), "v") - 1;
  const ValueId right = builder.concat({builder.value("v"), builder.value("w")}, axis);
  const ValueId joined = builder.add(matmul_def(), {builder.value("x"), right});
  return builder.split(joined, {builder.match().dims("s").back(), builder.match().dims("t").back()},
                       rank_of(builder.match(), "s") - 1);
}

// ---- Products that share a weight on the right --------------------------------------------------------------------

// The axis along which left sides with these dims can be joined: rows where possible; -1: none.
int64_t joining_axis(const Dims& a, const Dims& b) {
  if (a.size() < 2 || a.size() != b.size()) return -1;
  const auto rows = static_cast<int64_t>(a.size()) - 2;
  if (same_dims_but(a, b, rows)) return rows;
  return same_dims_but(a, b, 0) ? 0 : -1;
}

// Can the left sides of both products be joined along `axis`?
bool are_joinable(const Graph& graph, NodeId a, NodeId b, int64_t axis) {
  const ValueId x = graph.node(a).input(0);
  const ValueId y = graph.node(b).input(0);
  return graph.type(x).is_static() && graph.type(y).is_static() && same_shape_but(graph, x, y, axis);
}

// The products of `first` and others with the same weight whose left sides can be joined along the same axis.
std::vector<NodeId> joinable_products(const Graph& graph, NodeId first, int64_t axis) {
  std::vector<NodeId> products = readers_of(graph, graph.node(first).input(1), matmul_def(), 1);
  std::erase_if(products, [&](NodeId product) { return !are_joinable(graph, first, product, axis); });
  return products;
}

bool leads_joinable_products(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const NodeId a = match.nodes()[0];
  const NodeId b = match.nodes()[1];
  if (b < a) return false;
  const int64_t axis = joining_axis(match.dims("x"), match.dims("y"));
  if (axis < 0 || match.dims("w").size() != 2) return false;
  const auto would_be_taken = [&](NodeId product) {
    return are_joinable(graph, a, product, axis) && (product < a || are_independent(graph, a, product));
  };
  return are_independent(graph, a, b) && are_first_two(graph, match.value("w"), 1, a, b, would_be_taken);
}

std::vector<ValueId> merge_rows(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const NodeId first = builder.match().nodes()[0];
  const int64_t axis = joining_axis(builder.match().dims("x"), builder.match().dims("y"));
  const std::vector<NodeId> products = independent_group(graph, joinable_products(graph, first, axis));
  builder.include(products);
  const ValueId inputs = builder.concat(inputs_of(graph, products), axis);
  const ValueId joined = builder.add(matmul_def(), {inputs, builder.value("w")});
  return builder.hand_out_pieces(outputs_of(graph, products), joined, axis);
}

// ---- Products with bias: gemm -------------------------------------------------------------------------------------

bool have_vector_biases(const RuleMatch& match) {
  return match.dims("b") == Dims{match.dims("s").back()} && match.dims("c") == Dims{match.dims("t").back()};
}

std::vector<ValueId> merge_gemm(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  const int64_t transposed = match.integer("q");
  const ValueId weights = builder.concat({builder.value("v"), builder.value("w")}, transposed != 0 ? 0 : 1);
  const ValueId bias = builder.concat({builder.value("b"), builder.value("c")}, 0);
  const ValueId joined = builder.add(gemm_def(), {builder.value("x"), weights, bias},
                                     {{"transA", match.integer("p")}, {"transB", transposed}});
  return builder.split(joined, {match.dims("s").back(), match.dims("t").back()}, 1);
}

// ---- Factors and addends of the left side -------------------------------------------------------------------------

bool is_single(const RuleMatch& match, std::string_view name) { return element_count(match.dims(name)) == 1; }

// Does `name` have nothing but the last axis, of extent `extent`?
bool is_row(const RuleMatch& match, std::string_view name, int64_t extent) {
  const Dims dims = match.dims(name);
  return !dims.empty() && dims.back() == extent && element_count(dims) == extent;
}

bool can_scale_weight(const RuleMatch& match) {
  const int64_t inner = match.dims("x").empty() ? 0 : match.dims("x").back();
  return same_dims(match, "x", "a") && match.dims("w").size() == 2 &&
         (is_single(match, "c") || is_row(match, "c", inner));
}

std::vector<ValueId> scale_weight(RuleBuilder& builder) {
  const Dims dims = is_single(builder.match(), "c") ? Dims{1, 1} : Dims{builder.match().dims("x").back(), 1};
  const ValueId factor = builder.reshape(builder.value("c"), dims);
  return {builder.add(matmul_def(), {builder.value("x"), builder.add(mul_def(), {builder.value("w"), factor})})};
}

bool can_scale_result(const RuleMatch& match) {
  return is_single(match, "c") && same_dims(match, "x", "a") && are_matrices(match, {"x", "y"});
}

bool can_shift_result(const RuleMatch& match) {
  return same_dims(match, "x", "a") && match.dims("x").size() >= 2 && match.dims("w").size() == 2 &&
         is_row(match, "b", match.dims("x").back());
}

std::vector<ValueId> shift_result(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  const ValueId row = builder.reshape(builder.value("b"), {1, match.dims("x").back()});
  const ValueId product = builder.add(matmul_def(), {row, builder.value("w")});
  const ValueId addend = builder.reshape(product, {match.dims("w").back()});
  return {builder.add(add_def(), {builder.add(matmul_def(), {builder.value("x"), builder.value("w")}), addend})};
}

// ---- Seven products for eight -------------------------------------------------------------------------------------

// Sums of quarters are read and written, which takes longer than the eighth product where an extent is small: on two
// cores with AVX2, products of 2048 x 2048 matrices gain a tenth, and those of 1024 x 1024 lose a fifteenth.
constexpr int64_t kLeastExtent = 1024;
constexpr int64_t kLeastWork = int64_t{1} << 32;  // multiplications

struct ProductExtents {
  int64_t rows, depth, columns;
};

ProductExtents product_extents(const RuleMatch& match) {
  const Dims x = match.dims("x");
  return {x[x.size() - 2], x.back(), match.dims("w").back()};
}

bool has_quarters(const RuleMatch& match) {
  if (!are_matrices(match, {"x"}) || match.dims("w").size() != 2) return false;
  const auto [rows, depth, columns] = product_extents(match);
  return rows % 2 == 0 && depth % 2 == 0 && columns % 2 == 0;
}

bool has_large_quarters(const RuleMatch& match) {
  const auto [rows, depth, columns] = product_extents(match);
  return std::min({rows, depth, columns}) >= kLeastExtent && rows * depth >= kLeastWork / columns;
}

// Winograd's form of Strassen's algorithm: four sums on the left, four of weights, which are computed ahead, and seven
// behind.
std::vector<ValueId> multiply_quarters(RuleBuilder& builder) {
  const auto quarters = [&](ValueId whole) {
    const Dims dims = builder.dims(whole);
    const auto axis = static_cast<int64_t>(dims.size()) - 2;
    const int64_t height = dims[dims.size() - 2] / 2, width = dims.back() / 2;
    std::vector<ValueId> result;
    for (const ValueId half : builder.split(whole, {height, height}, axis)) {
      for (const ValueId quarter : builder.split(half, {width, width}, axis + 1)) result.push_back(quarter);
    }
    return result;
  };
  const auto plus = [&](ValueId p, ValueId q) { return builder.add(add_def(), {p, q}); };
  const auto minus = [&](ValueId p, ValueId q) { return builder.add(sub_def(), {p, q}); };
  const auto times = [&](ValueId p, ValueId q) { return builder.add(matmul_def(), {p, q}); };
  const std::vector<ValueId> x = quarters(builder.value("x"));
  const std::vector<ValueId> w = quarters(builder.value("w"));
  const ValueId lower = plus(x[2], x[3]), cross = minus(lower, x[0]);
  const ValueId right = minus(w[1], w[0]), across = minus(w[3], right);
  const ValueId corner = times(x[0], w[0]);
  const ValueId middle = plus(corner, times(cross, across));
  const ValueId side = times(lower, right);
  const ValueId below = plus(middle, times(minus(x[0], x[2]), minus(w[3], w[1])));
  const std::vector<ValueId> y = {plus(corner, times(x[1], w[2])),
                                  plus(plus(middle, side), times(minus(x[1], cross), w[3])),
                                  minus(below, times(x[3], minus(across, w[2]))), plus(below, side)};
  const int64_t last = rank_of(builder.match(), "x") - 1;
  return {builder.concat({builder.concat({y[0], y[1]}, last), builder.concat({y[2], y[3]}, last)}, last - 1)};
}

// A sum of products that share a side.
Rule factor(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .kind = shrinks,
          .guard_doc = "a, b and c have rank 2 or more, a and b the same shape",
          .guard = can_factor};
}

// The way back.
Rule distribute(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .guard_doc = "a, b and c have rank 2 or more, a and b the same shape",
          .guard = can_distribute,
          // c = inf, a > -b > 0: inf becomes inf - inf
          .finite_only = true};
}

// Another order of the products in A B C.
Rule reassociate(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .guard_doc = "a, b and c have rank 2 or more",
          .guard = can_regroup,
          // inf and -inf, or 0 and inf, may meet in the new product where the old one has finite numbers
          .finite_only = true};
}

const Rule kRules[] = {
    // x w by quarters: seven products for eight
    {.name = "matmul.seven_products",
     .before = "y = matmul(x, $w)",
     .after = "y = the quarters of x w by Winograd's form of Strassen's algorithm: 7 products of quarters",
     .guard_doc = "x has rank 2 or more, w rank 2; their last two extents are even",
     .guard = has_quarters,
     .build = multiply_quarters,
     .dtypes = {DType::f32},
     // sums of quarters meet what a quarter alone does not
     .finite_only = true,
     .may_pay = has_large_quarters,
     .loses_digits = true},
    // (A B) C -> A (B C)
    reassociate("matmul.regroup_right", "s = matmul(a, b); t = matmul(s, c)", "s = matmul(b, c); t = matmul(a, s)"),
    // A (B C) -> (A B) C
    reassociate("matmul.regroup_left", "s = matmul(b, c); t = matmul(a, s)", "s = matmul(a, b); t = matmul(s, c)"),
    // A C + B C -> (A + B) C
    factor("matmul.factor_right", "s = matmul(a, c); t = matmul(b, c); v = add(s, t)",
           "s = add(a, b); v = matmul(s, c)"),
    // C A + C B -> C (A + B)
    factor("matmul.factor_left", "s = matmul(c, a); t = matmul(c, b); v = add(s, t)",
           "s = add(a, b); v = matmul(c, s)"),
    // A C - B C -> (A - B) C
    factor("matmul.factor_right_difference", "s = matmul(a, c); t = matmul(b, c); v = sub(s, t)",
           "s = sub(a, b); v = matmul(s, c)"),
    // C A - C B -> C (A - B)
    factor("matmul.factor_left_difference", "s = matmul(c, a); t = matmul(c, b); v = sub(s, t)",
           "s = sub(a, b); v = matmul(c, s)"),
    // (A + B) C -> A C + B C
    distribute("matmul.distribute_right", "s = add(a, b); v = matmul(s, c)",
               "s = matmul(a, c); t = matmul(b, c); v = add(s, t)"),
    // C (A + B) -> C A + C B
    distribute("matmul.distribute_left", "s = add(a, b); v = matmul(c, s)",
               "s = matmul(c, a); t = matmul(c, b); v = add(s, t)"),
    // A B + (A B) C -> A (B + B C)
    {.name = "matmul.factor_chain",
     .before = "s = matmul(a, b); t = matmul(s, c); v = add(s, t)",
     .after = "u = matmul(b, c); w = add(b, u); v = matmul(a, w)",
     .guard_doc = "a, b and c have rank 2 or more; products have the shapes of their left sides",
     .guard = [](const RuleMatch& match) { return can_regroup(match) && same_dims(match, "s", "t"); },
     // c = inf: the sum of A B comes first, then there is one inf, not inf - inf
     .finite_only = true},
    // A B + C D -> [A C] [B; D]
    {.name = "matmul.join_pair_sum",
     .before = "s = matmul(a, b); t = matmul(c, d); v = add(s, t)",
     .after = "x = concat[axis=-1](a, c); y = concat[axis=-2](b, d); v = matmul(x, y)",
     .guard_doc = "rank 2 or more; a and c differ in their last extent alone, b and d in their last but one",
     .guard = can_join_pair,
     .build = join_pair},
    // x V, x W, ... -> split(x [V W ...]): all products of x with weights
    {.name = "matmul.merge_columns",
     .before = "s = matmul(x, $v); t = matmul(x, $w)",
     .after = "u = concat[axis=1](v, w); m = matmul(x, u); s, t = split[axis=-1](m)",
     .outputs = {"s", "t"},
     .guard_doc = "weights are matrices; s and t are the first two of all such products of x, which are all merged",
     .guard = leads_weighted_products,
     .build = merge_columns},
    // x V, x W -> split(x [V W])
    {.name = "matmul.merge_columns_of_values",
     .before = "s = matmul(x, v); t = matmul(x, w)",
     .after = "u = concat[axis=-1](v, w); m = matmul(x, u); s, t = split[axis=-1](m)",
     .outputs = {"s", "t"},
     .guard_doc = "rank 2 or more; v and w differ in their last extent alone and are not both weights",
     .guard = can_merge_values,
     .build = merge_values},
    // x W, y W, ... -> split([x; y; ...] W): all products with the weight that do not depend on each other
    {.name = "matmul.merge_rows",
     .before = "s = matmul(x, $w); t = matmul(y, $w)",
     .after = "u = concat[axis=-2](x, y); m = matmul(u, w); s, t = split[axis=-2](m)",
     .outputs = {"s", "t"},
     .guard_doc =
         "w is a matrix; x and y have rank 2 or more and differ in one extent (not the last) alone; s and t are "
         "the first two of the independent products of this kind, which are all merged",
     .guard = leads_joinable_products,
     .build = merge_rows},
    // gemm(x, V, b), gemm(x, W, c) -> split(gemm(x, [V W], [b c]))
    {.name = "matmul.merge_gemm",
     .before = "s = gemm[alpha=1, beta=1, transA=p, transB=q](x, $v, $b);"
               " t = gemm[alpha=1, beta=1, transA=p, transB=q](x, $w, $c)",
     .after = "u = concat(v, w); d = concat[axis=0](b, c); m = gemm[transA=p, transB=q](x, u, d);"
              " s, t = split[axis=1](m)",
     .outputs = {"s", "t"},
     .guard_doc = "b and c have one element for each column",
     .guard = have_vector_biases,
     .build = merge_gemm},
    // (x c) W -> x (c W)
    {.name = "matmul.scale_weight",
     .before = "a = mul(x, $c); m = matmul(a, $w)",
     .after = "d = reshape(c); v = mul(w, d); m = matmul(x, v)",
     .kind = shrinks,
     .guard_doc = "c has one element or one for each element of the last axis of x, and leaves the shape of x; w is a "
                  "matrix",
     .guard = can_scale_weight,
     .build = scale_weight},
    // (x c) y -> (x y) c
    {.name = "matmul.scale_result",
     .before = "a = mul(x, $c); m = matmul(a, y)",
     .after = "p = matmul(x, y); m = mul(p, $c)",
     .kind = canonicalizes,
     .guard_doc = "c has one element and leaves the shape of x; x and y have rank 2 or more",
     .guard = can_scale_result},
    // (x y) c -> (x c) y
    {.name = "matmul.scale_operand",
     .before = "p = matmul(x, y); m = mul(p, $c)",
     .after = "a = mul(x, $c); m = matmul(a, y)",
     .kind = canonicalizes,
     .guard_doc = "c has one element and no more axes than x",
     .guard =
         [](const RuleMatch& match) {
           return is_single(match, "c") && rank_of(match, "c") <= rank_of(match, "x") &&
                  are_matrices(match, {"x", "y"});
         }},
    // (x + b) W -> x W + b W
    {.name = "matmul.shift_result",
     .before = "a = add(x, $b); m = matmul(a, $w)",
     .after = "p = matmul(x, w); c = matmul(b, w); m = add(p, c)",
     .kind = canonicalizes,
     .guard_doc =
         "x has rank 2 or more; b has one element for each element of the last axis of x, and leaves its shape; "
         "w is a matrix",
     .guard = can_shift_result,
     .build = shift_result},
};

}  // namespace

std::span<const Rule> matmul_rules() { return kRules; }

}  // namespace autograph
