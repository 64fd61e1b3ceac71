// Rules of the pass fuse_group_norm: group normalization as exporters without that op spell it,
//   add(mul(reshape(instance_normalization(reshape(x, [batch, groups, -1]))), scale[c]), bias[c]),
// becomes one node: first the norm, with the parameters of the groups repeated for their channels, then the factor and
// the addend behind it become part of them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/weight_scaling.h"

namespace autograph {
namespace {

using enum RuleClass;
using Elements = std::vector<double>;

// By channel.
struct Parameters {
  Elements scale;
  Elements bias;
};

// Each element of a constant as often as there are channels for it.
std::optional<Elements> repeated(const RuleMatch& match, std::string_view name) {
  const Tensor* given = constant_f32(match.graph(), match.value(name));
  const int64_t channels = match.type("x").shape()[1].value_or(0);
  if (!given || given->num_elements() == 0 || channels < 1 || channels % given->num_elements() != 0)
    return std::nullopt;
  Elements elements;
  for (const double element : given->to_f64()) {
    elements.insert(elements.end(), static_cast<size_t>(channels / given->num_elements()), element);
  }
  return elements;
}

// What a constant of the model adds to each channel, or multiplies it with.
std::optional<Elements> by_channel(const RuleMatch& match, ValueId v) {
  const Tensor* given = constant_f32(match.graph(), v);
  const Shape& x = match.type("x").shape();
  return given ? per_channel(*given, x.rank(), 1, x[1].value_or(0)) : std::nullopt;
}

// Do all fit f32? Products of two may not.
bool fit(const Parameters& parameters) {
  const auto fits = [](double element) { return std::isfinite(static_cast<float>(element)); };
  return std::all_of(parameters.scale.begin(), parameters.scale.end(), fits) &&
         std::all_of(parameters.bias.begin(), parameters.bias.end(), fits);
}

// Those of the norm itself.
std::optional<Parameters> own(const RuleMatch& match) {
  auto scale = repeated(match, "g"), bias = repeated(match, "b");
  return scale && bias ? std::optional(Parameters{std::move(*scale), std::move(*bias)}) : std::nullopt;
}

std::optional<Parameters> times(const RuleMatch& match, const Elements& factors) {
  auto all = own(match);
  for (size_t c = 0; all && c < factors.size(); ++c) {
    all->scale[c] *= factors[c];
    all->bias[c] *= factors[c];
  }
  return all && fit(*all) ? all : std::nullopt;
}

std::optional<Parameters> scaled(const RuleMatch& match) {
  const auto factors = by_channel(match, match.value("s"));
  return factors ? times(match, *factors) : std::nullopt;
}

std::optional<Parameters> shifted(const RuleMatch& match) {
  const auto addends = by_channel(match, match.value("c"));
  auto all = addends ? own(match) : std::nullopt;
  for (size_t c = 0; all && c < addends->size(); ++c) all->bias[c] += (*addends)[c];
  return all && fit(*all) ? all : std::nullopt;
}

// Is `y` multiplied with what overflows with the parameters? Then both stay as they are.
bool overflows_behind(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const NodeId reader = only_reader(graph, match.value("y"));
  if (!reader.is_valid() || &graph.node(reader).op() != &mul_def()) return false;
  const size_t slot = graph.node(reader).input(0) == match.value("y") ? 1 : 0;
  const auto factors = by_channel(match, graph.node(reader).input(slot));
  return factors && !times(match, *factors);
}

// The batch must stay apart; what follows it may be cut in any way.
bool are_groups(const RuleMatch& match) {
  const Shape& x = match.type("x").shape();
  const Shape& rows = match.type("r").shape();
  if (!same_tensor_type(match.type("x"), match.type("y")) || x.rank() < 3 || rows.rank() < 2) return false;
  return rows[0] == x[0] && rows[1].is_known() && own(match) && !overflows_behind(match);
}

ValueId add_parameter(RuleBuilder& builder, const Elements& elements) {
  Tensor tensor = Tensor::empty(DType::f32, {static_cast<int64_t>(elements.size())});
  std::transform(elements.begin(), elements.end(), tensor.mutable_data<float>(),
                 [](double element) { return static_cast<float>(element); });
  return builder.constant(std::move(tensor));
}

std::vector<ValueId> inputs_of(RuleBuilder& builder, const Parameters& parameters) {
  const ValueId scale = add_parameter(builder, parameters.scale);
  return {builder.value("x"), scale, add_parameter(builder, parameters.bias)};
}

std::vector<ValueId> make_norm(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  const int64_t groups = match.type("r").shape()[1].value();
  return {builder.add(group_normalization_def(), inputs_of(builder, *own(match)),
                      {{"num_groups", groups}, {"epsilon", match.node(1).attributes().real("epsilon")}})};
}

// As the norm was made, with other parameters.
template <std::optional<Parameters> (*kParameters)(const RuleMatch&)>
std::vector<ValueId> make_again(RuleBuilder& builder) {
  return {builder.add_like(builder.match().node(0), inputs_of(builder, *kParameters(builder.match())))};
}

// norm(x) with a parameter of the model that becomes part of its own.
template <std::optional<Parameters> (*kParameters)(const RuleMatch&)>
Rule takes_parameter(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .kind = always_pays,
          .guard_doc = "all but x is constant and varies along the channels alone; f32 holds the new parameters",
          .guard = [](const RuleMatch& match) { return kParameters(match).has_value(); },
          .build = make_again<kParameters>,
          .dtypes = {DType::f32},
          .is_rounded = true};
}

const Rule kRules[] = {
    // norm(x cut into groups), back in the shape of x
    {.name = "normalization.group",
     .before = "r = reshape[allowzero=u](x, s); n = instance_normalization[epsilon=e](r, $g, $b);"
               " y = reshape[allowzero=v](n, t)",
     .after = "y = group_normalization[num_groups=extent 1 of r, epsilon=e](x, g and b by channel)",
     .kind = always_pays,
     .guard_doc =
         "y has the shape of x, whose batch stays apart; g and b are constants; f32 holds them times what y is "
         "multiplied with",
     .guard = are_groups,
     .build = make_norm,
     .dtypes = {DType::f32},
     .is_rounded = true},
    takes_parameter<scaled>("normalization.group_scale",
                            "n = group_normalization[num_groups=k, epsilon=e](x, $g, $b); y = mul(n, $s)",
                            "y = group_normalization[num_groups=k, epsilon=e](x, g s, b s)"),
    takes_parameter<shifted>("normalization.group_bias",
                             "n = group_normalization[num_groups=k, epsilon=e](x, $g, $b); y = add(n, $c)",
                             "y = group_normalization[num_groups=k, epsilon=e](x, g, b + c)"),
};

}  // namespace

std::span<const Rule> group_norm_rules() { return kRules; }

}  // namespace autograph
