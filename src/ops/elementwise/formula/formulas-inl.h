// The formulas of elementwise ops, each written once for all kinds of number T. No guard and no namespace: a reader
// includes this file in a namespace in which the functions used here exist for its numbers:
// - formulas.h: elements of tensors, which the reference loops compute with (there the formulas mean what ops mean),
// - formula_table.h: symbolic expressions, which are matched, differentiated and printed as C,
// - backends/cpu/simd/elementwise/lanes-inl.h: vectors of f32,
// - prove/verify/exact/exact_elementwise.cpp: the exact numbers of the prover.
//
// `of` defines. `fast`, where there is one, is what kernels compute: the same but for a few units in the last place.
// select(c, a, b) is c ? a : b with both computed; at_least(x, bound) and at_most(x, bound) keep a NaN in x; max_nan
// and min_nan one in either; mul_add may round once or twice. exp_nonpositive(x) is e^x for x <= 0,
// expm1_nonpositive(x) e^x - 1 there and anything above, log1p_unit(x) is log(1 + x) for 0 <= x <= 1.
//
// A new formula stands in the list at the end, too.

// ---- Parts -----------------------------------------------------------------------------------------------------

// Between 0 and 1; NaN stays.
struct Unit {
  AG_FORMULA T of(T x) { return at_most(at_least(x, T(0)), T(1)); }
};

// ---- One operand -----------------------------------------------------------------------------------------------

struct Identity {
  static constexpr FormulaInfo kInfo{.op = "identity"};
  AG_FORMULA T of(T x) { return x; }
};

struct Neg {
  static constexpr FormulaInfo kInfo{.op = "neg"};
  AG_FORMULA T of(T x) { return -x; }
};

struct Abs {
  static constexpr FormulaInfo kInfo{.op = "abs"};
  AG_FORMULA T of(T x) { return abs(x); }
};

// NaN stays; both zeros give +0.
struct Sign {
  static constexpr FormulaInfo kInfo{.op = "sign"};
  AG_FORMULA T of(T x) { return select(is_nan(x), x, select(x < T(0), -T(1), select(x > T(0), T(1), T(0)))); }
};

struct Reciprocal {
  static constexpr FormulaInfo kInfo{.op = "reciprocal"};
  AG_FORMULA T of(T x) { return T(1) / x; }
};

struct Sqrt {
  static constexpr FormulaInfo kInfo{.op = "sqrt"};
  AG_FORMULA T of(T x) { return sqrt(x); }
};

struct Exp {
  static constexpr FormulaInfo kInfo{.op = "exp"};
  AG_FORMULA T of(T x) { return exp(x); }
};

struct Log {
  static constexpr FormulaInfo kInfo{.op = "log"};
  AG_FORMULA T of(T x) { return log(x); }
};

struct Erf {
  static constexpr FormulaInfo kInfo{.op = "erf"};
  AG_FORMULA T of(T x) { return erf(x); }
};

struct Sin {
  static constexpr FormulaInfo kInfo{.op = "sin"};
  AG_FORMULA T of(T x) { return sin(x); }
};

struct Cos {
  static constexpr FormulaInfo kInfo{.op = "cos"};
  AG_FORMULA T of(T x) { return cos(x); }
};

struct Floor {
  static constexpr FormulaInfo kInfo{.op = "floor"};
  AG_FORMULA T of(T x) { return floor(x); }
};

struct Ceil {
  static constexpr FormulaInfo kInfo{.op = "ceil"};
  AG_FORMULA T of(T x) { return ceil(x); }
};

struct Round {
  static constexpr FormulaInfo kInfo{.op = "round"};
  AG_FORMULA T of(T x) { return round(x); }
};

// ---- Activations -----------------------------------------------------------------------------------------------

struct Relu {
  static constexpr FormulaInfo kInfo{.op = "relu"};
  AG_FORMULA T of(T x) { return at_least(x, T(0)); }
};

