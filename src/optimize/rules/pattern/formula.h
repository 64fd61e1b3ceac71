// Formulas in patterns: arithmetic that matches whatever the order, brackets and place of constants in which a model
// spells it. `y = {x * sigmoid(#a * x)}` is one statement; see rule.h for the language.
//
// Patterns and graphs are compared as sums of products: products of sums are multiplied out, powers of sums stay as
// they are, divisors are powers of -1 and roots of 1/2. Functions that are no arithmetic are factors.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

struct FormulaCall;
struct Sum;

/// base ^ exponent.
struct Factor {
  enum class Kind : uint8_t {
    value,      ///< A variable of the pattern; a value of the graph.
    parameter,  ///< `#a`: a number that the model chooses. In patterns alone.
    call,       ///< A function of sums. In patterns alone: in a graph it is the value that it gives.
    group,      ///< A sum of several terms.
  };
  Kind kind = Kind::value;
  uint32_t id = kNothing;  ///< Of the variable, the parameter or the value; of a group the value that it is.
  std::shared_ptr<const FormulaCall> call = {};
  std::shared_ptr<const Sum> group = {};
  double exponent = 1;

  static constexpr uint32_t kNothing = UINT32_MAX;
};

/// number * factors[0] * factors[1] * ...
struct Term {
  double number = 1;
  std::vector<Factor> factors;
};

/// terms[0] + terms[1] + ...
struct Sum {
  std::vector<Term> terms;

  static Sum of(double number);
  static Sum of(Factor factor);
};

/// A call of a function; real attributes that it names are compared as numbers, others have their default.
struct FormulaCall {
  const OpDef* op = nullptr;
  std::vector<std::pair<const AttributeSpec*, double>> attributes;
  std::vector<Sum> arguments;
};

/// a + factor * b, like terms in one.
Sum plus(Sum a, double factor, const Sum& b);

/// a * b, multiplied out; nothing where that is long.
std::optional<Sum> times(const Sum& a, const Sum& b);

/// a ^ exponent; `value`, if it is one, is `a` itself. Nothing for what is no number (1 / 0).
std::optional<Sum> power(const Sum& a, double exponent, uint32_t value = Factor::kNothing);

/// A step of a formula as it was written; rules are tested on graphs that are spelled like this.
struct FormulaStep {
  enum class Kind : uint8_t { number, parameter, value, call };
  Kind kind = Kind::number;
  double number = 0;
  uint32_t id = 0;            ///< Of the parameter or the variable.
  const OpDef* op = nullptr;  ///< Of a call: arithmetic, too.
  std::vector<std::pair<const AttributeSpec*, double>> attributes;
  std::vector<FormulaStep> operands;
};

/// A formula of a pattern.
struct PatternFormula {
  FormulaStep written;
  Sum sum;
  std::vector<uint32_t> variables;     ///< Of the pattern, each once.
  std::vector<const OpDef*> root_ops;  ///< What a node may be that computes it.
};

struct Pattern;

/// Reads the text between the braces; new variables and parameters are added to `pattern`. Throws InternalError.
std::shared_ptr<const PatternFormula> parse_formula(std::string_view text, Pattern& pattern);

/// The number that a formula of numbers and parameters has.
double value_of(const PatternFormula& formula, const std::vector<double>& parameters);

}  // namespace autograph
