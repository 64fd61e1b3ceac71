// Exact elementwise ops, by their formulas on exact numbers: those made of sums, products and quotients are computed;
// those that compare, exp and powers are computed where numbers are integers; the rest has no properties, but for
// commutative ops that of being commutative.
#include <algorithm>
#include <array>

#include "base/check.h"
#include "ops/defs.h"
#include "ops/elementwise/formula/formula_table.h"
#include "ops/elementwise/formula/formulas.h"
#include "optimize/match.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace exact {

/// A number of the field, and the functions that it has; an integer has an order, too.
struct Number {
  explicit Number(uint64_t element) : value(element) {}
  explicit Number(int number) : value(field_of(static_cast<int64_t>(number))) {}
  explicit Number(double number) : value(field_of(static_cast<float>(number))) {}

  friend Number operator+(Number a, Number b) { return Number(field_add(a.value, b.value)); }
  friend Number operator-(Number a, Number b) { return Number(field_subtract(a.value, b.value)); }
  friend Number operator*(Number a, Number b) { return Number(field_multiply(a.value, b.value)); }
  friend Number operator/(Number a, Number b) { return Number(field_multiply(a.value, field_inverse(b.value))); }
  friend Number operator-(Number a) { return Number(field_negate(a.value)); }
  friend bool operator<(Number a, Number b) { return integer_of(a.value) < integer_of(b.value); }
  friend bool operator>(Number a, Number b) { return b < a; }
  friend bool operator==(Number a, Number b) { return a.value == b.value; }

  uint64_t value;
};

bool is_nan(Number) { return false; }
Number select(bool condition, Number a, Number b) { return condition ? a : b; }
Number at_least(Number x, Number bound) { return x < bound ? bound : x; }
Number at_most(Number x, Number bound) { return x > bound ? bound : x; }
Number max_nan(Number a, Number b) { return a < b ? b : a; }
Number min_nan(Number a, Number b) { return b < a ? b : a; }
Number mul_add(Number a, Number b, Number c) { return a * b + c; }
Number abs(Number x) { return integer_of(x.value) < 0 ? -x : x; }

// A power with an exponent that is an integer.
Number pow(Number base, Number exponent) {
  const int64_t n = integer_of(exponent.value);
  const Number result(field_power(base.value, static_cast<uint64_t>(n < 0 ? -n : n)));
  return n < 0 ? Number(field_inverse(result.value)) : result;
}
Number exp(Number x) { return pow(Number(3), x); }

// Functions that no field has. Formulas with one of these are not read, see is_exact().
#define AG_NO_FUNCTION(NAME)                              \
  Number NAME(Number x) {                                 \
    AG_CHECK(false, "no exact {} of {}", #NAME, x.value); \
    return x;                                             \
  }
AG_NO_FUNCTION(sqrt)
AG_NO_FUNCTION(exp_nonpositive)
AG_NO_FUNCTION(expm1)
AG_NO_FUNCTION(expm1_nonpositive)
AG_NO_FUNCTION(log)
AG_NO_FUNCTION(log1p_unit)
AG_NO_FUNCTION(erf)
AG_NO_FUNCTION(erfc)
AG_NO_FUNCTION(tanh)
AG_NO_FUNCTION(sin)
AG_NO_FUNCTION(cos)
AG_NO_FUNCTION(floor)
AG_NO_FUNCTION(ceil)
AG_NO_FUNCTION(round)
#undef AG_NO_FUNCTION

constexpr float kInfinity = formulas::kInfinity;

#include "ops/elementwise/formula/formulas-inl.h"

}  // namespace exact

