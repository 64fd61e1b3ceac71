// The readers of formulas against the reference loops: expressions and the C that they print. (Vectors of f32:
// tests/backends/cpu/simd/elementwise/formula_tiles_test.cpp; exact numbers: tests/prove/exact_formulas_test.cpp.)
#include "ops/elementwise/formula/formulas.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "autograph/random.h"
#include "ops/elementwise/formula/formula_table.h"
#include "ops/sample.h"
#include "support/kernels/formula_values.h"
#include "support/test_folder.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

using formulas::Expr;

bool same_bits(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// What the op's own loop makes of these operands; bool where the op has bools.
std::vector<float> by_reference(const OpDef& op, const Attributes& attributes, const FormulaValues& values) {
  std::vector<DType> dtypes;
  std::vector<Tensor> operands;
  for (size_t k = 0; k < values.operands.size(); ++k) {
    const Param& param = op.inputs[std::min(k, op.inputs.size() - 1)];
    const auto type =
        std::find_if(op.types.begin(), op.types.end(), [&](const TypeVar& t) { return t.name == param.type_var; });
    const bool is_float = type->allowed.contains(DType::f32);
    dtypes.push_back(is_float ? DType::f32 : DType::boolean);
    operands.push_back(Tensor::of<float>({values.count()}, values.operands[k]));
    if (is_float) continue;
    Tensor bools = Tensor::zeros(DType::boolean, {values.count()});
    for (int64_t i = 0; i < values.count(); ++i)
      bools.mutable_data<bool>()[i] = values.operands[k][static_cast<size_t>(i)] != 0;
    operands.back() = bools;
  }
  const bool predicate = op.outputs[0].type_var == "B" || dtypes.back() == DType::boolean;
  const ScalarLoop loop = op.scalar(dtypes, predicate ? DType::boolean : DType::f32);
  Tensor y = Tensor::zeros(predicate ? DType::boolean : DType::f32, {values.count()});
  // The bounds of a clip are one number each: it is called for every element.
  const int64_t count = op.name == "clip" ? 1 : values.count();
  const std::vector<int64_t> steps(operands.size(), 1);
  for (int64_t i = 0; i < values.count(); i += count) {
    std::vector<const void*> inputs;
    for (const Tensor& operand : operands) {
      inputs.push_back(static_cast<const char*>(operand.raw()) +
                       i * static_cast<int64_t>(element_size(operand.dtype())));
    }
    loop(attributes, inputs, steps,
         static_cast<char*>(y.mutable_raw()) + i * static_cast<int64_t>(element_size(y.dtype())), count);
  }
  const std::vector<double> result = y.to_f64();
  return {result.begin(), result.end()};
}

// Only these are not computed in f32 by the reference: pow in f64, and the mean of large numbers.
bool is_wider(std::string_view op) { return op == "pow" || op == "mean"; }

TEST(Formulas, ExpressionsGiveTheBitsOfTheReference) {
  for (const Formula& formula : all_formulas()) {
    if (formula.info.op.empty() || is_wider(formula.info.op)) continue;
    const OpDef& op = get_op(formula.info.op);
    if (!op.scalar) continue;  // identity copies anything
    const FormulaValues values = draw_formula_values(formula, 100'000);
    const std::vector<float> expected = by_reference(op, values.attributes, values);
    std::vector<Expr> operands;
    for (size_t k = 0; k < values.operands.size(); ++k) operands.push_back(Expr::variable(variables_of(formula)[k]));
    const Expr expression = expression_of(op, values.attributes, operands);
    ASSERT_TRUE(expression.is_present()) << op.name;
    const formulas::Evaluator<float> evaluate(expression, variables_of(formula));
    for (int64_t i = 0; i < values.count(); ++i) {
      const std::vector<float> x = values.at(i);
      const float y = evaluate(x);
      ASSERT_TRUE(same_bits(y, expected[static_cast<size_t>(i)]))
          << op.name << "(" << x[0] << ", ...) = " << y << ", reference " << expected[static_cast<size_t>(i)];
    }
  }
}

TEST(Formulas, EveryOpThatHasOneFindsIt) {
  size_t found = 0;
  for (size_t index = 0; index < all_formulas().size(); ++index) {
    const FormulaInfo& info = all_formulas()[index].info;
    if (info.op.empty()) continue;
    Attributes attributes;
    if (!info.attribute.empty()) attributes.set(std::string(info.attribute), std::string(info.text));
    EXPECT_EQ(find_formula(get_op(info.op), attributes), index) << info.op;
    EXPECT_TRUE(get_op(info.op).traits.elementwise || info.op == "identity") << info.op;
    ++found;
  }
  EXPECT_GT(found, 50U);
}

// ---- C ---------------------------------------------------------------------------------------------------------

using CFunction = float (*)(const float*);

// Each formula as a function f<index> of its variables, behind one that takes them as a list.
std::string source_of_all() {
  std::string text = "#include <math.h>\n";
  for (size_t index = 0; index < all_formulas().size(); ++index) {
    const Formula& formula = all_formulas()[index];
    const std::vector<std::string> names = variables_of(formula);
    const std::string name = "f" + std::to_string(index);
    text += "static " + c_function(formula.defining, name, names);
    text += "extern \"C\" float call_" + name + "(const float* x) { return " + name + "(";
    for (size_t k = 0; k < names.size(); ++k) text += (k ? ", x[" : "x[") + std::to_string(k) + "]";
    text += "); }\n";
  }
  return text;
}

TEST(Formulas, PrintedCGivesTheBitsOfExpressions) {
  const TestFolder folder;
  const std::string source = folder.write("all.cpp", source_of_all());
  const std::string library = folder / "all.so";
  const std::string command =
      std::string(AG_CXX_COMPILER) + " -O1 -w -ffp-contract=off -fPIC -shared -o " + library + " " + source;
  ASSERT_EQ(std::system(command.c_str()), 0) << source_of_all();
  void* handle = dlopen(library.c_str(), RTLD_NOW);
  ASSERT_NE(handle, nullptr) << dlerror();
  for (size_t index = 0; index < all_formulas().size(); ++index) {
    const Formula& formula = all_formulas()[index];
    const auto call = reinterpret_cast<CFunction>(dlsym(handle, ("call_f" + std::to_string(index)).c_str()));
    ASSERT_NE(call, nullptr);
    const FormulaValues values = draw_formula_values(formula, 100'000);
    const formulas::Evaluator<float> evaluate(formula.defining, variables_of(formula));
    for (int64_t i = 0; i < values.count(); ++i) {
      const std::vector<float> x = values.at(i);
      ASSERT_TRUE(same_bits(call(x.data()), evaluate(x)))
          << formula.info.op << "(" << x[0] << ", ...) = " << call(x.data()) << ", expression " << evaluate(x) << "\n"
          << c_function(formula.defining, "f", variables_of(formula));
    }
  }
  dlclose(handle);
}

TEST(Formulas, OpenClHasNoSuffixes) {
  const Expr x = Expr::variable("x");
  const std::vector<std::string> names{"x"};
  EXPECT_EQ(c_function(formulas::HardSwish::fast(x), "f", names),
            "float f(float x) {\n  const float t0 = ((x * 0.166666672f) + 0.5f);\n"
            "  const float t1 = ((t0 < 0.0f) ? 0.0f : t0);\n  return (x * ((1.0f < t1) ? 1.0f : t1));\n}\n");
  EXPECT_EQ(c_function(formulas::Exp::of(x), "f", names, formulas::CDialect::opencl),
            "float f(float x) {\n  return exp(x);\n}\n");
}

// ---- Derivatives, matching ---------------------------------------------------------------------------------------

// Central differences where those of two steps agree, which they do not around kinks.
TEST(Formulas, DerivativesMatchDifferences) {
  int64_t compared = 0;
  for (const Formula& formula : all_formulas()) {
    if (formula.info.on_truth) continue;
    const std::vector<std::string> names = variables_of(formula);
    const formulas::Evaluator<double> evaluate(formula.defining, names);
    Random random(7);
    for (size_t k = 0; k < names.size(); ++k) {
      const formulas::Evaluator<double> slope(derivative(formula.defining, names[k]), names);
      for (int round = 0; round < 2'000; ++round) {
        std::vector<double> x;
        for (size_t i = 0; i < names.size(); ++i)
          x.push_back(draw(random, 100, 3000) / 1000.0 * (draw(random, 0, 1) ? 1 : -1));
        const auto difference = [&](double step) {
          std::vector<double> low = x, high = x;
          low[k] -= step;
          high[k] += step;
          return (evaluate(high) - evaluate(low)) / (2 * step);
        };
        const double expected = difference(1e-5);
        if (!std::isfinite(expected) || std::fabs(expected - difference(2e-5)) > 1e-7 * (1 + std::fabs(expected)))
          continue;
        ASSERT_NEAR(slope(x), expected, 2e-6 * (1 + std::fabs(expected)))
            << formula.info.op << " by " << names[k] << " at " << x[0];
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 100'000);
}

TEST(Formulas, DerivativesAreSimple) {
  const Expr x = Expr::variable("x"), alpha = Expr::variable("alpha");
  EXPECT_TRUE(same_form(derivative(x * Expr(3) + Expr(2), "x"), Expr(3)));
  EXPECT_TRUE(same_form(derivative(formulas::LeakyRelu::of(x, alpha), "x"), select(x < Expr(0), alpha, Expr(1))));
  const Expr y = tanh(x);
  EXPECT_TRUE(same_form(derivative(y, "x"), Expr(1) - y * y));
}

TEST(Formulas, MatchingBindsVariables) {
  const Expr x = Expr::variable("x"), alpha = Expr::variable("alpha");
  const auto bindings = match(formulas::LeakyRelu::of(x, alpha), formulas::LeakyRelu::of(exp(x), Expr(0.25)));
  ASSERT_TRUE(bindings);
  ASSERT_EQ(bindings->size(), 2U);
  EXPECT_TRUE(same_form(substitute(x, *bindings), exp(x)));
  EXPECT_TRUE(substitute(alpha, *bindings).is(0.25));
  EXPECT_FALSE(match(formulas::Relu::of(x), formulas::LeakyRelu::of(x, Expr(0.25))));
  EXPECT_FALSE(match(x * x, exp(x) * tanh(x)));  // one variable, two expressions
}

}  // namespace
}  // namespace autograph
