#include "prove/verify/spell_formula.h"

#include <cmath>

#include "ops/defs.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using Kind = FormulaStep::Kind;

class Speller {
 public:
  Speller(Graph& graph, const FormulaArguments& arguments, Choices& choices)
      : graph_(graph), arguments_(arguments), choices_(choices) {}

  ValueId spell(const FormulaStep& step) {
    if (const auto number = number_of(step)) return constant(*number);
    if (step.kind == Kind::value) return arguments_.values[step.id];
    if (step.op == &mul_def()) return spell_product(step);
    if (step.op == &div_def()) return spell_quotient(step);
    if (step.op == &pow_def()) return spell_power(spell(step.operands[0]), step.operands[1].number);
    if (step.op == &sub_def() && by_chance()) {
      const ValueId first = spell(step.operands[0]);
      return add(add_def(), {first, add(neg_def(), {spell(step.operands[1])})});
    }
    std::vector<ValueId> operands;
    for (const FormulaStep& operand : step.operands) operands.push_back(spell(operand));
    if (step.op == &add_def() && by_chance()) std::swap(operands[0], operands[1]);
    Attributes attributes;
    for (const auto& [spec, number] : step.attributes) attributes.set(spec->name, static_cast<float>(number));
    return add(*step.op, std::move(operands), std::move(attributes));
  }

  std::vector<ValueId> made;

 private:
  bool by_chance() { return choices_.pick_at_random(3) == 1; }

  // Of arithmetic on numbers and parameters.
  std::optional<double> number_of(const FormulaStep& step) const {
    if (step.kind == Kind::number) return step.number;
    if (step.kind == Kind::parameter) return arguments_.parameters[step.id];
    std::vector<double> numbers;
    for (const FormulaStep& operand : step.operands) {
      const auto number = number_of(operand);
      if (!number) return std::nullopt;
      numbers.push_back(*number);
    }
    if (step.op == &neg_def()) return -numbers[0];
    if (step.op == &mul_def()) return numbers[0] * numbers[1];
    if (step.op == &div_def()) return numbers[0] / numbers[1];
    return std::nullopt;
  }

  ValueId add(const OpDef& op, std::vector<ValueId> inputs, Attributes attributes = {}) {
    made.push_back(graph_.node(graph_.add_node(op, std::move(inputs), std::move(attributes))).output(0));
    return made.back();
  }

  ValueId constant(double number) {
    Tensor tensor = Tensor::zeros(arguments_.dtype, choices_.rarely(8) ? Dims{1} : Dims{});
    dispatch<NumericTypes>(arguments_.dtype,
                           [&]<class T>(TypeTag<T>) { tensor.mutable_data<T>()[0] = static_cast<T>(number); });
    return graph_.add_constant(std::move(tensor));
  }

  // Anything in any order and with any brackets; a number may divide.
  ValueId spell_product(const FormulaStep& step) {
    std::vector<const FormulaStep*> factors;
    collect_factors(step, factors);
    while (factors.size() > 1 && choices_.rarely(2)) {
      std::swap(factors[choices_.pick(factors.size())], factors[choices_.pick(factors.size())]);
    }
    return spell_factors(factors, 0, factors.size());
  }

  void collect_factors(const FormulaStep& step, std::vector<const FormulaStep*>& factors) const {
    if (step.op != &mul_def() || step.kind != Kind::call || number_of(step)) return factors.push_back(&step);
    for (const FormulaStep& operand : step.operands) collect_factors(operand, factors);
  }

  ValueId spell_factors(const std::vector<const FormulaStep*>& factors, size_t first, size_t last) {
    if (last - first == 1) return spell(*factors[first]);
    const size_t middle = last - 1 - choices_.pick_at_random(last - first - 1);
    const ValueId left = spell_factors(factors, first, middle);
    const auto number = last - middle == 1 ? number_of(*factors[middle]) : std::nullopt;
    if (number && *number != 0 && by_chance()) return add(div_def(), {left, constant(1 / *number)});
    return add(mul_def(), {left, spell_factors(factors, middle, last)});
  }

  ValueId spell_quotient(const FormulaStep& step) {
    const ValueId left = spell(step.operands[0]);
    const auto number = number_of(step.operands[1]);
    if (number && *number != 0 && by_chance()) return add(mul_def(), {left, constant(1 / *number)});
    const ValueId right = spell(step.operands[1]);
    if (!number && by_chance()) return add(mul_def(), {add(reciprocal_def(), {right}), left});
    return add(div_def(), {left, right});
  }

  ValueId spell_power(ValueId base, double exponent) {
    if (exponent == std::floor(exponent) && exponent > 1 && by_chance()) {
      ValueId product = base;
      for (int k = 1; k < static_cast<int>(exponent); ++k) product = add(mul_def(), {product, base});
      return product;
    }
    if (exponent == -0.5 && by_chance()) return add(reciprocal_def(), {add(sqrt_def(), {base})});
    if (exponent == -0.5 && by_chance()) return add(div_def(), {constant(1), add(sqrt_def(), {base})});
    return add(pow_def(), {base, constant(exponent)});
  }

  Graph& graph_;
  const FormulaArguments& arguments_;
  Choices& choices_;
};

}  // namespace

std::vector<ValueId> spell_formula(Graph& graph, const FormulaStep& written, const FormulaArguments& arguments,
                                   Choices& choices) {
  Speller speller(graph, arguments, choices);
  speller.spell(written);
  return std::move(speller.made);
}

}  // namespace autograph