struct LeakyRelu {
  static constexpr FormulaInfo kInfo{.op = "leaky_relu", .parameters = {"alpha"}};
  AG_FORMULA T of(T x, T alpha) { return select(x < T(0), alpha * x, x); }
};

struct Elu {
  static constexpr FormulaInfo kInfo{.op = "elu", .parameters = {"alpha"}};
  AG_FORMULA T of(T x, T alpha) { return select(x < T(0), alpha * expm1_nonpositive(x), x); }
};

struct Selu {
  static constexpr FormulaInfo kInfo{.op = "selu", .parameters = {"alpha", "gamma"}};
  AG_FORMULA T of(T x, T alpha, T gamma) { return gamma * select(x < T(0), alpha * expm1_nonpositive(x), x); }
};

struct Celu {
  static constexpr FormulaInfo kInfo{.op = "celu", .parameters = {"alpha"}};
  AG_FORMULA T of(T x, T alpha) { return select(x < T(0), alpha * expm1(x / alpha), x); }
};

// NaN gives 0.
struct ThresholdedRelu {
  static constexpr FormulaInfo kInfo{.op = "thresholded_relu", .parameters = {"alpha"}};
  AG_FORMULA T of(T x, T alpha) { return select(x > alpha, x, T(0)); }
};

struct HardSigmoid {
  static constexpr FormulaInfo kInfo{.op = "hard_sigmoid", .parameters = {"alpha", "beta"}};
  AG_FORMULA T of(T x, T alpha, T beta) { return Unit::of(mul_add(alpha, x, beta)); }
};

struct HardSwish {
  static constexpr FormulaInfo kInfo{.op = "hard_swish"};
  AG_FORMULA T of(T x) { return x * Unit::of(x / T(6) + T(0.5)); }
  AG_FORMULA T fast(T x) { return x * Unit::of(mul_add(x, T(1.0F / 6), T(0.5))); }
};

// With exp of a negative number only, so that it cannot overflow.
struct Sigmoid {
  static constexpr FormulaInfo kInfo{.op = "sigmoid"};
  AG_FORMULA T of(T x) {
    const T e = exp_nonpositive(-abs(x));
    return select(x < T(0), e / (T(1) + e), T(1) / (T(1) + e));
  }
  AG_FORMULA T fast(T x) { return T(1) / (T(1) + exp(-x)); }
};

struct Tanh {
  static constexpr FormulaInfo kInfo{.op = "tanh"};
  AG_FORMULA T of(T x) { return tanh(x); }
};

// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).
struct Softplus {
  static constexpr FormulaInfo kInfo{.op = "softplus"};
  AG_FORMULA T of(T x) { return at_least(x, T(0)) + log1p_unit(exp_nonpositive(-abs(x))); }
};

struct Softsign {
  static constexpr FormulaInfo kInfo{.op = "softsign"};
  AG_FORMULA T of(T x) { return x / (T(1) + abs(x)); }
};

struct Mish {
  static constexpr FormulaInfo kInfo{.op = "mish"};
  AG_FORMULA T of(T x) { return x * tanh(Softplus::of(x)); }
};

struct Swish {
  static constexpr FormulaInfo kInfo{.op = "swish", .parameters = {"alpha"}};
  AG_FORMULA T of(T x, T alpha) {
    const T e = exp_nonpositive(-abs(alpha * x));
    return select(alpha * x < T(0), x * e / (T(1) + e), x / (T(1) + e));
  }
  AG_FORMULA T fast(T x, T alpha) { return x / (T(1) + exp(-(alpha * x))); }
};

// x / 2 * (1 + erf(x / sqrt 2)): far below 0 nothing would be left of 1 + erf.
struct Gelu {
  static constexpr FormulaInfo kInfo{.op = "gelu", .attribute = "approximate", .text = "none"};
  AG_FORMULA T of(T x) { return x * T(0.5) * erfc(x * T(-0.70710678118654752440)); }
};

