#include "optimize/rules/pattern/match_formula.h"

#include <algorithm>
#include <cmath>

#include "optimize/match.h"
#include "optimize/rules/pattern/read_formula.h"

namespace autograph {
namespace {

using Kind = Factor::Kind;
using Next = FunctionRef<void()>;

bool is_number(const Term& term) {
  return std::all_of(term.factors.begin(), term.factors.end(),
                     [](const Factor& factor) { return factor.kind == Kind::parameter; });
}

// The variable of a formula that is a variable and nothing else.
std::optional<uint32_t> lone_variable(const Sum& sum) {
  if (sum.terms.size() != 1 || sum.terms[0].number != 1 || sum.terms[0].factors.size() != 1) return std::nullopt;
  const Factor& factor = sum.terms[0].factors[0];
  return factor.kind == Kind::value && factor.exponent == 1 ? std::optional(factor.id) : std::nullopt;
}

// Finds partners: each pattern term a term of the graph, each factor a factor. A bit for each that is taken.
using Taken = uint32_t;
bool is_taken(Taken taken, size_t i) { return ((taken >> i) & 1) != 0; }

class Matcher {
 public:
  Matcher(const Graph& graph, ValueId root, FormulaVariables& variables, FormulaFindings& findings)
      : graph_(graph), root_(root), dtype_(graph.type(root).dtype()), variables_(variables), findings_(findings) {}

  void match(const PatternFormula& formula, Next found) {
    const auto settled = [&] { settle(0, found); };
    match_value(formula.sum, root_, settled);
  }

 private:
  // A number of the graph, and the term of the pattern that says what it must be.
  struct Claim {
    double actual;
    const Term* expected;
  };

  void match_value(const Sum& pattern, ValueId v, Next next) {
    const auto variable = lone_variable(pattern);
    const size_t num_bound = variables_.num_bound();
    if (variable && v != root_) {
      if (variables_.bind(*variable, v)) next();
      return variables_.unbind_to(num_bound);
    }
    const size_t mark = findings_.inner.size();
    const auto is_known = [&](ValueId value) { return variables_.is_bound(value); };
    Sum sum = read_formula(graph_, v, {is_known, is_affine_in_unbound(pattern), v == root_}, findings_.inner);
    if (v == root_ && findings_.inner.size() > mark) findings_.inner.pop_back();  // the root is the match's own node
    match_sum(pattern, sum, next);
    findings_.inner.resize(mark);
  }

  // Of a x + b, x is what no number is added to or multiplied with any more.
  bool is_affine_in_unbound(const Sum& pattern) const {
    const Factor* x = nullptr;
    for (const Term& term : pattern.terms) {
      for (const Factor& factor : term.factors) {
        if (factor.kind == Kind::parameter) continue;
        if (x || factor.kind != Kind::value || factor.exponent != 1) return false;
        x = &factor;
      }
    }
    return x && !variables_.bound(x->id).is_valid();
  }

  void match_sum(const Sum& pattern, const Sum& sum, Next next) {
    if (sum.terms.size() <= pattern.terms.size()) match_terms(pattern, sum, 0, 0, next);
  }

  void match_terms(const Sum& pattern, const Sum& sum, size_t i, Taken taken, Next next) {
    if (i == pattern.terms.size()) {
      if (taken == (Taken{1} << sum.terms.size()) - 1) next();
      return;
    }
    const Term& term = pattern.terms[i];
    for (size_t k = 0; k < sum.terms.size(); ++k) {
      if (is_taken(taken, k)) continue;
      const auto rest = [&] { match_terms(pattern, sum, i + 1, taken | (Taken{1} << k), next); };
      match_term(term, sum.terms[k], rest);
    }
    // A number that the model chooses may be 0, and then is not there.
    const auto without = [&] { match_terms(pattern, sum, i + 1, taken, next); };
    if (is_number(term) && !term.factors.empty()) claim({0, &term}, without);
  }

  void match_term(const Term& pattern, const Term& term, Next next) {
    const auto num_parameters = std::count_if(pattern.factors.begin(), pattern.factors.end(),
                                              [](const Factor& f) { return f.kind == Kind::parameter; });
    if (pattern.factors.size() - static_cast<size_t>(num_parameters) != term.factors.size()) return;
    const auto then = [&] { claim({term.number, &pattern}, next); };
    match_factors(pattern, term, 0, 0, then);
  }

  void match_factors(const Term& pattern, const Term& term, size_t i, Taken taken, Next next) {
    while (i < pattern.factors.size() && pattern.factors[i].kind == Kind::parameter) ++i;
    if (i == pattern.factors.size()) return next();
    for (size_t k = 0; k < term.factors.size(); ++k) {
      if (is_taken(taken, k) || term.factors[k].exponent != pattern.factors[i].exponent) continue;
      const auto rest = [&] { match_factors(pattern, term, i + 1, taken | (Taken{1} << k), next); };
      match_factor(pattern.factors[i], term.factors[k], rest);
    }
  }

