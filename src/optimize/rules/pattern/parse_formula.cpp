// Formulas of patterns, read: `x * sigmoid(#a * x)`.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>

#include "base/check.h"
#include "ops/defs.h"
#include "optimize/rules/pattern/pattern.h"

namespace autograph {
namespace {

FormulaStep step_of(const OpDef& op, std::vector<FormulaStep> operands) {
  FormulaStep step;
  step.kind = FormulaStep::Kind::call;
  step.op = &op;
  step.operands = std::move(operands);
  return step;
}

FormulaStep number_step(double number) {
  FormulaStep step;
  step.number = number;
  return step;
}

class Parser {
 public:
  Parser(std::string_view text, Pattern& pattern) : text_(text), pattern_(pattern) {}

  FormulaStep parse() {
    skip_blanks();
    FormulaStep sum = read_sum();
    if (at_ < text_.size()) fail("expected the end");
    return sum;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("[rule] formula: {} at '{}' (in \"{}\")", what,
                                    at_ < text_.size() ? text_.substr(at_) : "the end", text_));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_blanks() {
    while (std::isspace(static_cast<unsigned char>(peek()))) ++at_;
  }

  bool accept(char symbol) {
    if (peek() != symbol) return false;
    ++at_;
    skip_blanks();
    return true;
  }

  void expect(char symbol) {
    if (!accept(symbol)) fail(fmt::format("expected '{}'", symbol));
  }

  std::string_view read_name() {
    const size_t start = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_') ++at_;
    if (at_ == start) fail("expected a name");
    const std::string_view name = text_.substr(start, at_ - start);
    skip_blanks();
    return name;
  }

  double read_number() {
    double number = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc()) fail("expected a number");
    at_ = static_cast<size_t>(end - text_.data());
    skip_blanks();
    return number;
  }

  FormulaStep read_sum() {
    FormulaStep sum = read_product();
    for (;;) {
      const bool is_sub = peek() == '-';
      if (!accept('+') && !accept('-')) return sum;
      sum = step_of(is_sub ? sub_def() : add_def(), {std::move(sum), read_product()});
    }
  }

  FormulaStep read_product() {
    FormulaStep product = read_power();
    for (;;) {
      const bool is_div = peek() == '/';
      if (!accept('*') && !accept('/')) return product;
      product = step_of(is_div ? div_def() : mul_def(), {std::move(product), read_power()});
    }
  }

  FormulaStep read_power() {
    if (accept('-')) return step_of(neg_def(), {read_power()});
    FormulaStep base = read_atom();
    return accept('^') ? step_of(pow_def(), {std::move(base), number_step(read_number())}) : base;
  }

  FormulaStep read_atom() {
    if (accept('(')) {
      FormulaStep inside = read_sum();
      expect(')');
      return inside;
    }
    if (accept('#')) return read_parameter();
    if (std::isdigit(static_cast<unsigned char>(peek()))) return number_step(read_number());
    const std::string_view name = read_name();
    return peek() == '(' || peek() == '[' ? read_call(name) : read_variable(name);
  }

  FormulaStep read_parameter() {
    const std::string name(read_name());
    auto& names = pattern_.parameters;
    const auto known = std::find(names.begin(), names.end(), name);
    FormulaStep step;
    step.kind = FormulaStep::Kind::parameter;
    step.id = static_cast<uint32_t>(known - names.begin());
    if (known == names.end()) names.push_back(name);
    return step;
  }

  FormulaStep read_variable(std::string_view name) {
    int index = pattern_.find_value(name);
    if (index < 0) {
      index = static_cast<int>(pattern_.values.size());
      pattern_.values.push_back({std::string(name)});
    }
    FormulaStep step;
    step.kind = FormulaStep::Kind::value;
    step.id = static_cast<uint32_t>(index);
    return step;
  }

  FormulaStep read_call(std::string_view name) {
    const OpDef* op = find_op(name);
    if (!op) fail(fmt::format("no op '{}' before", name));
    FormulaStep step = step_of(*op, {});
    if (accept('[')) {
      do {
        const std::string_view attribute = read_name();
        const AttributeSpec* spec = find_attribute(*op, attribute);
        if (!spec || spec->type != AttributeType::real) fail(fmt::format("no number '{}' before", attribute));
        expect('=');
        step.attributes.emplace_back(spec, read_number());
      } while (accept(','));
      expect(']');
    }
    expect('(');
    do {
      step.operands.push_back(read_sum());
    } while (accept(','));
    expect(')');
    return step;
  }