// x / 2 * (1 + tanh(k (x + 0.044715 x^3))) with k = sqrt(2 / pi): nor of 1 + tanh.
struct GeluTanh {
  static constexpr FormulaInfo kInfo{.op = "gelu", .attribute = "approximate", .text = "tanh"};
  AG_FORMULA T of(T x) {
    const T twice_k = T(2.82842712474619009760) * T(0.56418958354775628695);
    return x / (T(1) + exp(-twice_k * (x + T(0.044715) * x * x * x)));
  }
  AG_FORMULA T fast(T x) { return x / (T(1) + exp(-(T(2 * 0.79788456080286536F) * (x + x * x * (x * T(0.044715F)))))); }
};

// ---- Several operands ------------------------------------------------------------------------------------------

struct Add {
  static constexpr FormulaInfo kInfo{.op = "add", .operands = 2};
  AG_FORMULA T of(T a, T b) { return a + b; }
};

struct Sub {
  static constexpr FormulaInfo kInfo{.op = "sub", .operands = 2};
  AG_FORMULA T of(T a, T b) { return a - b; }
};

struct Mul {
  static constexpr FormulaInfo kInfo{.op = "mul", .operands = 2};
  AG_FORMULA T of(T a, T b) { return a * b; }
};

struct Div {
  static constexpr FormulaInfo kInfo{.op = "div", .operands = 2};
  AG_FORMULA T of(T a, T b) { return a / b; }
};

// Nothing times anything is nothing: what an infinite slope makes of a gradient that does not flow.
struct MulNoNan {
  static constexpr FormulaInfo kInfo{.op = "mul_no_nan", .operands = 2};
  AG_FORMULA T of(T a, T b) { return select(a == T(0), T(0), a * b); }
};

// How a gradient passes a rectifier whose output, or input, is b.
struct WherePositive {
  static constexpr FormulaInfo kInfo{.op = "where_positive", .operands = 2};
  AG_FORMULA T of(T a, T b) { return select(b > T(0), a, T(0)); }
};

struct Max {
  static constexpr FormulaInfo kInfo{.op = "max", .operands = 2, .fold = Fold::plain};
  AG_FORMULA T of(T a, T b) { return max_nan(a, b); }
};

struct Min {
  static constexpr FormulaInfo kInfo{.op = "min", .operands = 2, .fold = Fold::plain};
  AG_FORMULA T of(T a, T b) { return min_nan(a, b); }
};

struct Sum {
  static constexpr FormulaInfo kInfo{.op = "sum", .operands = 2, .fold = Fold::plain};
  AG_FORMULA T of(T a, T b) { return a + b; }
};

struct Mean {
  static constexpr FormulaInfo kInfo{.op = "mean", .operands = 2, .fold = Fold::average};
  AG_FORMULA T of(T a, T b) { return a + b; }
};

struct Pow {
  static constexpr FormulaInfo kInfo{.op = "pow", .operands = 2};
  AG_FORMULA T of(T a, T b) { return pow(a, b); }
};

struct Prelu {
  static constexpr FormulaInfo kInfo{.op = "prelu", .operands = 2};
  AG_FORMULA T of(T x, T slope) { return select(x < T(0), slope * x, x); }
};

struct Swiglu {
  static constexpr FormulaInfo kInfo{.op = "swiglu", .operands = 2, .parameters = {"alpha"}};
  AG_FORMULA T of(T a, T b, T alpha) { return Swish::of(a, alpha) * b; }
  AG_FORMULA T fast(T a, T b, T alpha) { return Swish::fast(a, alpha) * b; }
};

// A bound that is not given bounds nothing.
struct Clip {
  static constexpr FormulaInfo kInfo{.op = "clip", .operands = 3};
  AG_FORMULA T of(T x, T low, T high) { return min_nan(max_nan(x, low), high); }
};

// ---- Truth values ----------------------------------------------------------------------------------------------

struct Equal {
  static constexpr FormulaInfo kInfo{.op = "equal", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return a == b; }
};

struct Less {
  static constexpr FormulaInfo kInfo{.op = "less", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return a < b; }
};

