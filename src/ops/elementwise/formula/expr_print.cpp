// Expressions as source text in C.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include <fmt/core.h>

#include "base/check.h"
#include "base/join.h"
#include "ops/elementwise/formula/expr.h"

namespace autograph::formulas {
namespace {

// In C, functions of float end in f; OpenCL knows the type of what it calls them with.
std::string_view function_name(ExprOp op) {
  switch (op) {
    case ExprOp::abs: return "fabs";
    case ExprOp::sqrt: return "sqrt";
    case ExprOp::exp: return "exp";
    case ExprOp::expm1: return "expm1";
    case ExprOp::log: return "log";
    case ExprOp::log1p: return "log1p";
    case ExprOp::erf: return "erf";
    case ExprOp::erfc: return "erfc";
    case ExprOp::tanh: return "tanh";
    case ExprOp::sin: return "sin";
    case ExprOp::cos: return "cos";
    case ExprOp::floor: return "floor";
    case ExprOp::ceil: return "ceil";
    case ExprOp::round: return "rint";
    case ExprOp::pow: return "pow";
    default: return "";
  }
}

std::string_view sign_of(ExprOp op) {
  switch (op) {
    case ExprOp::add: return "+";
    case ExprOp::sub: return "-";
    case ExprOp::mul: return "*";
    case ExprOp::div: return "/";
    case ExprOp::less: return "<";
    case ExprOp::less_or_equal: return "<=";
    case ExprOp::equal: return "==";
    case ExprOp::both: return "&&";
    case ExprOp::either: return "||";
    default: return "";
  }
}

bool is_truth(const Expr& x) {
  switch (x.op()) {
    case ExprOp::less:
    case ExprOp::less_or_equal:
    case ExprOp::equal:
    case ExprOp::is_nan:
    case ExprOp::both:
    case ExprOp::either:
    case ExprOp::negated: return true;
    default: return false;
  }
}

// Nine digits give back every float, 17 every double.
std::string literal(double value, const CNumber& number) {
  if (number.kind == CNumber::Kind::whole) return fmt::format("(({}){})", number.type, static_cast<int64_t>(value));
  const bool is_float = number.kind == CNumber::Kind::f32;
  if (is_float) value = static_cast<float>(value);
  if (std::isinf(value)) return value < 0 ? "-INFINITY" : "INFINITY";
  if (std::isnan(value)) return "NAN";
  std::string text = fmt::format("{:.{}g}", value, is_float ? 9 : 17);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + (is_float ? "f" : "");
}

class Printer {
 public:
  Printer(const Expr& root, CDialect dialect, const CNumber& number)
      : parts_(parts_in_order(root)), dialect_(dialect), number_(number) {
    for (const Expr& part : parts_) {
      for (const Expr& operand : part.operands()) ++reads_[operand.identity()];
    }
  }

  // Parts that are read twice get a name of their own.
  std::string body() {
    std::string lines;
    for (const Expr& part : parts_) {
      std::string text = text_of(part);
      if (reads_[part.identity()] > 1 && !part.operands().empty()) {
        const std::string name = fmt::format("t{}", next_++);
        lines += fmt::format("  const {} {} = {};\n", is_truth(part) ? "int" : number_.type, name, text);
        text = name;
      }
      texts_[part.identity()] = std::move(text);
    }
    return lines + fmt::format("  return {};\n", texts_.at(parts_.back().identity()));
  }

 private:
  std::string operand(const Expr& part, size_t slot) const { return texts_.at(part.operands()[slot].identity()); }

  // As a condition of C: numbers are compared with 0.
  std::string condition(const Expr& part, size_t slot) const {
    return is_truth(part.operands()[slot]) ? operand(part, slot)
                                           : fmt::format("({} != {})", operand(part, slot), literal(0, number_));
  }

  // The larger or smaller one, NaN where either is.
  std::string extreme(const Expr& part, std::string_view sign) const {
    const std::string a = operand(part, 0), b = operand(part, 1);
    if (is_whole()) return fmt::format("({0} {2} {1} ? {1} : {0})", a, b, sign);
    return fmt::format("(isnan({0}) ? {0} : isnan({1}) ? {1} : {0} {2} {1} ? {1} : {0})", a, b, sign);
  }