  std::string_view text_;
  size_t at_ = 0;
  Pattern& pattern_;
};

// What must come first: functions tell most, variables least.
int importance(const Factor& factor) {
  switch (factor.kind) {
    case Factor::Kind::call: return 3;
    case Factor::Kind::group: return 2;
    case Factor::Kind::value: return 1;
    case Factor::Kind::parameter: return 0;
  }
  return 0;
}

void sort_for_matching(Sum& sum) {
  for (Term& term : sum.terms) {
    std::stable_sort(term.factors.begin(), term.factors.end(),
                     [](const Factor& a, const Factor& b) { return importance(a) > importance(b); });
  }
  const auto leading = [](const Term& term) { return term.factors.empty() ? 0 : importance(term.factors[0]); };
  std::stable_sort(sum.terms.begin(), sum.terms.end(), [&](const Term& a, const Term& b) {
    return std::pair(leading(a), a.factors.size()) > std::pair(leading(b), b.factors.size());
  });
}

std::optional<Sum> sum_of(const FormulaStep& step);

std::optional<Sum> sum_of_call(const FormulaStep& step) {
  std::vector<Sum> operands;
  for (const FormulaStep& operand : step.operands) {
    auto sum = sum_of(operand);
    if (!sum) return std::nullopt;
    operands.push_back(std::move(*sum));
  }
  if (step.op == &add_def()) return plus(operands[0], 1, operands[1]);
  if (step.op == &sub_def()) return plus(operands[0], -1, operands[1]);
  if (step.op == &neg_def()) return plus({}, -1, operands[0]);
  if (step.op == &mul_def()) return times(operands[0], operands[1]);
  if (step.op == &sqrt_def()) return power(operands[0], 0.5);
  if (step.op == &pow_def()) return power(operands[0], step.operands[1].number);
  if (step.op == &div_def()) {
    const auto inverse = power(operands[1], -1);
    return inverse ? times(operands[0], *inverse) : std::nullopt;
  }
  for (Sum& operand : operands) sort_for_matching(operand);
  Factor factor{Factor::Kind::call};
  factor.call = std::make_shared<const FormulaCall>(FormulaCall{step.op, step.attributes, std::move(operands)});
  return Sum::of(std::move(factor));
}

std::optional<Sum> sum_of(const FormulaStep& step) {
  switch (step.kind) {
    case FormulaStep::Kind::number: return Sum::of(step.number);
    case FormulaStep::Kind::parameter: return Sum::of(Factor{Factor::Kind::parameter, step.id});
    case FormulaStep::Kind::value: return Sum::of(Factor{Factor::Kind::value, step.id});
    case FormulaStep::Kind::call: return sum_of_call(step);
  }
  return std::nullopt;
}

void collect_variables(const FormulaStep& step, std::vector<uint32_t>& variables) {
  const bool is_new = std::find(variables.begin(), variables.end(), step.id) == variables.end();
  if (step.kind == FormulaStep::Kind::value && is_new) variables.push_back(step.id);
  for (const FormulaStep& operand : step.operands) collect_variables(operand, variables);
}

// A lone function is its own root; anything else ends in arithmetic, or in the function where it has the factor 1.
std::vector<const OpDef*> root_ops_of(const Sum& sum) {
  const bool is_product = sum.terms.size() == 1 && !sum.terms[0].factors.empty();
  const Factor* lone = is_product ? &sum.terms[0].factors[0] : nullptr;
  std::vector<const OpDef*> ops;
  bool is_lone = lone != nullptr && lone->kind == Factor::Kind::call;
  for (size_t i = 1; is_lone && i < sum.terms[0].factors.size(); ++i) {
    is_lone = sum.terms[0].factors[i].kind == Factor::Kind::parameter;
  }
  if (is_lone) ops.push_back(lone->call->op);
  if (is_lone && sum.terms[0].factors.size() == 1 && sum.terms[0].number == 1) return ops;
  for (const OpDef* op : {&add_def(), &sub_def(), &mul_def(), &div_def(), &pow_def()}) ops.push_back(op);
  return ops;
}

}  // namespace

std::shared_ptr<const PatternFormula> parse_formula(std::string_view text, Pattern& pattern) {
  PatternFormula formula;
  formula.written = Parser(text, pattern).parse();
  const auto sum = sum_of(formula.written);
  AG_CHECK(sum && !sum->terms.empty(), "[rule] formula: too long, or no number: {}", text);
  formula.sum = *sum;
  sort_for_matching(formula.sum);
  collect_variables(formula.written, formula.variables);
  if (!formula.variables.empty()) formula.root_ops = root_ops_of(formula.sum);
  return std::make_shared<const PatternFormula>(std::move(formula));
}

}  // namespace autograph
