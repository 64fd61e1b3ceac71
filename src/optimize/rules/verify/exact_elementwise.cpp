// Exact elementwise ops: those made of sums, products and quotients are computed; those that compare and powers are
// computed where numbers are integers; the rest has no properties, but for commutative ops that of being commutative.
#include <algorithm>
#include <array>

#include "optimize/rules/verify/exact_op.h"
#include "optimize/rules/verify/prime_field.h"

namespace autograph {
namespace {

using Arguments = std::span<const uint64_t>;
using Formula = uint64_t (*)(Arguments);

uint64_t sum(Arguments x) {
  uint64_t total = 0;
  for (const uint64_t value : x) total = field_add(total, value);
  return total;
}

uint64_t largest(Arguments x) {
  return *std::max_element(x.begin(), x.end(), [](uint64_t a, uint64_t b) { return integer_of(a) < integer_of(b); });
}

uint64_t smallest(Arguments x) {
  return *std::min_element(x.begin(), x.end(), [](uint64_t a, uint64_t b) { return integer_of(a) < integer_of(b); });
}

struct NamedFormula {
  std::string_view op;
  Formula formula;
};

const NamedFormula kFieldFormulas[] = {
    {"add", [](Arguments x) { return field_add(x[0], x[1]); }},
    {"sub", [](Arguments x) { return field_subtract(x[0], x[1]); }},
    {"mul", [](Arguments x) { return field_multiply(x[0], x[1]); }},
    {"div", [](Arguments x) { return field_multiply(x[0], field_inverse(x[1])); }},
    {"neg", [](Arguments x) { return field_negate(x[0]); }},
    {"reciprocal", [](Arguments x) { return field_inverse(x[0]); }},
    {"identity", [](Arguments x) { return x[0]; }},
    {"sum", sum},
    {"mean",
     [](Arguments x) { return field_multiply(sum(x), field_inverse(field_of(static_cast<int64_t>(x.size())))); }},
};

// A power with an exponent that is an integer.
uint64_t power(uint64_t base, uint64_t exponent) {
  const int64_t n = integer_of(exponent);
  const uint64_t result = field_power(base, static_cast<uint64_t>(n < 0 ? -n : n));
  return n < 0 ? field_inverse(result) : result;
}

const NamedFormula kIntegerFormulas[] = {
    {"relu", [](Arguments x) { return integer_of(x[0]) < 0 ? 0 : x[0]; }},
    {"abs", [](Arguments x) { return integer_of(x[0]) < 0 ? field_negate(x[0]) : x[0]; }},
    {"exp", [](Arguments x) { return power(3, x[0]); }},
    {"pow", [](Arguments x) { return power(x[0], x[1]); }},
    {"max", largest},
    {"min", smallest},
    {"prelu", [](Arguments x) { return integer_of(x[0]) < 0 ? field_multiply(x[0], x[1]) : x[0]; }},
};

template <size_t N>
Formula find_formula(const NamedFormula (&formulas)[N], std::string_view op) {
  for (const NamedFormula& named : formulas) {
    if (named.op == op) return named.formula;
  }
  return nullptr;
}

// Calls f(elements of all given inputs) for every output element.
template <class F>
void for_each_element(const ExactCall& call, F&& f) {
  const BroadcastWalk walk(call.inputs, call.outputs[0].dims());
  std::vector<uint64_t> arguments;
  for (int64_t i = 0; i < call.outputs[0].num_elements(); ++i) {
    arguments.clear();
    for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
      if (call.has_input(slot)) arguments.push_back(call.in(slot)[walk.position(slot, i)]);
    }
    call.out()[i] = f(Arguments(arguments));
  }
}

void by_field_formula(const ExactCall& call) { for_each_element(call, find_formula(kFieldFormulas, call.op.name)); }

void by_integer_formula(const ExactCall& call) {
  if (call.options.functions == Functions::opaque) return call_opaque(call);
  for_each_element(call, find_formula(kIntegerFormulas, call.op.name));
}

void leaky_relu(const ExactCall& call) {
  if (call.options.functions == Functions::opaque) return call_opaque(call);
  const uint64_t slope = field_of(call.attributes.real("alpha"));
  for_each_element(call, [&](Arguments x) { return integer_of(x[0]) < 0 ? field_multiply(x[0], slope) : x[0]; });
}

void clip(const ExactCall& call) {
  if (call.options.functions == Functions::opaque) return call_opaque(call);
  const bool has_low = call.has_input(1);
  for_each_element(call, [&](Arguments x) {
    uint64_t y = x[0];
    if (has_low) y = largest(std::array{y, x[1]});
    if (x.size() > (has_low ? 2U : 1U)) y = smallest(std::array{y, x.back()});
    return y;
  });
}

}  // namespace

ExactFn find_exact_elementwise(std::string_view op) {
  if (find_formula(kFieldFormulas, op)) return by_field_formula;
  if (find_formula(kIntegerFormulas, op)) return by_integer_formula;
  if (op == "leaky_relu") return leaky_relu;
  if (op == "clip") return clip;
  return nullptr;
}

}  // namespace autograph