  std::string text_of(const Expr& part) const {
    switch (part.op()) {
      case ExprOp::number: return literal(part.number(), number_);
      case ExprOp::variable: return part.name();
      case ExprOp::neg: return negative(operand(part, 0));
      case ExprOp::max: return extreme(part, "<");
      case ExprOp::min: return extreme(part, ">");
      case ExprOp::is_nan: return is_whole() ? "0" : fmt::format("(isnan({}) != 0)", operand(part, 0));
      case ExprOp::negated: return fmt::format("!{}", condition(part, 0));
      case ExprOp::both:
      case ExprOp::either: return fmt::format("({} {} {})", condition(part, 0), sign_of(part.op()), condition(part, 1));
      case ExprOp::select: return fmt::format("({} ? {} : {})", condition(part, 0), operand(part, 1), operand(part, 2));
      default: return call_or_sign(part);
    }
  }

  bool is_whole() const { return number_.kind == CNumber::Kind::whole; }

  // Signed integers of C do not wrap around, unsigned ones do.
  std::string wrapped(std::string_view a, std::string_view sign, std::string_view b) const {
    return fmt::format("(({0})(({1}){2} {3} ({1}){4}))", number_.type, number_.unsigned_type, a, sign, b);
  }

  std::string negative(const std::string& x) const {
    return is_whole() ? wrapped("0", "-", x) : fmt::format("(-{})", x);
  }

  // The quotient by -1 may be too large by one.
  std::string quotient(const std::string& a, const std::string& b) const {
    const std::string minus_one = fmt::format("(({})-1)", number_.type);
    return fmt::format("({1} == 0 ? ({2})0 : {1} == {3} && {3} < 0 ? {4} : ({2})({0} / {1}))", a, b, number_.type,
                       minus_one, negative(a));
  }

  std::string of_whole(const Expr& part) const {
    const std::string a = operand(part, 0);
    const std::string zero = literal(0, number_);
    switch (part.op()) {
      case ExprOp::abs: return fmt::format("({} < {} ? {} : {})", a, zero, negative(a), a);
      case ExprOp::add:
      case ExprOp::sub:
      case ExprOp::mul: return wrapped(a, sign_of(part.op()), operand(part, 1));
      case ExprOp::div: return quotient(a, operand(part, 1));
      default: return fmt::format("({} {} {})", a, sign_of(part.op()), operand(part, 1));
    }
  }

  std::string call_or_sign(const Expr& part) const {
    if (is_whole()) return of_whole(part);
    const std::string_view sign = sign_of(part.op());
    if (!sign.empty()) return fmt::format("({} {} {})", operand(part, 0), sign, operand(part, 1));
    const std::string_view suffix = dialect_ == CDialect::c && number_.kind == CNumber::Kind::f32 ? "f" : "";
    const std::string rest = part.operands().size() > 1 ? ", " + operand(part, 1) : "";
    return fmt::format("{}{}({}{})", function_name(part.op()), suffix, operand(part, 0), rest);
  }

  std::vector<Expr> parts_;
  CDialect dialect_;
  CNumber number_;
  std::unordered_map<const void*, int> reads_;
  std::unordered_map<const void*, std::string> texts_;
  int next_ = 0;
};

}  // namespace

bool is_of_whole_numbers(const Expr& expression) {
  const std::vector<Expr> parts = parts_in_order(expression);
  return std::all_of(parts.begin(), parts.end(),
                     [](const Expr& part) { return part.op() == ExprOp::abs || function_name(part.op()).empty(); });
}

std::string c_function(const Expr& expression, std::string_view name, std::span<const std::string> arguments,
                       CDialect dialect, const CNumber& number) {
  std::string list;
  for (const std::string& argument : arguments) {
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", number.type, argument);
  }
  for (const Expr& part : parts_in_order(expression)) {
    const bool known =
        part.op() != ExprOp::variable || std::find(arguments.begin(), arguments.end(), part.name()) != arguments.end();
    AG_CHECK(known, "function {} has no argument {}", name, part.name());
  }
  AG_CHECK(number.kind != CNumber::Kind::whole || is_of_whole_numbers(expression),
           "function {} cannot be computed with integers", name);
  return fmt::format("{} {}({}) {{\n{}}}\n", number.type, name, list, Printer(expression, dialect, number).body());
}

}  // namespace autograph::formulas
