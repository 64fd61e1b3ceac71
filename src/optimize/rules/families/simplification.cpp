// Rules of the passes simplify_arithmetic and use_global_pool: arithmetic that changes nothing, steps that a later one
// makes needless, and means that have an op of their own. The results are the same numbers; only x + 0 keeps the sign
// of -0, which the sum would lose.
#include <algorithm>

#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/families/families.h"
#include "optimize/rules/reduced_axes.h"

namespace autograph {
namespace {

using enum RuleClass;

bool made_by_any(const RuleMatch& match, std::initializer_list<const OpDef*> ops) {
  return std::any_of(ops.begin(), ops.end(),
                     [&](const OpDef* op) { return made_by(match.graph(), match.value("x"), *op) != nullptr; });
}

bool is_never_negative(const RuleMatch& match) {
  // The least signed integer has no positive counterpart: its abs is itself.
  if (!dtypes::kSigned.contains(match.type("x").dtype()) && made_by_any(match, {&abs_def()})) return true;
  return made_by_any(match,
                     {&relu_def(), &sigmoid_def(), &hard_sigmoid_def(), &softmax_def(), &exp_def(), &sqrt_def()});
}

// ---- Casts -----------------------------------------------------------------------------------------------------

// Exact integers up to 2^bits: of a dtype's values, and of the integers that a float can hold.
int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 8;
    case DType::f16: return 11;
    case DType::f32: return 24;
    case DType::f64: return 53;
    default: return static_cast<int>(8 * element_size(dtype)) - (dtypes::kSigned.contains(dtype) ? 1 : 0);
  }
}

// Does `to` hold every value of `from`, so that a cast there and on to a third dtype is a cast to that one?
bool holds_all(DType from, DType to) {
  if (from == to) return true;
  if (!dtypes::kNumeric.contains(from) || !dtypes::kNumeric.contains(to)) return false;
  const bool to_float = dtypes::kFloat.contains(to);
  if (dtypes::kFloat.contains(from)) return to_float && element_size(to) > element_size(from);
  if (to_float) return false;  // from there on to integers other rules would apply
  const bool drops_sign = dtypes::kSigned.contains(from) && !dtypes::kSigned.contains(to);
  return !drops_sign && mantissa_bits(to) >= mantissa_bits(from);
}

// What `x` is cast from, or negated from.
ValueId source_of(const RuleMatch& match, const OpDef& op) {
  const Node* inner = made_by(match.graph(), match.value("x"), op);
  return inner ? inner->input(0) : ValueId{};
}

bool is_upcast(const RuleMatch& match) {
  const ValueId source = source_of(match, cast_def());
  return source.is_valid() && holds_all(match.graph().type(source).dtype(), match.type("x").dtype());
}

std::vector<ValueId> cast_at_once(RuleBuilder& builder) {
  const ValueId source = source_of(builder.match(), cast_def());
  if (builder.type(source).dtype() == builder.match().type("y").dtype()) return {source};
  return {builder.add_like(builder.match().node(0), {source})};
}

// ---- Means -----------------------------------------------------------------------------------------------------

std::vector<ValueId> make_global_pool(RuleBuilder& builder) {
  const ValueId pooled = builder.add(global_average_pool_def(), {builder.value("x")});
  if (builder.match().integer("k") != 0) return {pooled};
  return {builder.reshape(pooled, {0, 0})};  // 0 copies an extent
}

Rule no_effect(std::string_view name, std::string_view before) {
  return {.name = name, .before = before, .after = "y = x", .kind = always_pays, .dtypes = dtypes::kNumeric};
}

const Rule kArithmetic[] = {
    no_effect("simplification.add_zero", "y = add(x, 0)"),
    no_effect("simplification.subtract_zero", "y = sub(x, 0)"),
    no_effect("simplification.multiply_by_one", "y = mul(x, 1)"),
    no_effect("simplification.divide_by_one", "y = div(x, 1)"),
    no_effect("simplification.first_power", "y = pow(x, 1)"),
    {.name = "simplification.relu_of_positive",
     .before = "y = relu(x)",
     .after = "y = x",
     .kind = always_pays,
     .guard_doc = "x is made by an op that gives no negative numbers",
     .guard = is_never_negative,
     .dtypes = dtypes::kNumeric},
    {.name = "simplification.abs_of_positive",
     .before = "y = abs(x)",
     .after = "y = x",
     .kind = always_pays,
     .guard_doc = "x is made by abs or relu",
     .guard =
         [](const RuleMatch& match) {
           return made_by_any(match, {&abs_def(), &relu_def()});
         },
     .dtypes = dtypes::kNumeric},
    {.name = "simplification.neg_of_neg",
     .before = "y = neg(x)",
     .after = "y = what x is the negative of",
     .kind = always_pays,
     .guard_doc = "x is made by neg",
     .guard = [](const RuleMatch& match) { return source_of(match, neg_def()).is_valid(); },
     .build = [](RuleBuilder& builder) { return std::vector{source_of(builder.match(), neg_def())}; },
     .dtypes = dtypes::kNumeric},
    {.name = "simplification.cast_of_cast",
     .before = "y = cast[to=t, saturate=s, round_mode=r](x)",
     .after = "y = cast[to=t, saturate=s, round_mode=r](what x is cast from)",
     .kind = always_pays,
     .guard_doc = "x is cast from a dtype whose values it holds all",
     .guard = is_upcast,
     .build = cast_at_once,
     .dtypes = dtypes::kAll,
     .is_rounded = true},
};

// Squeeze-excite blocks and classifier heads have one spelling then, and the pool takes part in the choice of layouts.
// Rank 3 is mostly [batch, length, width].
const Rule kMeans[] = {
    {.name = "simplification.mean_as_global_pool",
     .before = "y = reduce_mean[keepdims=k](x, $a)",
     .after = "y = global_average_pool(x)",
     .kind = always_pays,
     .guard_doc = "a is 2, 3, ..., and x has rank 4 or more",
     .guard = [](const RuleMatch& match) { return are_spatial_axes(match, "x", "a"); },
     .build = make_global_pool},
};

}  // namespace

std::span<const Rule> simplification_rules() { return kArithmetic; }

std::span<const Rule> mean_rules() { return kMeans; }

}  // namespace autograph
