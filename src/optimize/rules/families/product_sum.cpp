// Sums of products, and products that are put side by side. A mixture of experts that computes them all is such a sum:
// each expert's last product, times what the router gives it for each token, is a term. The terms become one long
// product, and the products in front of it, which read one value, one wide one.
#include <algorithm>
#include <optional>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/joint.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// x w with a weight matrix w, or (x w) r with a factor r for each row.
struct Term {
  NodeId product;
  NodeId scaled;  // invalid: no factor
  ValueId x, w, r;
};

bool is_weighted_product(const Graph& graph, const Node& product) {
  const ValueId x = product.input(0), w = product.input(1);
  if (!graph.type(x).is_static() || graph.type(x).shape().rank() < 2 || is_weight(graph, x)) return false;
  return is_weight(graph, w) && graph.type(w).is_static() && graph.type(w).shape().rank() == 2;
}

// Is `r` one number for each row of `product`, or for many of them?
bool is_row_factor(const Graph& graph, ValueId r, ValueId product) {
  if (!graph.type(r).is_static() || is_weight(graph, r)) return false;
  const Dims dims = dims_of(graph, r), whole = dims_of(graph, product);
  if (dims.empty() || dims.back() != 1 || dims.size() > whole.size()) return false;
  for (size_t back = 2; back <= dims.size(); ++back) {
    const int64_t extent = dims[dims.size() - back];
    if (extent != 1 && extent != whole[whole.size() - back]) return false;
  }
  return true;
}

std::optional<Term> term_of(const Graph& graph, ValueId value) {
  if (!has_one_reader(graph, value)) return std::nullopt;
  NodeId product = producer_of_op(graph, value, matmul_def());
  if (product.is_valid()) {
    if (!is_weighted_product(graph, graph.node(product))) return std::nullopt;
    return Term{product, {}, graph.node(product).input(0), graph.node(product).input(1), {}};
  }
  const NodeId scaled = producer_of_op(graph, value, mul_def());
  if (!scaled.is_valid()) return std::nullopt;
  for (const size_t slot : {0, 1}) {
    const ValueId whole = graph.node(scaled).input(slot), r = graph.node(scaled).input(1 - slot);
    product = producer_of_op(graph, whole, matmul_def());
    if (!product.is_valid() || !has_one_reader(graph, whole)) continue;
    if (!is_weighted_product(graph, graph.node(product))) continue;
    if (!graph.type(whole).is_static() || !is_row_factor(graph, r, whole)) continue;
    return Term{product, scaled, graph.node(product).input(0), graph.node(product).input(1), r};
  }
  return std::nullopt;
}

struct Terms {
  std::vector<Term> products;
  std::vector<ValueId> others;  // what is added to them
};

// The terms of sum(xs...) with the shape of the first product among them; nothing when there are less than two.
std::optional<Terms> terms_of(const RuleMatch& match) {
  const Graph& graph = match.graph();
  Terms terms;
  for (const ValueId value : match.list("xs")) {
    auto term = term_of(graph, value);
    if (term && !terms.products.empty()) {
      const ValueId first = terms.products.front().x;
      const auto last_axis = static_cast<int64_t>(dims_of(graph, first).size()) - 1;
      const bool fits = same_dims_but(dims_of(graph, first), dims_of(graph, term->x), last_axis) &&
                        dims_of(graph, terms.products.front().w)[1] == dims_of(graph, term->w)[1];
      if (!fits) term.reset();
    }
    if (term) {
      terms.products.push_back(*term);
    } else {
      terms.others.push_back(value);
    }
  }
  return terms.products.size() > 1 ? std::optional(terms) : std::nullopt;
}

// Has every term a factor with all the axes of x, and as many columns in x? Then they scale blocks of one matrix.
bool have_like_factors(const Graph& graph, const std::vector<Term>& terms) {
  return std::all_of(terms.begin(), terms.end(), [&](const Term& term) {
    if (!term.r.is_valid() || graph.type(term.x) != graph.type(terms[0].x)) return false;
    Dims rows = dims_of(graph, term.x);
    rows.back() = 1;
    return dims_of(graph, term.r) == rows;
  });
}

// [x r, y s, ...] as [x, y, ...] times a factor for each block of columns.
ValueId scaled_blocks(RuleBuilder& builder, const Joint& inputs, const Joint& factors) {
  const ValueId joined = make(builder, inputs);
  const Dims whole = builder.dims(joined);
  Dims blocks = builder.dims(inputs.values[0]);
  blocks.insert(blocks.end() - 1, static_cast<int64_t>(inputs.values.size()));
  Dims of_blocks = blocks;
  of_blocks.back() = 1;
  const ValueId r = builder.reshape(make(builder, factors), of_blocks);
  return builder.reshape(builder.add(mul_def(), {builder.reshape(joined, blocks), r}), whole);
}

