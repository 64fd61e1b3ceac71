// Rules of the passes fuse_layer_norm and fuse_rms_norm: normalizations over the trailing dims that a model spells out
// become one node, then take the scale and the bias behind it in. The epsilon is the model's; exporters drop one of
// 1e-12. Means over other axes (channels first) stay: the ops have no form for them. Casts to f32 and back, as
// half-precision models have them, go: the ops compute in f32 anyway.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/reduced_axes.h"

namespace autograph {
namespace {

using enum RuleClass;

// ---- What the mean goes over -----------------------------------------------------------------------------------

bool is_over_known_tail(const RuleMatch& match) {
  const auto axis = trailing_axes(match, "x", "a");
  return axis && tail_dims(match.graph(), match.value("x"), *axis) && match.number("e") >= 0;
}

bool is_over_same_tail(const RuleMatch& match) {
  return is_over_known_tail(match) && trailing_axes(match, "x", "b") == trailing_axes(match, "x", "a");
}

// ---- Scale and bias --------------------------------------------------------------------------------------------

// The extents of the normalised axes; of a match with the attribute `i`, or the axes `a`.
Dims normalised_dims(const RuleMatch& match, int64_t axis) {
  const int64_t rank = match.type("x").shape().rank();
  return tail_dims(match.graph(), match.value("x"), axis < 0 ? axis : axis - rank).value_or(Dims{});
}

// Has the parameter the dims of the normalised axes, but for leading ones?
bool has_tail_dims(const RuleMatch& match, std::string_view parameter, const Dims& tail) {
  const Type& type = match.type(parameter);
  if (tail.empty() || !type.is_static() || type.shape().rank() > match.type("x").shape().rank()) return false;
  Dims dims = type.shape().static_dims();
  while (dims.size() > tail.size() && dims.front() == 1) dims.erase(dims.begin());
  return dims == tail;
}

bool is_parameter(const RuleMatch& match, std::string_view name) {
  return has_tail_dims(match, name, normalised_dims(match, match.integer("i")));
}

bool is_one(const RuleMatch& match, std::string_view name) {
  const Value& value = match.graph().value(match.value(name));
  if (!value.is_constant()) return false;
  const std::vector<double> elements = value.constant().to_f64();
  return std::all_of(elements.begin(), elements.end(), [](double element) { return element == 1; });
}

bool may_take_scale(const RuleMatch& match) { return is_one(match, "o") && is_parameter(match, "s"); }

bool are_parameters(const RuleMatch& match) {
  const auto axis = trailing_axes(match, "x", "a");
  if (!is_over_same_tail(match) || std::fabs(match.number("u")) != 1) return false;
  const Dims tail = normalised_dims(match, *axis);
  return has_tail_dims(match, "g", tail) && has_tail_dims(match, "c", tail);
}

// ---- Results ---------------------------------------------------------------------------------------------------

Attributes attributes_of(const RuleMatch& match) {
  return {{"axis", *trailing_axes(match, "x", "a")}, {"epsilon", static_cast<float>(match.number("e"))}};
}

std::vector<ValueId> make_norm(RuleBuilder& builder, const OpDef& op) {
  const RuleMatch& match = builder.match();
  const Dims tail = normalised_dims(match, *trailing_axes(match, "x", "a"));
  const ValueId ones = builder.filled(match.type("x").dtype(), tail, 1);
  return {builder.add(op, {match.value("x"), ones}, attributes_of(match))};
}

std::vector<ValueId> make_layer_norm(RuleBuilder& builder) { return make_norm(builder, layer_normalization_def()); }

std::vector<ValueId> make_rms_norm(RuleBuilder& builder) { return make_norm(builder, rms_normalization_def()); }

// As the norm was made, with another scale or a bias.
std::vector<ValueId> take_scale(RuleBuilder& builder) {
  return {builder.add_like(builder.match().node(0), {builder.value("x"), builder.value("s")})};
}

std::vector<ValueId> take_bias(RuleBuilder& builder) {
  return {builder.add_like(builder.match().node(0), {builder.value("x"), builder.value("s"), builder.value("b")})};
}

std::vector<ValueId> make_scaled_norm(RuleBuilder& builder) {
  const std::vector<ValueId> inputs{builder.value("x"), builder.value("g"), builder.value("c")};
  return {builder.add(layer_normalization_def(), inputs, attributes_of(builder.match()))};
}

// The value behind a cast to f32, when the result goes back to its dtype.
ValueId source_of_cast(const RuleMatch& match) {
  const Graph& graph = match.graph();
  const Node* widen = made_by(graph, match.value("x"), cast_def());
  if (!widen || match.type("x").dtype() != DType::f32) return {};
  const Type& source = graph.type(widen->input(0));
  return is_short_float(source) && source.dtype() == match.type("y").dtype() ? widen->input(0) : ValueId{};
}

bool is_in_f32(const RuleMatch& match) { return is_one(match, "o") && source_of_cast(match).is_valid(); }

std::vector<ValueId> make_in_own_dtype(RuleBuilder& builder) {
  const RuleMatch& match = builder.match();
  const ValueId ones = builder.filled(match.type("y").dtype(), match.dims("o"), 1);
  const Node& norm = match.node(0);
  return {builder.add(norm.op(), {source_of_cast(match), ones}, norm.attributes())};
}

constexpr std::string_view kTailDoc = "the mean is over trailing axes of known extents; e >= 0";

// norm(x) s
Rule takes_scale(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .kind = always_pays,
          .guard_doc = "o is 1, s has the extents of the normalised axes",
          .guard = may_take_scale,
          .build = take_scale,
          .dtypes = kShortFloat};
}

// cast(norm(cast(x)))
Rule in_own_dtype(std::string_view name, std::string_view before, std::string_view after) {
  return {.name = name,
          .before = before,
          .after = after,
          .kind = always_pays,
          .guard_doc = "o is 1, x is cast to f32 from the dtype of y",
          .guard = is_in_f32,
          .build = make_in_own_dtype,
          .dtypes = kShortFloat,
          .is_rounded = true};
}

const Rule kLayerRules[] = {
    // (x - mean(x)) / sqrt(mean((x - mean(x))^2) + e)
    {.name = "normalization.layer",
     .before = "m = reduce_mean(x, $b); d = sub(x, m); v = {d^2}; q = reduce_mean(v, $a); y = {d * (q + #e)^-0.5}",
     .after = "y = layer_normalization[axis=a, epsilon=e](x, 1)",
     .kind = always_pays,
     .guard_doc = "both means are over the same trailing axes of known extents; e >= 0",
     .guard = is_over_same_tail,
     .build = make_layer_norm,
     .dtypes = kShortFloat,
     .is_rounded = true},
    // x s + (c - mean(x) s) with s = g / sqrt(mean((x - mean(x))^2) + e), as TensorFlow writes it
    {.name = "normalization.layer_multiplied_out",
     .before = "m = reduce_mean(x, $b); d = {#u * (x - m)}; v = {d^2}; q = reduce_mean(v, $a);"
               " s = {g * (q + #e)^-0.5}; y = {x * s + c - m * s}",
     .after = "y = layer_normalization[axis=a, epsilon=e](x, g, c)",
     .kind = always_pays,
     .guard_doc = "both means are over the same trailing axes, g and c have just their extents; e >= 0; u is 1 or -1",
     .guard = are_parameters,
     .build = make_scaled_norm,
     .dtypes = kShortFloat,
     .is_rounded = true},
    takes_scale("normalization.layer_scale", "n = layer_normalization[axis=i, epsilon=e](x, $o); y = mul(n, s)",
                "y = layer_normalization[axis=i, epsilon=e](x, s)"),
    // norm(x) + b
    {.name = "normalization.layer_bias",
     .before = "n = layer_normalization[axis=i, epsilon=e](x, s); y = add(n, b)",
     .after = "y = layer_normalization[axis=i, epsilon=e](x, s, b)",
     .kind = always_pays,
     .guard_doc = "b has the extents of the normalised axes",
     .guard = [](const RuleMatch& match) { return is_parameter(match, "b"); },
     .build = take_bias,
     .dtypes = kShortFloat},
    in_own_dtype("normalization.layer_in_f32", "n = layer_normalization[axis=i, epsilon=e](x, $o); y = cast[to=t](n)",
                 "y = layer_normalization[axis=i, epsilon=e](before the cast, 1)"),
};

const Rule kRmsRules[] = {
    // x / sqrt(mean(x^2) + e)
    {.name = "normalization.rms",
     .before = "v = {x^2}; q = reduce_mean(v, $a); y = {x * (q + #e)^-0.5}",
     .after = "y = rms_normalization[axis=a, epsilon=e](x, 1)",
     .kind = always_pays,
     .guard_doc = kTailDoc,
     .guard = is_over_known_tail,
     .build = make_rms_norm,
     .dtypes = kShortFloat,
     .is_rounded = true},
    takes_scale("normalization.rms_scale", "n = rms_normalization[axis=i, epsilon=e](x, $o); y = mul(n, s)",
                "y = rms_normalization[axis=i, epsilon=e](x, s)"),
    in_own_dtype("normalization.rms_in_f32", "n = rms_normalization[axis=i, epsilon=e](x, $o); y = cast[to=t](n)",
                 "y = rms_normalization[axis=i, epsilon=e](before the cast, 1)"),
};

}  // namespace

std::span<const Rule> layer_norm_rules() { return kLayerRules; }

std::span<const Rule> rms_norm_rules() { return kRmsRules; }

}  // namespace autograph
