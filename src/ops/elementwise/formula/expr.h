// Symbolic expressions of elementwise formulas: what can be compared, differentiated and printed as source text.
//
// An Expr is immutable and shares its parts. Building one changes nothing in its form, so that evaluating it gives the
// bits of the formula that it was built from.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace autograph::formulas {

/// What a part of an expression computes from its operands. Truth values are 1 and 0.
enum class ExprOp : uint8_t {
  number,
  variable,
  add,
  sub,
  mul,
  div,
  neg,
  max,  ///< NaN where either is.
  min,  ///< NaN where either is.
  less,
  less_or_equal,
  equal,
  is_nan,
  both,
  either,
  negated,
  select,  ///< a != 0 ? b : c.
  abs,
  sqrt,
  exp,
  expm1,
  log,
  log1p,
  erf,
  erfc,
  tanh,
  sin,
  cos,
  floor,
  ceil,
  round,  ///< Halves to the even neighbour.
  pow,
};

/// A number, a variable, or an operation on expressions; or nothing.
class Expr {
 public:
  Expr() = default;
  explicit Expr(double number);
  explicit Expr(ExprOp op, std::vector<Expr> operands);
  static Expr variable(std::string_view name);

  bool is_present() const { return node_ != nullptr; }
  ExprOp op() const;
  /// Of a number.
  double number() const;
  /// Of a variable.
  const std::string& name() const;
  const std::vector<Expr>& operands() const;
  /// Is it this number?
  bool is(double number) const;
  /// Tells shared parts apart.
  const void* identity() const { return node_.get(); }

 private:
  struct Node;
  std::shared_ptr<const Node> node_;
};

/// Have they the same form?
bool same_form(const Expr& a, const Expr& b);

/// The parts of `root`, each once, operands before what reads them; the last one is `root`.
std::vector<Expr> parts_in_order(const Expr& root);

/// Variables by name, and what stands for them.
using Bindings = std::vector<std::pair<std::string, Expr>>;

/// `expression` with other expressions for variables.
Expr substitute(const Expr& expression, const Bindings& bindings);

/// Is `expression` the `pattern` with expressions for its variables? A variable that occurs twice stands for the same
/// twice; numbers must be equal. `known` are those already decided.
std::optional<Bindings> match(const Expr& pattern, const Expr& expression, Bindings known = {});

/// The same value where all is finite, in fewer operations: numbers are folded, neutral operands left out.
Expr simplified(const Expr& expression);

/// d expression / d variable, simplified. Piecewise formulas have the derivative of the piece, |x| has 0 at 0.
Expr derivative(const Expr& expression, std::string_view variable);

/// Which language a kernel is printed in.
enum class CDialect : uint8_t {
  c,       ///< C and C++ with math.h; CUDA and HIP read it, too.
  opencl,  ///< OpenCL C, whose functions have no suffix for float.
};

/// The numbers that a printed function computes with.
struct CNumber {
  enum class Kind : uint8_t {
    f32,
    f64,
    whole,  ///< An integer that wraps around, divided by 0 gives 0.
  };
  Kind kind = Kind::f32;
  std::string_view type = "float";           ///< As the text knows it.
  std::string_view unsigned_type = "float";  ///< Of an integer: an unsigned type of at least 32 bits that holds it.
};

/// Can `expression` be computed with integers?
bool is_of_whole_numbers(const Expr& expression);

/// A function `name` that computes `expression`: `float name(float x, float alpha) {...}`. Functions of integers are
/// given as in formulas.h. Throws InternalError for a variable that `arguments` lacks.
std::string c_function(const Expr& expression, std::string_view name, std::span<const std::string> arguments,
                       CDialect dialect = CDialect::c, const CNumber& number = {});

/// `expression` ready to be evaluated many times, with T = float or double for numbers.
template <class T>
class Evaluator {
 public:
  /// `variables` in the order in which their values will come.
  Evaluator(const Expr& expression, std::span<const std::string> variables);
  T operator()(std::span<const T> values) const;

 private:
  struct Step {
    ExprOp op;
    T number = 0;
    uint32_t operands[3] = {};  // steps; of a variable: its place among the values
  };
  std::vector<Step> steps_;
  mutable std::vector<T> results_;
};

// ---- What formulas-inl.h needs ---------------------------------------------------------------------------------

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr operator-(const Expr& a);
Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr operator==(const Expr& a, const Expr& b);
Expr operator!=(const Expr& a, const Expr& b);
Expr is_nan(const Expr& x);
Expr both(const Expr& a, const Expr& b);
Expr either(const Expr& a, const Expr& b);
Expr select(const Expr& condition, const Expr& a, const Expr& b);
Expr at_least(const Expr& x, const Expr& bound);
Expr at_most(const Expr& x, const Expr& bound);
/// Nothing bounds nothing, here and below.
Expr max_nan(const Expr& a, const Expr& b);
Expr min_nan(const Expr& a, const Expr& b);
Expr mul_add(const Expr& a, const Expr& b, const Expr& c);
Expr abs(const Expr& x);
Expr sqrt(const Expr& x);
Expr exp(const Expr& x);
Expr exp_nonpositive(const Expr& x);
Expr expm1(const Expr& x);
Expr expm1_nonpositive(const Expr& x);
Expr log(const Expr& x);
Expr log1p_unit(const Expr& x);
Expr erf(const Expr& x);
Expr erfc(const Expr& x);
Expr tanh(const Expr& x);
Expr sin(const Expr& x);
Expr cos(const Expr& x);
Expr floor(const Expr& x);
Expr ceil(const Expr& x);
Expr round(const Expr& x);
Expr pow(const Expr& a, const Expr& b);

}  // namespace autograph::formulas
