// The texts of rules, read: what a pattern or a replacement says, statement by statement. See rule.h for the language.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/op_def.h"
#include "optimize/rules/pattern/formula.h"

namespace autograph {

/// What a statement's op may be.
enum class OpClass : uint8_t {
  named,   ///< One op.
  unary,   ///< `unary<f>`: any elementwise op with one input and one output.
  binary,  ///< `binary<f>`: any elementwise op with two inputs and one output.
};

/// A value variable.
struct PatternValue {
  std::string name;
  bool is_weight = false;  ///< `$name`: depends on constants alone.
  bool is_list = false;    ///< `name...`: all inputs from here on, or all outputs.
  int statement = -1;      ///< The statement that makes it; -1: it comes from outside.
  int slot = 0;            ///< Which output of that statement.
};

/// An input of a statement.
struct PatternOperand {
  enum class Kind : uint8_t { value, absent, number, parameter };
  Kind kind = Kind::value;
  int value = -1;     ///< Index of the variable; of a parameter among the parameters.
  double number = 0;  ///< A constant of one element with this value.
};

/// An attribute of a statement: a variable, a formula of parameters, or a literal.
struct PatternAttribute {
  const AttributeSpec* spec = nullptr;
  int variable = -1;  ///< -1: none.
  std::shared_ptr<const PatternFormula> formula = {};
  AttributeValue literal;  ///< An integer, for a list of integers, stands for any number of them.
};

/// `y = op[...](...)`; `y = {...}`; without an op or a formula the value itself: `y = x`.
struct PatternStatement {
  OpClass op_class = OpClass::named;
  const OpDef* op = nullptr;  ///< Null for classes, formulas, and for `y = x`.
  std::shared_ptr<const PatternFormula> formula = {};
  int op_variable = -1;  ///< For classes.
  std::vector<PatternAttribute> attributes;
  std::vector<PatternOperand> inputs;  ///< A list variable stands last. Of a formula its variables.
  std::vector<int> outputs;            ///< Indices of variables; a list variable stands alone.
  bool is_alias() const { return op_class == OpClass::named && !op && !formula; }
};

/// A pattern or a replacement.
struct Pattern {
  std::vector<PatternStatement> statements;  ///< Each after those whose values it reads.
  std::vector<PatternValue> values;
  std::vector<std::string> attributes;    ///< Names of attribute variables.
  std::vector<std::string> parameters;    ///< Names of numbers that the model chooses.
  std::vector<std::string> op_variables;  ///< Names of op variables.

  /// Index of a variable, or -1.
  int find_value(std::string_view name) const;
  int find_attribute(std::string_view name) const;
  int find_parameter(std::string_view name) const;
  int find_op_variable(std::string_view name) const;
};

/// Reads `text`; throws InternalError that shows the place when it is malformed.
Pattern parse_pattern(std::string_view text);

}  // namespace autograph
