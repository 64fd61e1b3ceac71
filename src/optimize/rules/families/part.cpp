// Products and convolutions of what is joined, taken apart: each input of the concat meets its own weights, and the
// results are added up. That is more work in all, but each term begins when its own input is there and nothing waits
// for the concat: what is made last is added last. The inverse of conv.join_pair_sum and matmul.join_sum.
#include <algorithm>
#include <optional>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

using enum RuleClass;

// More terms are more kernels than anything is waited for.
constexpr size_t kMaxTerms = 8;

// What `value` is joined of along `axis`, counted from the front.
std::vector<ValueId> joined_values(const Graph& graph, ValueId value, int64_t axis) {
  const NodeId concat = producer_of_op(graph, value, concat_def());
  if (!concat.is_valid() || axis_of(graph, concat) != axis) return {};
  const auto& inputs = graph.node(concat).inputs();
  std::vector<ValueId> values(inputs.begin(), inputs.end());
  const bool fits =
      values.size() > 1 && values.size() <= kMaxTerms && std::all_of(values.begin(), values.end(), [&](ValueId v) {
        return graph.type(v).is_static() && !is_weight(graph, v) && dims_of(graph, v)[static_cast<size_t>(axis)] > 0;
      });
  return fits ? values : std::vector<ValueId>{};
}

int64_t last_axis(const Graph& graph, ValueId value) { return graph.type(value).shape().rank() - 1; }

std::vector<ValueId> channels_joined(const RuleMatch& match) {
  return joined_values(match.graph(), match.value("c"), 1);
}

std::vector<ValueId> columns_joined(const RuleMatch& match) {
  return joined_values(match.graph(), match.value("c"), last_axis(match.graph(), match.value("c")));
}

struct Term {
  ValueId x;
  ValueId w;
  size_t height;  // nodes one behind the other on the way to x
};

std::vector<Term> terms_of(RuleBuilder& builder, const std::vector<ValueId>& values, int64_t value_axis,
                           int64_t weight_axis) {
  const Graph& graph = builder.graph();
  std::vector<size_t> height(graph.node_capacity(), 0);
  const auto height_of = [&](ValueId v) {
    const NodeId producer = v.is_valid() ? graph.value(v).producer() : NodeId{};
    return producer.is_valid() ? height[producer.index] : 0;
  };
  for (const NodeId id : graph.topological_order()) {
    for (const ValueId v : graph.node(id).inputs()) height[id.index] = std::max(height[id.index], height_of(v) + 1);
  }
  std::vector<Term> terms;
  std::vector<int64_t> sizes;
  for (const ValueId v : values) {
    terms.push_back({v, {}, height_of(v)});
    sizes.push_back(builder.dims(v)[static_cast<size_t>(value_axis)]);
  }
  const std::vector<ValueId> weights = builder.split(builder.value("w"), sizes, weight_axis);
  for (size_t k = 0; k < terms.size(); ++k) terms[k].w = weights[k];
  std::stable_sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.height < b.height; });
  return terms;
}

// All but the one that is made last in one term.
std::vector<Term> last_apart(RuleBuilder& builder, const std::vector<Term>& terms, int64_t value_axis,
                             int64_t weight_axis) {
  std::vector<ValueId> values, weights;
  for (size_t k = 0; k + 1 < terms.size(); ++k) {
    values.push_back(terms[k].x);
    weights.push_back(terms[k].w);
  }
  return {{builder.concat(values, value_axis), builder.concat(weights, weight_axis), 0}, terms.back()};
}

template <class MakeTerm>
ValueId sum_of(RuleBuilder& builder, const std::vector<Term>& terms, const MakeTerm& make) {
  ValueId sum = make(terms.front(), true);
  for (size_t k = 1; k < terms.size(); ++k) sum = builder.add(add_def(), {make(terms[k], false), sum});
  return sum;
}