  void match_factor(const Factor& pattern, const Factor& factor, Next next) {
    const bool is_value = factor.id != Factor::kNothing;
    if (pattern.kind == Kind::group) {
      if (factor.kind == Kind::group) return match_sum(*pattern.group, *factor.group, next);
      return match_sum(*pattern.group, Sum::of(Factor{Kind::value, factor.id}), next);
    }
    if (pattern.kind == Kind::call && factor.kind == Kind::value) return match_call(*pattern.call, {factor.id}, next);
    if (pattern.kind != Kind::value || !is_value) return;
    const size_t mark = variables_.num_bound();
    if (variables_.bind(pattern.id, ValueId{factor.id})) next();
    variables_.unbind_to(mark);
  }

  void match_call(const FormulaCall& call, ValueId v, Next next) {
    const Node* node = v == root_ ? made_by(graph_, v, *call.op) : made_once_by(graph_, v, *call.op);
    if (!node || node->inputs().size() != call.arguments.size() || !has_attributes(call, *node)) return;
    const size_t mark = findings_.inner.size();
    const auto then = [&] {
      if (v != root_) findings_.inner.push_back(graph_.value(v).producer());
      next();
      if (v != root_) findings_.inner.pop_back();
    };
    match_arguments(call, *node, 0, then);
    findings_.inner.resize(mark);
  }

  void match_arguments(const FormulaCall& call, const Node& node, size_t i, Next next) {
    if (i == call.arguments.size()) return next();
    if (!node.input(i).is_valid()) return;
    const auto rest = [&] { match_arguments(call, node, i + 1, next); };
    match_value(call.arguments[i], node.input(i), rest);
  }

  bool has_attributes(const FormulaCall& call, const Node& node) const {
    return std::all_of(call.op->attributes.begin(), call.op->attributes.end(), [&](const AttributeSpec& spec) {
      const auto named = std::find_if(call.attributes.begin(), call.attributes.end(),
                                      [&](const auto& attribute) { return attribute.first == &spec; });
      if (named != call.attributes.end()) {
        return is_close(static_cast<double>(node.attributes().real(spec.name)), named->second, dtype_);
      }
      const AttributeValue* given = node.attributes().find(spec.name);
      return !given || (spec.default_value && equal(*given, *spec.default_value));
    });
  }

  // ---- Numbers ---------------------------------------------------------------------------------------------------

  // What the term says as far as it is known, and the parameter that is not; the second is null when all are, and the
  // claim must wait (nothing) when there are several.
  struct Known {
    double number;
    const Factor* open;
  };

  std::optional<Known> known_part(const Term& term) const {
    Known known{term.number, nullptr};
    for (const Factor& factor : term.factors) {
      if (factor.kind != Kind::parameter) continue;
      if (const auto& value = findings_.parameters[factor.id]) {
        known.number *= std::pow(*value, factor.exponent);
      } else if (known.open) {
        return std::nullopt;
      } else {
        known.open = &factor;
      }
    }
    return known;
  }

  void claim(const Claim& claim, Next next) {
    const auto known = known_part(*claim.expected);
    if (known) return check(claim, *known, next);
    open_.push_back(claim);
    next();
    open_.pop_back();
  }

  void check(const Claim& claim, const Known& known, Next next) {
    if (!known.open) {
      if (is_close(claim.actual, known.number, dtype_)) next();
      return;
    }
    const double value = std::pow(claim.actual / known.number, 1 / known.open->exponent);
    std::optional<double>& parameter = findings_.parameters[known.open->id];
    if (!std::isfinite(value)) return;
    parameter = value;
    next();
    findings_.parameters[known.open->id].reset();
  }

  // What had to wait, when all the rest is known.
  void settle(size_t i, Next found) {
    if (i == open_.size()) return found();
    const auto known = known_part(*open_[i].expected);
    const auto rest = [&] { settle(i + 1, found); };
    if (known) check(open_[i], *known, rest);
  }

  const Graph& graph_;
  const ValueId root_;
  const DType dtype_;
  FormulaVariables& variables_;
  FormulaFindings& findings_;
  std::vector<Claim> open_;
};

}  // namespace

void match_formula(const Graph& graph, const PatternFormula& formula, ValueId root, FormulaVariables& variables,
                   FormulaFindings& findings, FunctionRef<void()> found) {
  Matcher(graph, root, variables, findings).match(formula, found);
}

}  // namespace autograph
