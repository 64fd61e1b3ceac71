#include "optimize/rules/pattern/pattern.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/check.h"

namespace autograph {
namespace {

int index_of(const std::vector<std::string>& names, std::string_view name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

int intern(std::vector<std::string>& names, std::string_view name) {
  const int known = index_of(names, name);
  if (known >= 0) return known;
  names.emplace_back(name);
  return static_cast<int>(names.size()) - 1;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Pattern parse() {
    skip_blanks();
    while (at_ < text_.size()) {
      read_statement();
      if (at_ < text_.size()) expect(';');
    }
    return std::move(pattern_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InternalError(fmt::format("[rule] pattern: {} at '{}' (in \"{}\")", what,
                                    at_ < text_.size() ? text_.substr(at_) : "the end", text_));
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }

  bool accept(std::string_view symbol) {
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    skip_blanks();
    return true;
  }

  void expect(char symbol) {
    if (!accept(std::string_view(&symbol, 1))) fail(fmt::format("expected '{}'", symbol));
  }

  bool at_name() const {
    return at_ < text_.size() && (std::isalpha(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_');
  }

  std::string_view read_name(const char* what) {
    const size_t start = at_;
    if (!at_name()) fail(fmt::format("expected {}", what));
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) ++at_;
    const std::string_view name = text_.substr(start, at_ - start);
    skip_blanks();
    return name;
  }

  // A number; `is_integer` tells whether it was written without a point.
  double read_number(bool& is_integer) {
    double number = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
    if (error != std::errc()) fail("expected a number");
    const std::string_view digits(begin, static_cast<size_t>(end - begin));
    is_integer = digits.find_first_of(".e") == std::string_view::npos;
    at_ += digits.size();
    skip_blanks();
    return number;
  }

  int64_t read_integer() {
    bool is_integer = false;
    const double number = read_number(is_integer);
    if (!is_integer) fail("expected an integer before");
    return static_cast<int64_t>(number);
  }

  // A variable that is read: known, or from outside.
  int read_value() {
    const bool is_weight = accept("$");
    const std::string_view name = read_name("a value");
    const bool is_list = accept("...");
    int index = pattern_.find_value(name);
    if (index < 0) {
      index = static_cast<int>(pattern_.values.size());
      pattern_.values.push_back({std::string(name), false, is_list});
    }
    PatternValue& value = pattern_.values[static_cast<size_t>(index)];
    if (value.is_list != is_list) fail(fmt::format("'{}' is a list in one place and a value in another", name));
    value.is_weight = value.is_weight || is_weight;
    return index;
  }

  int define_value(int slot) {
    const std::string_view name = read_name("the name of a result");
    const bool is_list = accept("...");
    if (pattern_.find_value(name) >= 0) fail(fmt::format("'{}' is made twice, or read before it is made", name));
    const auto statement = static_cast<int>(pattern_.statements.size());
    pattern_.values.push_back({std::string(name), false, is_list, statement, slot});
    return static_cast<int>(pattern_.values.size()) - 1;
  }

  void read_statement() {
    // Results are defined after the operands are read: "x = relu(x)" is an error then, as it should be.
    const size_t results_at = at_;
    skip_results();
    PatternStatement statement;
    if (text_.substr(at_, 1) == "{") {
      read_formula(statement);
    } else if (!read_op(statement)) {
      statement.inputs.push_back({PatternOperand::Kind::value, read_value()});
    } else {
      if (accept("[")) read_attributes(statement);
      expect('(');
      read_operands(statement);
    }
    const size_t end = at_;
    at_ = results_at;
    int slot = 0;
    do {
      statement.outputs.push_back(define_value(slot++));
    } while (accept(","));
    for (const int output : statement.outputs) {
      const bool is_list = pattern_.values[static_cast<size_t>(output)].is_list;
      if (is_list && statement.outputs.size() > 1) fail("a list of results must stand alone");
    }
    pattern_.statements.push_back(std::move(statement));
    at_ = end;
  }

  std::shared_ptr<const PatternFormula> read_braces() {
    expect('{');
    const size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) fail("expected '}'");
    const std::string_view formula = text_.substr(at_, end - at_);
    at_ = end + 1;
    skip_blanks();
    return parse_formula(formula, pattern_);
  }

  void read_formula(PatternStatement& statement) {
    statement.formula = read_braces();
    for (const uint32_t variable : statement.formula->variables) {
      statement.inputs.push_back({PatternOperand::Kind::value, static_cast<int>(variable)});
    }
  }

  void skip_results() {
    do {
      read_name("the name of a result");
      accept("...");
    } while (accept(","));
    expect('=');
  }

  // False for `y = x`.
  bool read_op(PatternStatement& statement) {
    const size_t start = at_;
    if (text_.substr(at_, 1) == "$") return false;
    const std::string_view name = read_name("an op");
    if (name == "unary" || name == "binary") {
      statement.op_class = name == "unary" ? OpClass::unary : OpClass::binary;
      expect('<');
      statement.op_variable = intern(pattern_.op_variables, read_name("the name of an op"));
      expect('>');
      return true;
    }
    const bool is_call = at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '[');
    if (!is_call) {
      at_ = start;
      return false;
    }
    statement.op = find_op(name);
    if (!statement.op) fail(fmt::format("no op '{}' before", name));
    return true;
  }

  void read_attributes(PatternStatement& statement) {
    if (!statement.op) fail("a class of ops has no attributes of its own");
    do {
      const std::string_view name = read_name("an attribute");
      PatternAttribute attribute;
      attribute.spec = autograph::find_attribute(*statement.op, name);
      if (!attribute.spec) fail(fmt::format("op '{}' has no attribute '{}', before", statement.op->name, name));
      expect('=');
      if (text_.substr(at_, 1) == "{") {
        attribute.formula = read_braces();
        if (attribute.spec->type != AttributeType::real || !attribute.formula->variables.empty()) fail("no number");
      } else if (at_name()) {
        attribute.variable = intern(pattern_.attributes, read_name("a variable"));
      } else {
        attribute.literal = read_literal(attribute.spec->type);
      }
      statement.attributes.push_back(std::move(attribute));
    } while (accept(","));
    expect(']');
  }

  AttributeValue read_literal(AttributeType type) {
    if (accept("\"")) {
      const size_t end = text_.find('"', at_);
      const bool is_dtype = type == AttributeType::dtype;
      if (end == std::string_view::npos || !(is_dtype || type == AttributeType::text)) fail("text does not fit here");
      const std::string text(text_.substr(at_, end - at_));
      at_ = end + 1;
      skip_blanks();
      return is_dtype ? AttributeValue(dtype_from_string(text)) : AttributeValue(text);
    }
    if (accept("[")) {
      if (type != AttributeType::integers) fail("a list does not fit here");
      std::vector<int64_t> list;
      if (accept("]")) return list;
      do {
        list.push_back(read_integer());
      } while (accept(","));
      expect(']');
      return list;
    }
    if (type == AttributeType::real) {
      bool is_integer = false;
      return static_cast<float>(read_number(is_integer));
    }
    if (type != AttributeType::integer && type != AttributeType::integers) fail("a number does not fit here");
    return read_integer();
  }

  void read_operands(PatternStatement& statement) {
    if (accept(")")) return;
    bool had_list = false;
    do {
      if (had_list) fail("a list of operands must stand last");
      statement.inputs.push_back(read_operand());
      const PatternOperand& operand = statement.inputs.back();
      had_list =
          operand.kind == PatternOperand::Kind::value && pattern_.values[static_cast<size_t>(operand.value)].is_list;
    } while (accept(","));
    expect(')');
  }

  PatternOperand read_operand() {
    if (at_name() || text_.substr(at_, 1) == "$") {
      if (text_[at_] == '_' && (at_ + 1 == text_.size() || !std::isalnum(static_cast<unsigned char>(text_[at_ + 1])))) {
        accept("_");
        return {PatternOperand::Kind::absent, -1, 0};
      }
      return {PatternOperand::Kind::value, read_value(), 0};
    }
    if (accept("#")) return {PatternOperand::Kind::parameter, intern(pattern_.parameters, read_name("a number")), 0};
    bool is_integer = false;
    return {PatternOperand::Kind::number, -1, read_number(is_integer)};
  }

  std::string_view text_;
  size_t at_ = 0;
  Pattern pattern_;
};

}  // namespace

int Pattern::find_value(std::string_view name) const {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

int Pattern::find_attribute(std::string_view name) const { return index_of(attributes, name); }

int Pattern::find_parameter(std::string_view name) const { return index_of(parameters, name); }

int Pattern::find_op_variable(std::string_view name) const { return index_of(op_variables, name); }

Pattern parse_pattern(std::string_view text) { return Parser(text).parse(); }

}  // namespace autograph