std::vector<ValueId> join_sum(RuleBuilder& builder) {
  const Terms terms = *terms_of(builder.match());
  const bool by_block = have_like_factors(builder.graph(), terms.products);
  const bool is_scaled =
      std::any_of(terms.products.begin(), terms.products.end(), [](const Term& term) { return term.r.is_valid(); });
  std::vector<ValueId> inputs, factors, weights;
  for (const Term& term : terms.products) {
    builder.include(term.product);
    if (term.scaled.is_valid()) builder.include(term.scaled);
    inputs.push_back(term.x);
    factors.push_back(term.r);
    weights.push_back(term.w);
  }
  const auto axis = static_cast<int64_t>(builder.dims(inputs[0]).size()) - 1;
  ValueId left;
  if (is_scaled && !by_block) {
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (factors[k].is_valid()) inputs[k] = builder.add(mul_def(), {inputs[k], factors[k]});
    }
    left = builder.concat(inputs, axis);
  } else {
    const Joint joint = plan_joint(builder.graph(), inputs, axis);
    include(builder, joint);
    left = by_block ? scaled_blocks(builder, joint, plan_joint(builder.graph(), factors, axis)) : make(builder, joint);
  }
  const ValueId joined = builder.add(matmul_def(), {left, builder.concat(weights, 0)});
  if (terms.others.empty()) return {joined};
  std::vector<ValueId> sum{joined};
  sum.insert(sum.end(), terms.others.begin(), terms.others.end());
  return {builder.add(sum.size() == 2 ? add_def() : sum_def(), sum)};
}

// ---- Side by side -------------------------------------------------------------------------------------------------

// The products of one value in front of a concat of columns; empty when there is anything else.
std::vector<NodeId> columns_of(const RuleMatch& match) {
  const Graph& graph = match.graph();
  if (match.integer("k") + 1 != graph.type(match.value("c")).shape().rank() && match.integer("k") != -1) return {};
  ValueId left;
  return makers_of(graph, match.list("xs"), [&](const Node& node) {
    if (&node.op() != &matmul_def() || !is_weighted_product(graph, node)) return false;
    if (!left.is_valid()) left = node.input(0);
    return node.input(0) == left;
  });
}

std::vector<ValueId> join_columns(RuleBuilder& builder) {
  const Graph& graph = builder.graph();
  const std::vector<NodeId> products = columns_of(builder.match());
  builder.include(products);
  const ValueId x = graph.node(products[0]).input(0);
  return {builder.add(matmul_def(), {x, builder.concat(inputs_of(graph, products, 1), 1)})};
}

const Rule kRules[] = {
    // A B r + C D s + ... -> [A r, C s, ...] [B; D; ...] with factors r, s for rows
    {.name = "matmul.join_sum",
     .before = "y = sum(xs...)",
     .after = "where xs = mul(matmul(us, ws), rs): u = concat[axis=-1](us..., times rs); w = concat[axis=0](ws...); "
              "y = matmul(u, w)",
     .guard_doc = "two or more of xs are products with weight matrices, perhaps times a factor for each row; nothing "
                  "else reads them, and their shapes are the same but for the inner extents",
     .guard = [](const RuleMatch& match) { return terms_of(match).has_value(); },
     .build = join_sum,
     // r = inf: the sum of x W comes first, then there is one inf, not inf - inf
     .finite_only = true},
    // (x W) r -> (x r) W with a factor r for each row
    {.name = "matmul.scale_rows",
     .before = "m = matmul(x, $w); y = mul(m, r)",
     .after = "a = mul(x, r); y = matmul(a, w)",
     .guard_doc =
         "x has rank 2 or more, w is a matrix; r has one element along the last axis and leaves the shape of m",
     .guard =
         [](const RuleMatch& match) {
           const Graph& graph = match.graph();
           return is_weighted_product(graph, match.node(0)) && is_row_factor(graph, match.value("r"), match.value("m"));
         },
     // r = inf: the sum of x W comes first, then there is one inf, not inf - inf
     .finite_only = true},
    // [x V, x W, ...] -> x [V W ...]
    {.name = "matmul.join_columns",
     .before = "c = concat[axis=k](xs...)",
     .after = "where xs = matmul(x, ws): w = concat[axis=1](ws...); c = matmul(x, w)",
     .kind = shrinks,
     .guard_doc = "k is the last axis; all xs are products of one value with weight matrices, and read here alone",
     .guard = [](const RuleMatch& match) { return !columns_of(match).empty(); },
     .build = join_columns},
};

}  // namespace

std::span<const Rule> product_sum_rules() { return kRules; }

}  // namespace autograph
