// Products and convolutions whose sums are cut into parts: each part of the channels meets its own weights, and the
// results are added up.
//
//   conv(x, W) -> sum(conv(x_1, W_1), conv(x_2, W_2), ...)
//
// That is more work in all, but a kernel with few outputs and long sums fills little of a device however long it takes,
// and its parts run side by side. One sum of all terms: in a chain of additions each part would wait for the one
// before. The sum of costs never wants this; the schedule does, where the device has room (RuleClass::spreads).
#include <algorithm>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/conv/conv_form.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

// Parts with shorter sums take longer to start and to add than to compute.
constexpr int64_t kMinChannels = 16;

// As even as may be; no more parts than there are elements, so that small cases have some, too.
std::vector<int64_t> even_sizes(int64_t extent, int64_t num_parts) {
  num_parts = std::min(num_parts, extent);
  std::vector<int64_t> sizes(static_cast<size_t>(num_parts), extent / num_parts);
  for (int64_t k = 0; k < extent % num_parts; ++k) ++sizes[static_cast<size_t>(k)];
  return sizes;
}

// `value` cut along `axis`; the pieces that are there where something has cut it like this: what reads one value shares
// its pieces.
std::vector<ValueId> pieces_of(RuleBuilder& builder, ValueId value, const std::vector<int64_t>& sizes, int64_t axis) {
  const Graph& graph = builder.graph();
  for (const Use& use : graph.value(value).uses()) {
    const Node& node = graph.node(use.node);
    const bool is_split = &node.op() == &split_def() && use.slot == 0 && node.input(1).is_valid();
    if (is_split && axis_of(graph, use.node) == axis && integer_constants(graph, node.input(1)) == sizes) {
      return node.outputs();
    }
  }
  return builder.split(value, sizes, axis);
}

// The axis of a factor along which a product adds up.
int64_t inner_axis(const Graph& graph, ValueId factor, bool is_left) {
  const int64_t rank = graph.type(factor).shape().rank();
  return is_left || rank == 1 ? rank - 1 : rank - 2;
}

int64_t channels_of(const RuleMatch& match) { return match.dims("x")[1]; }
int64_t columns_of(const RuleMatch& match) { return match.dims("x").back(); }

std::vector<ValueId> spread_conv(RuleBuilder& builder, int64_t num_parts) {
  const ConvForm form = conv_form(builder.graph(), builder.match().nodes()[0]);
  const std::vector<int64_t> sizes = even_sizes(channels_of(builder.match()), num_parts);
  const std::vector<ValueId> xs = pieces_of(builder, form.x, sizes, 1);
  const std::vector<ValueId> ws = pieces_of(builder, form.w, sizes, 1);
  std::vector<ValueId> terms;
  for (size_t k = 0; k < sizes.size(); ++k) {
    terms.push_back(add_conv(builder, form, xs[k], ws[k], k == 0 ? form.b : ValueId{}, 1));
  }
  return {builder.add(sum_def(), terms)};
}

std::vector<ValueId> spread_product(RuleBuilder& builder, int64_t num_parts) {
  const ValueId x = builder.value("x"), w = builder.value("w");
  const std::vector<int64_t> sizes = even_sizes(columns_of(builder.match()), num_parts);
  const std::vector<ValueId> xs = pieces_of(builder, x, sizes, inner_axis(builder.graph(), x, true));
  const std::vector<ValueId> ws = pieces_of(builder, w, sizes, inner_axis(builder.graph(), w, false));
  std::vector<ValueId> terms;
  for (size_t k = 0; k < sizes.size(); ++k) terms.push_back(builder.add(matmul_def(), {xs[k], ws[k]}));
  return {builder.add(sum_def(), terms)};
}

template <int64_t kParts>
Rule conv_rule(std::string_view name) {
  return {.name = name,
          .before = "y = conv[strides=e, pads=p, dilations=d, group=1](x, w, b...)",
          .after = "xs... = split[axis=1](x); ws... = split[axis=1](w); y = the sum of conv(xs, ws)",
          .kind = RuleClass::spreads,
          .guard_doc = "x has two channels or more",
          .guard = [](const RuleMatch& match) { return channels_of(match) > 1; },
          .build = [](RuleBuilder& builder) { return spread_conv(builder, kParts); },
          .may_pay = [](const RuleMatch& match) { return channels_of(match) >= kParts * kMinChannels; }};
}

template <int64_t kParts>
Rule product_rule(std::string_view name) {
  return {.name = name,
          .before = "y = matmul(x, w)",
          .after = "xs... = split[axis=-1](x); ws... = split[axis=-2](w); y = the sum of matmul(xs, ws)",
          .kind = RuleClass::spreads,
          .guard_doc = "x has two columns or more",
          .guard = [](const RuleMatch& match) { return columns_of(match) > 1; },
          .build = [](RuleBuilder& builder) { return spread_product(builder, kParts); },
          .may_pay = [](const RuleMatch& match) { return columns_of(match) >= kParts * kMinChannels; }};
}

const Rule kRules[] = {
    // conv(x, W) -> conv(x_1, W_1) + conv(x_2, W_2) + ... over parts of the channels
    conv_rule<2>("spread.conv_2"),
    conv_rule<3>("spread.conv_3"),
    conv_rule<4>("spread.conv_4"),
    conv_rule<6>("spread.conv_6"),
    conv_rule<8>("spread.conv_8"),
    // x W -> x_1 W_1 + x_2 W_2 + ... over parts of the columns of x
    product_rule<2>("spread.product_2"),
    product_rule<3>("spread.product_3"),
    product_rule<4>("spread.product_4"),
    product_rule<6>("spread.product_6"),
    product_rule<8>("spread.product_8"),
};

}  // namespace

std::span<const Rule> spread_rules() { return kRules; }

}  // namespace autograph
