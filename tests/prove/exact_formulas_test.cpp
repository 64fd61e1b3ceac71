// The prover's reading of formulas: the numbers of the reference where those are whole.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/random.h"
#include "graph/run_reference.h"
#include "ops/sample.h"
#include "prove/verify/exact/exact_interpreter.h"
#include "prove/verify/exact/exact_op.h"
#include "prove/verify/exact/prime_field.h"

namespace autograph {
namespace {

Tensor draw_whole(Random& random, int64_t count) {
  Tensor x = Tensor::zeros(DType::f32, {count});
  for (int64_t i = 0; i < count; ++i) x.mutable_data<float>()[i] = static_cast<float>(draw(random, -1000, 1000));
  return x;
}

void expect_reference(std::string_view name, size_t operands, const Attributes& attributes = {}) {
  constexpr int64_t kCount = 100'000;
  Random random(3);
  const OpDef& op = get_op(name);
  std::vector<Tensor> inputs, exact;
  for (size_t k = 0; k < operands; ++k) {
    inputs.push_back(draw_whole(random, kCount));
    exact.push_back(to_exact(inputs.back()));
  }
  const Type type(DType::f32, Shape::of({kCount}));
  const Tensor expected = run_reference(op, attributes, inputs, std::vector<Type>{type})[0];
  const Tensor y = run_exact_call(op, attributes, exact, 1, {.functions = Functions::on_integers})[0];
  for (int64_t i = 0; i < kCount; ++i) {
    const auto whole = static_cast<int64_t>(expected.data<float>()[i]);
    ASSERT_EQ(y.data<uint64_t>()[i], field_of(whole)) << name << "(" << inputs[0].data<float>()[i] << ", ...)";
  }
}

TEST(ExactFormulas, GiveTheNumbersOfTheReference) {
  for (const char* name : {"neg", "abs", "relu"}) expect_reference(name, 1);
  for (const char* name : {"add", "sub", "mul", "max", "min", "sum", "prelu"}) expect_reference(name, 2);
  expect_reference("leaky_relu", 1, {{"alpha", 3.0F}});
  expect_reference("sum", 3);
  expect_reference("max", 4);
}

TEST(ExactFormulas, AQuotientTimesTheDivisorIsTheDividend) {
  Random random(4);
  const Tensor a = to_exact(draw_whole(random, 1000));
  Tensor divisors = draw_whole(random, 1000);
  for (int64_t i = 0; i < 1000; ++i) {
    if (divisors.data<float>()[i] == 0) divisors.mutable_data<float>()[i] = 7;
  }
  const Tensor b = to_exact(divisors);
  const std::vector<Tensor> inputs{a, b};
  const Tensor y = run_exact_call(get_op("div"), {}, inputs, 1, {})[0];
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(field_multiply(y.data<uint64_t>()[i], b.data<uint64_t>()[i]), a.data<uint64_t>()[i]);
  }
}

// Formulas with other functions, with quotients that are compared, or with parameters that are.
TEST(ExactFormulas, WhatHasNoExactFormIsLeftAlone) {
  for (const char* name : {"sigmoid", "tanh", "gelu", "hard_swish", "hard_sigmoid", "thresholded_relu", "softsign",
                           "swish", "equal", "where", "sqrt", "mish"}) {
    EXPECT_EQ(find_exact_elementwise(get_op(name)), nullptr) << name;
  }
}

// The two ways in which rules are tried follow from formulas: relu compares, sums do not.
TEST(ExactFormulas, SayWhereTheyAreExact) {
  for (const char* name : {"relu", "exp", "pow", "abs", "max", "min", "prelu", "leaky_relu", "clip", "max_pool"}) {
    EXPECT_TRUE(is_exact_on_integers_only(get_op(name))) << name;
  }
  for (const char* name : {"add", "div", "mean", "identity", "sigmoid", "conv", "average_pool"}) {
    EXPECT_FALSE(is_exact_on_integers_only(get_op(name))) << name;
  }
}

}  // namespace
}  // namespace autograph
