// A rule made ready for matching: texts read and checked against each other, roles of attributes looked up, and for
// each statement the order in which the others are reached from it.
#pragma once

#include <memory>

#include "optimize/rules/acting_attribute.h"
#include "optimize/rules/pattern/pattern.h"
#include "optimize/rules/rule.h"

namespace autograph {

/// How a statement is reached from those before it.
struct MatchStep {
  int statement = 0;
  int value = -1;            ///< The variable through which it is reached; -1 for the first one.
  bool is_producer = false;  ///< It makes the value; else it reads it.
};

constexpr size_t kMaxStatements = 8;  ///< Of a pattern.
constexpr size_t kMaxValues = 32;     ///< Variables of a pattern.

/// An attribute that a statement binds, demands, or leaves at its default.
struct CompiledAttribute {
  const AttributeSpec* spec = nullptr;
  AttributeRole role = AttributeRole::plain;
  int variable = -1;                        ///< -1: not a variable.
  const AttributeValue* literal = nullptr;  ///< Null as well: default.
};

struct CompiledRule {
  explicit CompiledRule(const Rule& source);
  CompiledRule(const CompiledRule&) = delete;
  CompiledRule& operator=(const CompiledRule&) = delete;

  const Rule* rule;
  Pattern before;
  Pattern after;                                           ///< Empty for rules with `build`.
  std::vector<int> outputs;                                ///< Variables of `before`.
  std::vector<std::vector<CompiledAttribute>> attributes;  ///< By statement; classes have none.
  std::vector<std::vector<MatchStep>> steps;  ///< By first statement; empty where not all are reached from there.
  std::vector<const OpDef*> needs;            ///< Ops that a graph with a match has.
  size_t best_start = 0;                      ///< The statement from which the fewest readers are looked through.
  std::vector<uint8_t> is_output;             ///< By variable of `before`.
  // Variables of `before` for those of `after`; -1: made in `after`.
  std::vector<int> after_values;
  std::vector<int> after_attributes;
  std::vector<int> after_parameters;
  std::vector<int> after_ops;      ///< Statement of `before` whose node has the op.
  std::vector<int> after_outputs;  ///< Variables of `after` for the outputs.

 private:
  void compile_attributes();
  void compile_needs();
  void compile_steps();
  std::vector<MatchStep> steps_from(int first) const;
  void compile_after();
};

/// Names of the values that the replacement provides.
std::vector<std::string_view> outputs_of(const Rule& rule, const Pattern& pattern);

/// A hash of what a pattern computes, in `outputs`, from values with these hashes; operands that commute may be
/// swapped. Attribute and op variables count by name.
uint64_t hash_result(const Pattern& pattern, std::vector<uint64_t> values, std::span<const int> outputs);

/// One number from two.
uint64_t mixed(uint64_t a, uint64_t b);

/// Does `op` belong to the class?
bool is_in_class(OpClass op_class, const Node& node);

/// The number of inputs of a node, without those at the end that are not given.
size_t num_given_inputs(const Node& node);

/// Does a statement say nothing about inputs behind those that it names? (Sizes of a split.)
bool leaves_inputs_open(const PatternStatement& statement);

}  // namespace autograph