struct LessOrEqual {
  static constexpr FormulaInfo kInfo{.op = "less_or_equal", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return a <= b; }
};

struct Greater {
  static constexpr FormulaInfo kInfo{.op = "greater", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return a > b; }
};

struct GreaterOrEqual {
  static constexpr FormulaInfo kInfo{.op = "greater_or_equal", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return a >= b; }
};

struct IsNan {
  static constexpr FormulaInfo kInfo{.op = "is_nan", .on_truth = true};
  AG_FORMULA auto of(T x) { return is_nan(x); }
};

struct Not {
  static constexpr FormulaInfo kInfo{.op = "not", .on_truth = true};
  AG_FORMULA auto of(T x) { return x == T(0); }
};

struct And {
  static constexpr FormulaInfo kInfo{.op = "and", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return both(a != T(0), b != T(0)); }
};

struct Or {
  static constexpr FormulaInfo kInfo{.op = "or", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return either(a != T(0), b != T(0)); }
};

// Where one is not what the other is.
struct Xor {
  static constexpr FormulaInfo kInfo{.op = "xor", .operands = 2, .on_truth = true};
  AG_FORMULA auto of(T a, T b) { return either(both(a != T(0), b == T(0)), both(a == T(0), b != T(0))); }
};

struct Where {
  static constexpr FormulaInfo kInfo{.op = "where", .operands = 3, .on_truth = true};
  AG_FORMULA T of(T condition, T a, T b) { return select(condition != T(0), a, b); }
};

// ---- Special cases of ops, which kernels choose ----------------------------------------------------------------

struct Square {
  static constexpr FormulaInfo kInfo{};
  AG_FORMULA T of(T x) { return x * x; }
};

struct Cube {
  static constexpr FormulaInfo kInfo{};
  AG_FORMULA T of(T x) { return x * x * x; }
};

// x ^ 0.5 as pow has it: infinite at -inf, +0 at -0.
struct SqrtOfPow {
  static constexpr FormulaInfo kInfo{};
  AG_FORMULA T of(T x) { return select(abs(x) == T(kInfinity), T(kInfinity), sqrt(x) + T(0)); }
};

struct Scale {
  static constexpr FormulaInfo kInfo{.parameters = {"factor"}};
  AG_FORMULA T of(T x, T factor) { return x * factor; }
};

struct Dequantize {
  static constexpr FormulaInfo kInfo{.parameters = {"zero", "scale"}};
  AG_FORMULA T of(T x, T zero, T scale) { return (x - zero) * scale; }
};

struct Quantize {
  static constexpr FormulaInfo kInfo{.parameters = {"scale", "zero"}};
  AG_FORMULA T of(T x, T scale, T zero) { return round(x / scale) + zero; }
};

// What a byte holds of it; NaN becomes the lowest one.
struct Saturate {
  static constexpr FormulaInfo kInfo{.parameters = {"lowest", "highest"}};
  AG_FORMULA T of(T x, T lowest, T highest) { return select(x > lowest, select(x < highest, x, highest), lowest); }
};

// NaN is not zero.
struct NotZero {
  static constexpr FormulaInfo kInfo{.on_truth = true};
  AG_FORMULA auto of(T x) { return x != T(0); }
};

using Formulas =
    FormulaList<Identity, Neg, Abs, Sign, Reciprocal, Sqrt, Exp, Log, Erf, Sin, Cos, Floor, Ceil, Round, Relu,
                LeakyRelu, Elu, Selu, Celu, ThresholdedRelu, HardSigmoid, HardSwish, Sigmoid, Tanh, Softplus, Softsign,
                Mish, Swish, Gelu, GeluTanh, Add, Sub, Mul, Div, MulNoNan, WherePositive, Max, Min, Sum, Mean, Pow,
                Prelu, Swiglu, Clip, Equal, Less, LessOrEqual, Greater, GreaterOrEqual, IsNan, Not, And, Or, Xor, Where,
                Square, Cube, SqrtOfPow, Scale, Dequantize, Quantize, Saturate, NotZero>;
