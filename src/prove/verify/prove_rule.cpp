#include "prove/verify/prove_rule.h"

#ifdef AG_HAS_Z3

#include <z3++.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/check.h"
#include "base/hash.h"
#include "base/join.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/rules/acting_attribute.h"
#include "optimize/rules/pattern/compiled_rule.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

constexpr unsigned kMaxInstances = 4000;  // of all laws together
constexpr unsigned kMaxMemoryMib = 512;
constexpr double kSecondsWithoutLaws = 0.2;
constexpr int kMaxRounds = 2;  // of laws that bring in ops of which further laws speak

// ---- Attributes as symbols -------------------------------------------------------------------------------------

struct AttributeText {
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(float value) const { return fmt::format("{:a}", value); }
  std::string operator()(const std::string& value) const { return "'" + value + "'"; }
  std::string operator()(DType value) const { return std::string(to_string(value)); }
  std::string operator()(const Tensor& value) const { return to_string(value.content_hash()); }
  std::string operator()(const GraphRef& value) const { return to_string(structural_hash(*value)); }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text = "[";
    for (const T& value : values) text += (*this)(value) + ",";
    return text + "]";
  }
};

// One text for each value; lists of ones and zeros have the same text at every rank.
std::string text_of(const std::optional<AttributeValue>& value, AttributeRole role) {
  if (!value) return "absent";
  const bool is_window_list = role == AttributeRole::ones || role == AttributeRole::pads;
  const auto* list = std::get_if<std::vector<int64_t>>(&*value);
  if (is_window_list && list && !list->empty() &&
      std::all_of(list->begin(), list->end(), [&](int64_t entry) { return entry == list->front(); })) {
    return fmt::format("{}*", list->front());
  }
  if (is_window_list && !list) return fmt::format("{}*", std::get<int64_t>(*value));
  return std::visit(AttributeText{}, *value);
}

std::string default_text(const AttributeSpec& spec, AttributeRole role) {
  if (role == AttributeRole::ones) return "1*";
  if (role == AttributeRole::pads) return "0*";
  if (role == AttributeRole::auto_pad) return text_of(std::string("NOTSET"), role);
  return text_of(spec.default_value, role);
}

// What a term calls: an op with its number of inputs, or one of the outputs of a split.
std::string function_name(const OpDef& op, size_t num_inputs, size_t slot, size_t num_outputs) {
  if (&op == &split_def()) return fmt::format("split{}#{}", num_outputs, slot);
  return fmt::format("{}/{}#{}", op.name, num_inputs, slot);
}

// ---- Terms -----------------------------------------------------------------------------------------------------

class Prover {
 public:
  Prover(const RuleMatch& match, double seconds)
      : match_(match),
        seconds_(seconds),
        tensor_(context_.uninterpreted_sort("tensor")),
        attribute_(context_.uninterpreted_sort("attribute")),
        solver_(context_),
        extent_(context_.function("extent", attribute_, tensor_, context_.int_sort())) {
    z3::params params(context_);
    params.set("mbqi", false);
    // The time limit alone is not looked at often enough: laws of sums make ever more terms.
    params.set("qi.max_instances", kMaxInstances);
    params.set("max_memory", kMaxMemoryMib);
    solver_.set(params);
    set_timeout(seconds);
  }

  Proof prove(std::span<const ProofAxiom> axioms) {
    Graph after = match_.graph();
    const std::vector<ValueId> before_outputs = match_.graph().outputs();
    if (!apply_rule(after, match_.in(after))) return Proof::not_covered;
    std::vector<z3::expr> before_terms;
    std::vector<z3::expr> after_terms;
    for (const ValueId output : before_outputs) before_terms.push_back(term(match_.graph(), output, before_values_));
    for (const ValueId output : after.outputs()) after_terms.push_back(term(after, output, after_values_));
    assert_relevant(axioms);
    for (const auto& [name, op] : commuting_) assert_commutes(name, *op);
    z3::expr differs = context_.bool_val(false);
    for (size_t i = 0; i < before_terms.size(); ++i) differs = differs || before_terms[i] != after_terms[i];
    solver_.add(differs);
    // Where functions are left without laws, only what is nearly equal can be proved, and that is quick.
    if (!is_covered()) set_timeout(std::min(seconds_, kSecondsWithoutLaws));
    if (solver_.check() == z3::unsat) return Proof::proved;
    return is_covered() ? Proof::not_proved : Proof::not_covered;
  }