namespace {

using formulas::Expr;
using formulas::ExprOp;
using Arguments = std::span<const exact::Number>;

// Where a formula can be computed.
enum class Reach : uint8_t { nowhere, integers, everywhere };

bool reads_parameter(const Formula& formula, const Expr& root) {
  const auto& names = formula.info.parameters;
  const std::vector<Expr> parts = parts_in_order(root);
  return std::any_of(parts.begin(), parts.end(), [&](const Expr& part) {
    return part.op() == ExprOp::variable && std::find(names.begin(), names.end(), part.name()) != names.end();
  });
}

Reach reach_of_part(const Formula& formula, const Expr& part) {
  const bool alone = part.identity() == formula.defining.identity();
  switch (part.op()) {
    case ExprOp::number:
    case ExprOp::variable:
    case ExprOp::add:
    case ExprOp::sub:
    case ExprOp::mul:
    case ExprOp::neg:
    case ExprOp::div: return Reach::everywhere;
    case ExprOp::abs:
    case ExprOp::max:
    case ExprOp::min:
    case ExprOp::select: return Reach::integers;
    // Parameters are no integers: they have no order.
    case ExprOp::less: return reads_parameter(formula, part) ? Reach::nowhere : Reach::integers;
    case ExprOp::exp:
    case ExprOp::pow: return alone ? Reach::integers : Reach::nowhere;
    default: return Reach::nowhere;
  }
}

// A formula that divides and compares would compare quotients, which have no order either.
Reach reach_of(const Formula& formula) {
  if (formula.info.op.empty() || formula.info.on_truth) return Reach::nowhere;
  Reach reach = Reach::everywhere;
  bool divides = false;
  for (const Expr& part : parts_in_order(formula.defining)) {
    reach = std::min(reach, reach_of_part(formula, part));
    divides = divides || part.op() == ExprOp::div;
  }
  return divides && reach == Reach::integers ? Reach::nowhere : reach;
}

using Function = exact::Number (*)(Arguments operands, Arguments parameters);

template <class F>
exact::Number call(Arguments x, Arguments p) {
  constexpr size_t kOperands = F::kInfo.operands;
  constexpr size_t kParameters = F::kInfo.num_parameters();
  if constexpr (kOperands == 1 && kParameters == 0) return F::of(x[0]);
  if constexpr (kOperands == 1 && kParameters == 1) return F::of(x[0], p[0]);
  if constexpr (kOperands == 1 && kParameters == 2) return F::of(x[0], p[0], p[1]);
  if constexpr (kOperands == 2 && kParameters == 0) return F::of(x[0], x[1]);
  if constexpr (kOperands == 2 && kParameters == 1) return F::of(x[0], x[1], p[0]);
  if constexpr (kOperands == 3) return F::of(x[0], x[1], x[2]);
}

template <class F>
constexpr Function function_of() {
  if constexpr (F::kInfo.on_truth || F::kInfo.op.empty()) {
    return nullptr;
  } else {
    return call<F>;
  }
}

struct Readable {
  Reach reach;
  Function function;
};

template <class... Fs>
std::vector<Readable> readable_formulas(FormulaList<Fs...>) {
  static_assert(sizeof...(Fs) == formulas::Formulas::kSize);
  std::vector<Readable> list;
  (list.push_back({reach_of(all_formulas()[list.size()]), function_of<Fs>()}), ...);
  return list;
}

const Readable& readable(size_t formula) {
  static const std::vector<Readable> kReadable = readable_formulas(exact::Formulas());
  return kReadable[formula];
}

exact::Number fold(const Readable& formula, Fold kind, Arguments x) {
  exact::Number total = x[0];
  for (size_t i = 1; i < x.size(); ++i) total = formula.function(std::array{total, x[i]}, {});
  return kind == Fold::average ? total / exact::Number(static_cast<int>(x.size())) : total;
}

// A clip's bounds may be missing: each is a formula of its own.
exact::Number clip(const ExactCall& call, Arguments x) {
  exact::Number y = x[0];
  if (call.has_input(1)) y = exact::Max::of(y, x[1]);
  return call.has_input(2) ? exact::Min::of(y, x.back()) : y;
}

// Calls f(elements of all given inputs) for every output element.
template <class F>
void for_each_element(const ExactCall& call, F&& f) {
  const BroadcastWalk walk(call.inputs, call.outputs[0].dims());
  std::vector<exact::Number> arguments;
  for (int64_t i = 0; i < call.outputs[0].num_elements(); ++i) {
    arguments.clear();
    for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
      if (call.has_input(slot)) arguments.emplace_back(call.in(slot)[walk.position(slot, i)]);
    }
    call.out()[i] = f(Arguments(arguments)).value;
  }
}

void by_formula(const ExactCall& call) {
  const size_t index = *find_formula(call.op, call.attributes);
  const Readable& formula = readable(index);
  const bool everywhere = formula.reach == Reach::everywhere;
  if (!everywhere && call.options.functions == Functions::opaque) return call_opaque(call);
  const FormulaInfo& info = all_formulas()[index].info;
  std::vector<exact::Number> parameters;
  for (size_t i = 0; i < info.num_parameters(); ++i) {
    parameters.emplace_back(field_of(call.attributes.real(info.parameters[i])));
  }
  for_each_element(call, [&](Arguments x) {
    if (info.fold != Fold::none) return fold(formula, info.fold, x);
    return x.size() == info.operands ? formula.function(x, parameters) : clip(call, x);
  });
}

}  // namespace

ExactFn find_exact_elementwise(const OpDef& op) {
  const auto index = find_formula(op, {});
  return index && readable(*index).reach != Reach::nowhere ? by_formula : nullptr;
}

bool is_exact_on_integers_only(const OpDef& op) {
  if (is_one_of(op, {&max_pool_def(), &global_max_pool_def(), &reduce_max_def(), &reduce_min_def()})) return true;
  const auto index = find_formula(op, {});
  return index && readable(*index).reach == Reach::integers;
}

}  // namespace autograph