ValueId sum_of_convs(RuleBuilder& builder, const std::vector<Term>& terms) {
  const ConvForm form = conv_form(builder.graph(), builder.match().nodes()[0]);
  return sum_of(builder, terms, [&](const Term& term, bool is_first) {
    return add_conv(builder, form, term.x, term.w, is_first ? form.b : ValueId{}, 1);
  });
}

ValueId sum_of_products(RuleBuilder& builder, const std::vector<Term>& terms) {
  return sum_of(builder, terms, [&](const Term& term, bool) { return builder.add(matmul_def(), {term.x, term.w}); });
}

std::vector<ValueId> part_conv(RuleBuilder& builder) {
  return {sum_of_convs(builder, terms_of(builder, channels_joined(builder.match()), 1, 1))};
}

std::vector<ValueId> part_last_of_conv(RuleBuilder& builder) {
  const std::vector<Term> terms = terms_of(builder, channels_joined(builder.match()), 1, 1);
  return {sum_of_convs(builder, last_apart(builder, terms, 1, 1))};
}

std::vector<ValueId> part_product(RuleBuilder& builder) {
  const int64_t axis = last_axis(builder.graph(), builder.value("c"));
  return {sum_of_products(builder, terms_of(builder, columns_joined(builder.match()), axis, 0))};
}

std::vector<ValueId> part_last_of_product(RuleBuilder& builder) {
  const int64_t axis = last_axis(builder.graph(), builder.value("c"));
  const std::vector<Term> terms = terms_of(builder, columns_joined(builder.match()), axis, 0);
  return {sum_of_products(builder, last_apart(builder, terms, axis, 0))};
}

bool is_joined_product(const RuleMatch& match) {
  return match.type("w").shape().rank() == 2 && match.type("c").shape().rank() > 1 && !columns_joined(match).empty();
}

constexpr std::string_view kConv = "y = conv[strides=e, pads=p, dilations=d, group=1](c, $w, b...)";
constexpr std::string_view kProduct = "y = matmul(c, $w)";

const Rule kRules[] = {
    // conv([x, y, ...], [V W ...]) -> conv(x, V) + conv(y, W) + ...
    {.name = "part.conv",
     .before = kConv,
     .after = "where c = concat[axis=1](xs...): ws... = split[axis=1](w); y = the sum of conv(xs, ws)",
     .guard_doc = "c is a concat of two to eight values along the channels",
     .guard = [](const RuleMatch& match) { return !channels_joined(match).empty(); },
     .build = part_conv},
    // conv([x, y, z, ...], [U V W ...]) -> conv([x, z, ...], [U W ...]) + conv(y, V), where y is made last
    {.name = "part.last_of_conv",
     .before = kConv,
     .after = "where c = concat[axis=1](xs...): u, v = split[axis=1](w); y = conv(all but the last, u) + conv(last, v)",
     .guard_doc = "c is a concat of three to eight values along the channels",
     .guard = [](const RuleMatch& match) { return channels_joined(match).size() > 2; },
     .build = part_last_of_conv},
    // [x, y, ...] [V; W; ...] -> x V + y W + ...
    {.name = "part.product",
     .before = kProduct,
     .after = "where c = concat[axis=-1](xs...): ws... = split[axis=0](w); y = the sum of matmul(xs, ws)",
     .guard_doc = "w is a matrix; c is a concat of two to eight values along the last axis",
     .guard = is_joined_product,
     .build = part_product},
    // [x, y, z, ...] [U; V; W; ...] -> [x, z, ...] [U; W; ...] + y V, where y is made last
    {.name = "part.last_of_product",
     .before = kProduct,
     .after =
         "where c = concat[axis=-1](xs...): u, v = split[axis=0](w); y = matmul(all but the last, u) + matmul(last, v)",
     .guard_doc = "w is a matrix; c is a concat of three to eight values along the last axis",
     .guard = [](const RuleMatch& match) { return is_joined_product(match) && columns_joined(match).size() > 2; },
     .build = part_last_of_product},
};

}  // namespace

std::span<const Rule> part_rules() { return kRules; }

}  // namespace autograph