 private:
  using Exprs = std::vector<z3::expr>;

  void set_timeout(double seconds) {
    z3::params params(context_);
    params.set("timeout", static_cast<unsigned>(seconds * 1000));
    solver_.set(params);
  }

  z3::expr symbol(const std::string& text) { return context_.constant(("a:" + text).c_str(), attribute_); }

  z3::expr call(const std::string& name, const Exprs& arguments) {
    z3::sort_vector domain(context_);
    z3::expr_vector values(context_);
    for (const z3::expr& argument : arguments) {
      domain.push_back(argument.get_sort());
      values.push_back(argument);
    }
    return context_.function(name.c_str(), domain, tensor_)(values);
  }

  // ---- Graphs: values become terms over constants and inputs.

  z3::expr term(const Graph& graph, ValueId id, std::map<uint32_t, z3::expr>& known) {
    const auto it = known.find(id.index);
    if (it != known.end()) return it->second;
    const Value& value = graph.value(id);
    z3::expr result = value.is_constant() ? constant_term(value.constant())
                      : value.is_input()  ? context_.constant(fmt::format("x{}", id.index).c_str(), tensor_)
                                          : node_term(graph, graph.node(value.producer()), value.slot(), known);
    const Dims dims = value.type().shape().static_dims();
    solver_.add(extent_(symbol("rank"), result) == context_.int_val(static_cast<int64_t>(dims.size())));
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const z3::expr at = symbol(text_of(static_cast<int64_t>(axis), AttributeRole::axis));
      solver_.add(extent_(at, result) == context_.int_val(dims[axis]));
    }
    known.emplace(id.index, result);
    return result;
  }

  z3::expr constant_term(const Tensor& tensor) {
    if (tensor.dtype() == DType::f32 && tensor.num_elements() == 1 && tensor.rank() == 0) {
      return number_term(tensor.to_f64()[0]);
    }
    return context_.constant(("c:" + to_string(tensor.content_hash())).c_str(), tensor_);
  }

  z3::expr number_term(double number) { return context_.constant(fmt::format("n:{}", number).c_str(), tensor_); }

  z3::expr node_term(const Graph& graph, const Node& node, uint32_t slot, std::map<uint32_t, z3::expr>& known) {
    const OpDef& op = node.op();
    Exprs arguments;
    for (const AttributeSpec& spec : op.attributes) {
      const AttributeRole role = attribute_role(op, spec);
      if (role == AttributeRole::ignored) continue;
      arguments.push_back(symbol(text_of(acting_attribute(graph, node, spec, role), role)));
    }
    size_t num_inputs = &op == &split_def() ? 1 : node.inputs().size();
    while (num_inputs > 0 && !node.input(num_inputs - 1).is_valid()) --num_inputs;
    if (&op == &split_def()) add_sizes(graph, node, arguments);
    for (size_t i = 0; i < num_inputs; ++i) {
      const ValueId input = node.input(i);
      arguments.push_back(input.is_valid() ? term(graph, input, known) : context_.constant("none", tensor_));
    }
    const std::string name = function_name(op, num_inputs, slot, node.outputs().size());
    used_.insert(name);
    moves_ = moves_ || is_one_of(op, {&concat_def(), &split_def(), &transpose_def(), &reshape_def()});
    keep_commuting(name, op, num_inputs);
    if (op.traits.elementwise && node.outputs().size() == 1)
      elementwise_.emplace(name, std::pair(&node.op(), num_inputs));
    return call(name, arguments);
  }

  void keep_commuting(const std::string& name, const OpDef& op, size_t num_inputs) {
    if (op.traits.commutative && num_inputs == 2) commuting_.emplace(name, &op);
  }

  // A split is what its axis and the extents of its pieces say.
  void add_sizes(const Graph& graph, const Node& node, Exprs& arguments) {
    const int64_t rank = graph.type(node.input(0)).shape().rank();
    const int64_t axis = node.attributes().integer("axis");
    for (const ValueId output : node.outputs()) {
      const Dims dims = graph.type(output).shape().static_dims();
      arguments.push_back(context_.int_val(dims[static_cast<size_t>(front_axis(axis, rank))]));
    }
  }

  // ---- Axioms: patterns become terms over quantified variables.

  struct Scope {
    std::map<std::string, z3::expr> values;
    std::map<std::string, z3::expr> attributes;
    Exprs bound;
    Exprs conditions;
    const OpDef* class_op = nullptr;
    // What the pieces of a split are called, by the variable of the piece: its axis and its extent.
    std::map<std::string, std::pair<z3::expr, z3::expr>> pieces;
  };

  z3::expr attribute_variable(Scope& scope, const std::string& name) {
    const auto it = scope.attributes.find(name);
    if (it != scope.attributes.end()) return it->second;
    const z3::expr variable = context_.constant(("A_" + name).c_str(), attribute_);
    scope.bound.push_back(variable);
    return scope.attributes.emplace(name, variable).first->second;
  }

  z3::expr value_variable(Scope& scope, const std::string& name) {
    const auto it = scope.values.find(name);
    if (it != scope.values.end()) return it->second;
    const z3::expr variable = context_.constant(("V_" + name).c_str(), tensor_);
    scope.bound.push_back(variable);
    return scope.values.emplace(name, variable).first->second;
  }

  Exprs statement_attributes(Scope& scope, const PatternStatement& statement, const OpDef& op) {
    Exprs arguments;
    for (const AttributeSpec& spec : op.attributes) {
      const AttributeRole role = attribute_role(op, spec);
      if (role == AttributeRole::ignored) continue;
      const auto named = std::find_if(statement.attributes.begin(), statement.attributes.end(),
                                      [&](const PatternAttribute& attribute) { return attribute.spec == &spec; });
      if (statement.op_class != OpClass::named) {
        arguments.push_back(attribute_variable(scope, "of_f_" + std::string(spec.name)));
      } else if (named == statement.attributes.end()) {
        arguments.push_back(symbol(default_text(spec, role)));
      } else if (named->variable < 0) {
        arguments.push_back(symbol(text_of(named->literal, role)));
      } else {
        arguments.push_back(attribute_variable(scope, current_->attributes[static_cast<size_t>(named->variable)]));
      }
    }
    return arguments;
  }

  void read_statement(Scope& scope, const PatternStatement& statement) {
    Exprs inputs;
    for (const PatternOperand& operand : statement.inputs) {
      AG_CHECK(operand.kind != PatternOperand::Kind::absent, "an axiom names all inputs");
      inputs.push_back(operand.kind == PatternOperand::Kind::number
                           ? number_term(operand.number)
                           : value_variable(scope, current_->values[static_cast<size_t>(operand.value)].name));
    }
    const auto result = [&](size_t slot) -> std::string {
      return current_->values[static_cast<size_t>(statement.outputs[slot])].name;
    };
    if (statement.is_alias()) {
      scope.values.insert_or_assign(result(0), inputs[0]);
      return;
    }
    const OpDef& op = statement.op ? *statement.op : *scope.class_op;
    Exprs arguments = statement_attributes(scope, statement, op);
    const size_t num_outputs = statement.outputs.size();
    if (&op == &split_def()) {
      for (size_t slot = 0; slot < num_outputs; ++slot) {
        const z3::expr size = context_.int_const(("S_" + result(slot)).c_str());
        scope.bound.push_back(size);
        arguments.push_back(size);
      }
    }
    arguments.insert(arguments.end(), inputs.begin(), inputs.end());
    for (size_t slot = 0; slot < num_outputs; ++slot) {
      const std::string name = function_name(op, inputs.size(), slot, num_outputs);
      if (statement.op) in_axioms_.insert(name);
      keep_commuting(name, op, inputs.size());
      scope.values.insert_or_assign(result(slot), call(name, arguments));
    }
  }

  static std::set<std::string> functions_of(const Pattern& pattern) {
    std::set<std::string> names;
    for (const PatternStatement& statement : pattern.statements) {
      if (!statement.op) continue;  // classes are those of the terms
      for (size_t slot = 0; slot < statement.outputs.size(); ++slot) {
        names.insert(function_name(*statement.op, statement.inputs.size(), slot, statement.outputs.size()));
      }
    }
    return names;
  }

  // Laws one side of which consists of functions that the terms have, and then those of what these bring in.
  void assert_relevant(std::span<const ProofAxiom> axioms) {
    std::set<std::string> reached = used_;
    std::vector<bool> is_asserted(axioms.size(), false);
    for (int round = 0; round < kMaxRounds; ++round) {
      std::set<std::string> next = reached;
      for (size_t i = 0; i < axioms.size(); ++i) {
        const Pattern before = parse_pattern(axioms[i].rule.before);
        const Pattern after = parse_pattern(axioms[i].rule.after);
        const auto left = functions_of(before);
        const auto right = functions_of(after);
        const bool has_left = std::includes(reached.begin(), reached.end(), left.begin(), left.end());
        const bool has_right =
            !right.empty() && std::includes(reached.begin(), reached.end(), right.begin(), right.end());
        if (is_asserted[i] || !(has_left || has_right)) continue;
        is_asserted[i] = true;
        next.insert(left.begin(), left.end());
        next.insert(right.begin(), right.end());
        assert_axiom(axioms[i], before, after);
      }
      reached = std::move(next);
    }
  }

  // Does a law speak of every function of the terms? Laws of classes count where the terms have something to move
  // functions past.
  bool is_covered() const {
    return std::all_of(used_.begin(), used_.end(), [&](const std::string& name) {
      return in_axioms_.contains(name) || (moves_ && elementwise_.contains(name));
    });
  }

  void assert_axiom(const ProofAxiom& axiom, const Pattern& before, const Pattern& after) {
    if (before.op_variables.empty()) return assert_equation(axiom, before, after, nullptr);
    // A law of a class of ops is one of each op that occurs.
    const bool unary = before.statements.back().op_class == OpClass::unary;
    for (const auto& [name, used] : elementwise_) {
      if (used.second == (unary ? 1U : 2U)) assert_equation(axiom, before, after, used.first);
    }
  }

  void assert_commutes(const std::string& name, const OpDef& op) {
    Scope scope;
    const z3::expr x = value_variable(scope, "x");
    const z3::expr y = value_variable(scope, "y");
    Exprs attributes;
    for (const AttributeSpec& spec : op.attributes)
      attributes.push_back(attribute_variable(scope, std::string(spec.name)));
    Exprs left = attributes;
    Exprs right = attributes;
    left.insert(left.end(), {x, y});
    right.insert(right.end(), {y, x});
    add_law(scope, call(name, left), call(name, right));
  }

  void assert_equation(const ProofAxiom& axiom, const Pattern& before, const Pattern& after, const OpDef* class_op) {
    Scope left;
    left.class_op = class_op;
    current_ = &before;
    for (const PatternStatement& statement : before.statements) read_statement(left, statement);
    // The right side speaks of the same variables, but makes values of its own.
    Scope right;
    right.class_op = class_op;
    right.attributes = left.attributes;
    for (const PatternValue& value : before.values) {
      if (value.statement < 0) right.values.emplace(value.name, left.values.at(value.name));
    }
    current_ = &after;
    for (const PatternStatement& statement : after.statements) read_statement(right, statement);
    AG_CHECK(right.bound.empty(), "axiom {}: the right side has variables of its own", axiom.rule.name);
    add_conditions(left, axiom.same_extents);
    for (const std::string_view output : outputs_of(axiom.rule, before)) {
      const std::string name(output);
      add_law(left, left.values.at(name), right.values.at(name));
    }
  }

  // "k a c; rank b d": along the axis k, a variable or a number; ranks are extents along an axis of their own.
  void add_conditions(Scope& scope, std::string_view text) {
    while (!text.empty()) {
      const size_t end = std::min(text.find(';'), text.size());
      std::string_view words = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      std::vector<std::string> parts;
      while (!words.empty()) {
        const size_t space = std::min(words.find(' '), words.size());
        if (space > 0) parts.emplace_back(words.substr(0, space));
        words.remove_prefix(std::min(space + 1, words.size()));
      }
      AG_CHECK(parts.size() == 3, "expected 'axis a b'");
      const auto variable = scope.attributes.find(parts[0]);
      const z3::expr axis = variable == scope.attributes.end() ? symbol(parts[0]) : variable->second;
      scope.conditions.push_back(extent_(axis, scope.values.at(parts[1])) == extent_(axis, scope.values.at(parts[2])));
    }
  }

  // For all variables: conditions imply left = right; looked at where either side occurs.
  void add_law(const Scope& scope, const z3::expr& left, const z3::expr& right) {
    z3::expr body = left == right;
    for (const z3::expr& condition : scope.conditions) body = !condition || body;
    std::vector<Z3_app> bound;
    for (const z3::expr& variable : scope.bound) bound.push_back(Z3_to_app(context_, variable));
    std::vector<Z3_pattern> patterns;
    for (const z3::expr* side : {&left, &right}) {
      if (!covers(*side, scope.bound)) continue;
      Z3_ast terms[] = {*side};
      patterns.push_back(Z3_mk_pattern(context_, 1, terms));
      Z3_inc_ref(context_, Z3_pattern_to_ast(context_, patterns.back()));
    }
    AG_CHECK(!patterns.empty(), "an axiom needs a side with all of its variables");
    const Z3_ast law = Z3_mk_forall_const(context_, 0, static_cast<unsigned>(bound.size()), bound.data(),
                                          static_cast<unsigned>(patterns.size()), patterns.data(), body);
    context_.check_error();
    solver_.add(z3::expr(context_, law));
    for (const Z3_pattern pattern : patterns) Z3_dec_ref(context_, Z3_pattern_to_ast(context_, pattern));
  }

  static void collect(const z3::expr& term, std::set<unsigned>& ids) {
    ids.insert(term.id());
    for (unsigned i = 0; term.is_app() && i < term.num_args(); ++i) collect(term.arg(i), ids);
  }

  // Is it a call, and does it have all the variables?
  static bool covers(const z3::expr& term, const Exprs& variables) {
    if (!term.is_app() || term.num_args() == 0) return false;
    std::set<unsigned> ids;
    collect(term, ids);
    return std::all_of(variables.begin(), variables.end(), [&](const z3::expr& v) { return ids.contains(v.id()); });
  }

  const RuleMatch& match_;
  double seconds_;
  z3::context context_;
  z3::sort tensor_;
  z3::sort attribute_;
  z3::solver solver_;
  z3::func_decl extent_;
  const Pattern* current_ = nullptr;
  std::map<uint32_t, z3::expr> before_values_;
  std::map<uint32_t, z3::expr> after_values_;
  std::set<std::string> used_;
  bool moves_ = false;  // do the terms have an op that functions can be moved past?
  std::map<std::string, const OpDef*> commuting_;
  std::set<std::string> in_axioms_;
  std::map<std::string, std::pair<const OpDef*, size_t>> elementwise_;
};

}  // namespace

Proof prove_rule(const RuleMatch& match, double seconds, std::span<const ProofAxiom> axioms) {
  try {
    return Prover(match, seconds).prove(axioms);
  } catch (const z3::exception& error) {
    throw InternalError(fmt::format("[rules] prover: {} (rule {})", error.msg(), match.rule().name));
  }
}

}  // namespace autograph

#else

namespace autograph {

Proof prove_rule(const RuleMatch&, double, std::span<const ProofAxiom>) { return Proof::not_built; }

}  // namespace autograph

#endif
