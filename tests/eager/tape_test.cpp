// Define by run: values, the tape, gradients, and what they say when something is wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>

#include "autograph/autodiff.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/random.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/sequence.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Var floats(const Dims& dims, const std::vector<float>& values) { return eager(Tensor::of<float>(dims, values)); }
Var weights(const Dims& dims, const std::vector<float>& values) { return variable(Tensor::of<float>(dims, values)); }

std::vector<float> values_of(const Var& value) {
  const auto list = elements(value).elements<float>();
  return {list.begin(), list.end()};
}

Var total(const Var& x) { return reduce_sum(x, {}, false); }

TEST(EagerValues, OperatorsComputeAtOnce) {
  const Var x = floats({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values_of(2 * x + x / 2 - 1), (std::vector<float>{1.5, 4, 6.5, 9}));
  EXPECT_EQ(values_of(matmul(x, x)), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(item(total(x)), 10);
  EXPECT_TRUE(is_true(less(total(x), scalar_like(x, 11))));
  EXPECT_FALSE(requires_grad(x * x));
}

TEST(EagerValues, OperatorsCompare) {
  const Var a = floats({3}, {1, 2, 3}), b = floats({3}, {2, 2, 2});
  const auto bits = [](const Var& value) { return elements(value).to_f64(); };
  using Bits = std::vector<double>;
  EXPECT_EQ(bits(a < b), (Bits{1, 0, 0}));
  EXPECT_EQ(bits(a > b), (Bits{0, 0, 1}));
  EXPECT_EQ(bits(a <= b), (Bits{1, 1, 0}));
  EXPECT_EQ(bits(a >= b), (Bits{0, 1, 1}));
  EXPECT_EQ(bits(a < 2), bits(2 > a));
  EXPECT_EQ(bits(a > 2), bits(2 < a));
  EXPECT_EQ(bits(a <= 2), bits(2 >= a));
  EXPECT_EQ(bits(a >= 2), bits(2 <= a));
  EXPECT_EQ(bits(a < 2), (Bits{1, 0, 0}));
  EXPECT_EQ(bits(a >= 2), (Bits{0, 1, 1}));
}

// The handle is another value then: what was computed with the one before stays, and its gradient.
TEST(EagerValues, OperatorsThatAssignMakeOtherValues) {
  const Var w = weights({}, {2});
  Var x = w;
  const Var before = x * x;
  x += 3;
  x *= w;
  x -= before;
  x /= 2;
  EXPECT_EQ(item(w), 2);
  EXPECT_EQ(item(x), 3);
  x += before;
  x -= 1;
  x *= 2;
  x /= w;
  EXPECT_EQ(item(x), 6);
  backward(x);
  EXPECT_EQ(item(gradient(w)), 2.5);  // 2 (((w + 3) w - w^2) / 2 + w^2 - 1) / w = 3 + 2 w - 2 / w
}

TEST(EagerValues, PartsAndRanges) {
  const Var x = floats({2, 3}, {0, 1, 2, 10, 11, 12});
  EXPECT_EQ(values_of(x[1]), (std::vector<float>{10, 11, 12}));
  EXPECT_EQ(values_of(x[-1][-1]), (std::vector<float>{12}));
  EXPECT_EQ(values_of(at(x, {Index::all(), 1})), (std::vector<float>{1, 11}));
  EXPECT_EQ(values_of(at(x, {-2, {0, 3, 2}})), (std::vector<float>{0, 2}));
  EXPECT_EQ(message_of<ValueError>([&] { x[2]; }), "[index] position: expected -2..1 for f32[2,3], got 2");
  EXPECT_EQ(message_of<ValueError>([&] {
              at(x, {0, -4});
            }),
            "[at] position on axis 1: expected -3..2 for f32[2,3], got -4");
  EXPECT_THROW(item(x), ShapeError);
}

TEST(EagerValues, Print) {
  std::ostringstream text;
  text << floats({2}, {1.5, -2});
  EXPECT_EQ(text.str(), "f32[2] {1.5, -2}");
  Graph graph;
  EXPECT_EQ(to_string(input(graph, DType::f32, {3}, "x")), "f32[3] \"x\"");
}

TEST(EagerValues, ReshapedValuesShareTheirElements) {
  const Var x = floats({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(elements(reshape(x, {3, 2})).raw(), elements(x).raw());
  EXPECT_EQ(elements(flatten(x)).raw(), elements(x).raw());
}

// The elements of `part` are those of `whole` from position `first` on, not a copy.
void expect_shared(const Var& part, const Var& whole, int64_t first) {
  EXPECT_EQ(elements(part).raw(), elements(whole).data<float>() + first) << part;
}

TEST(EagerValues, PartsInARowShareTheirElements) {
  std::vector<float> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  const Var x = floats({4, 3, 2}, numbers);
  expect_shared(x[2], x, 12);
  expect_shared(x[-1][1], x, 20);
  expect_shared(x[1][2][1], x, 11);
  expect_shared(at(x, {{1, 3}}), x, 6);
  expect_shared(at(x, {3, {1, 3}}), x, 20);
  expect_shared(at(x, {{2, 3}, {0, 2}}), x, 12);
  expect_shared(at(x[1], {{0, 2}})[1], x, 8);
  expect_shared(unsqueeze(squeeze(x[0], {}), {1}), x, 0);
  expect_shared(flatten(at(x, {{2, 4}})), x, 12);
  const std::vector<Var> pieces = split(x, {1, 3});
  expect_shared(pieces[0], x, 0);
  expect_shared(pieces[1], x, 6);
  expect_shared(transpose(reshape(x, {1, 24, 1}), {1, 0, 2}), x, 0);
  EXPECT_EQ(values_of(at(x, {{1, 3}, 2})), (std::vector<float>{10, 11, 16, 17}));  // apart: a copy
  EXPECT_EQ(values_of(at(x, {{3, 1, -1}, 0, 0})), (std::vector<float>{18, 12}));
  EXPECT_EQ(values_of(split(x, {1, 2}, 1)[0])[3], 7);
}

// Nothing writes to elements: variables get others, and a part keeps those that it was taken from.
TEST(EagerValues, PartsKeepTheirElementsWhateverIsAssigned) {
  Var part, slope;
  {
    const Var w = weights({3, 2}, {1, 2, 3, 4, 5, 6});
    part = w[1];
    const Var loss = total(part * part * w[2]);
    assign(w, w * 10);
    EXPECT_EQ(values_of(part), (std::vector<float>{3, 4}));
    expect_shared(w[1], w, 2);
    EXPECT_EQ(values_of(w[1]), (std::vector<float>{30, 40}));
    backward(loss);
    slope = gradient(w);
    assign(w, concat({at(w, {{2, 3}}), at(w, {{0, 2}})}, 0));
  }
  EXPECT_EQ(values_of(part), (std::vector<float>{3, 4}));
  EXPECT_EQ(values_of(slope), (std::vector<float>{0, 0, 30, 48, 9, 16}));
}

TEST(EagerValues, SequencesAndOpsWithoutKnownShapes) {
  const Var x = floats({4}, {0, 1, 0, 2});
  const Var list = sequence_construct({x, x + 1});
  EXPECT_EQ(datum(list).sequence().size(), 2u);
  EXPECT_EQ(values_of(sequence_at(list, eager(Tensor::scalar(int64_t{1})))), (std::vector<float>{1, 2, 1, 3}));
}

TEST(EagerValues, RandomNumbersDifferFromCallToCall) {
  const Var dims = eager(Tensor::vector({64})), seed = eager(Tensor::scalar(int64_t{7}));
  const Var a = philox_uniform(dims, seed, seed), b = philox_uniform(dims, seed, seed);
  EXPECT_NE(values_of(a), values_of(b));
}

TEST(Backward, AddsUpInVariables) {
  const Var w = weights({2}, {3, 4});
  EXPECT_FALSE(gradient(w).is_valid());
  backward(total(w * w));
  EXPECT_EQ(values_of(gradient(w)), (std::vector<float>{6, 8}));
  backward(total(2 * w));
  EXPECT_EQ(values_of(gradient(w)), (std::vector<float>{8, 10}));
  EXPECT_FALSE(requires_grad(gradient(w)));
  clear_gradient(w);
  EXPECT_FALSE(gradient(w).is_valid());
}

TEST(Backward, UsesTheElementsOfTheForwardPass) {
  const Var w = weights({1}, {3});
  const Var loss = total(w * w);
  assign(w, w - 1);
  EXPECT_EQ(values_of(w), (std::vector<float>{2}));
  backward(loss);
  EXPECT_EQ(values_of(gradient(w)), (std::vector<float>{6}));
}

TEST(Backward, FollowsTheControlFlowOfThePass) {
  const Var w = weights({}, {1.5});
  Var x = w;
  int turns = 0;
  while (item(x) < 10) {
    x = x * w;
    ++turns;
  }
  backward(x);
  EXPECT_NEAR(item(gradient(w)), (turns + 1) * std::pow(1.5, turns), 1e-4);
}

TEST(Backward, GradientsHaveGradients) {
  const Var x = variable(Tensor::scalar(2.0));
  const Var first = grad(x * x * x, {x})[0];
  const Var second = grad(first, {x})[0];
  const Var third = grad(second, {x})[0];
  EXPECT_EQ(item(first), 12);
  EXPECT_EQ(item(second), 12);
  EXPECT_EQ(item(third), 6);
  backward(x * x, {.differentiable = true});
  EXPECT_TRUE(requires_grad(gradient(x)));
  clear_gradient(x);  // which depends on x
}

TEST(Backward, ProductsWithJacobians) {
  const Var x = variable(Tensor::of<double>({2}, {2, 3}));
  const Var y = x * x;
  EXPECT_EQ(elements(jvp({y}, {x}, {eager(Tensor::of<double>({2}, {1, 10}))})[0]).to_f64(),
            (std::vector<double>{4, 60}));
  EXPECT_EQ(elements(jacobian(y, x)).to_f64(), (std::vector<double>{4, 0, 0, 6}));
  const Var loss = reduce_sum(x * x * x, {}, false);
  EXPECT_EQ(elements(hvp(loss, {x}, {eager(Tensor::of<double>({2}, {1, 1}))})[0]).to_f64(),
            (std::vector<double>{12, 18}));
}

TEST(Backward, OfValuesBetween) {
  const Var w = weights({}, {3});
  const Var h = w * w;
  const Var loss = h * h;
  EXPECT_EQ(item(grad(loss, {h})[0]), 18);
  EXPECT_EQ(item(grad(loss, {w})[0]), 108);
  const Var other = weights({2}, {1, 1});
  EXPECT_EQ(values_of(grad(loss, {other})[0]), (std::vector<float>{0, 0}));
}

TEST(Backward, HooksSeeAndChangeGradients) {
  const Var w = weights({}, {3});
  const Var h = w * w;
  int seen = 0;
  on_gradient(h, [&](const Var& gradient) {
    ++seen;
    return 10 * gradient;
  });
  on_gradient(w, [&](const Var& gradient) {
    EXPECT_EQ(item(gradient), 120);
    ++seen;
    return Var();
  });
  backward(h + h);
  EXPECT_EQ(seen, 2);
  EXPECT_EQ(item(gradient(w)), 120);
}

TEST(Backward, HooksGoByTheirHandles) {
  const Var w = weights({}, {3});
  const Var h = w * w;
  int of_h = 0, of_w = 0, once = 0;
  const GradientHookHandle on_h = on_gradient(h, [&](const Var& gradient) {
    ++of_h;
    return 10 * gradient;
  });
  const GradientHookHandle on_w = on_gradient(w, [&](const Var&) {
    ++of_w;
    return Var();
  });
  // As torch's, a hook may remove itself while it runs.
  GradientHookHandle itself;
  itself = on_gradient(h, [&](const Var&) {
    ++once;
    itself.remove();
    return Var();
  });
  backward(h + h);
  on_h.remove();
  on_h.remove();
  backward(h + h);
  EXPECT_EQ(item(gradient(w)), 120 + 12);
  on_w.remove();
  backward(h + h);
  EXPECT_EQ(of_h, 1);
  EXPECT_EQ(of_w, 2);
  EXPECT_EQ(once, 1);
  GradientHookHandle late;
  late.remove();
  {
    const Var gone = weights({}, {1});
    late = on_gradient(gone, [](const Var& gradient) { return gradient; });
  }
  late.remove();
}

TEST(Backward, StopsAtDetachedValuesAndInsideNoGrad) {
  const Var w = weights({}, {3});
  backward(w * detach(w));
  EXPECT_EQ(item(gradient(w)), 3);
  const NoGrad off;
  EXPECT_FALSE(requires_grad(w * w));
  EXPECT_TRUE(requires_grad(w));
}

TEST(Backward, WithAGradientOfTheUsersOwn) {
  const Var w = weights({2}, {-1, 2});
  // Rounds, and lets gradients pass.
  const Var rounded = with_gradient({round(w * 1.3)}, {w}, [](const std::vector<Var>& gy) { return gy; })[0];
  backward(total(rounded * rounded));
  EXPECT_EQ(values_of(gradient(w)), (std::vector<float>{-2, 6}));
}

TEST(Backward, ThroughBodiesAndRulesThatNeedMoreOutputs) {
  const Var x = weights({1, 1, 2, 2}, {1, 4, 3, 2});
  backward(total(max_pool(x, {.kernel = {2, 2}})));
  EXPECT_EQ(values_of(gradient(x)), (std::vector<float>{0, 1, 0, 0}));
}

TEST(Tape, MemoryGoesWithTheLastReference) {
  const int64_t before = eager_statistics().live_nodes;
  {
    const Var w = weights({2}, {1, 2});
    Var x = w;
    for (int i = 0; i < 100; ++i) x = x * 1.01;
    EXPECT_EQ(eager_statistics().live_nodes, before + 100);
    x = detach(x);
    EXPECT_EQ(eager_statistics().live_nodes, before);
  }
}

TEST(Tape, DeepChainsNeedNoStack) {
  const int64_t before = eager_statistics().live_nodes;
  {
    const Var w = weights({}, {1});
    Var x = w;
    for (int i = 0; i < 200'000; ++i) x = x + w;
    backward(x);
    EXPECT_EQ(item(gradient(w)), 200'001);
  }
  EXPECT_EQ(eager_statistics().live_nodes, before);
}

TEST(Tape, CallsOfOneKindArePreparedOnce) {
  const Var x = floats({3, 5}, std::vector<float>(15, 1));
  tanh(x);
  const EagerStatistics before = eager_statistics();
  for (int i = 0; i < 10; ++i) tanh(x);
  EXPECT_EQ(eager_statistics().new_calls, before.new_calls);
  EXPECT_EQ(eager_statistics().calls, before.calls + 10);
}

// A shorter loop than that of bench_eager, of shapes that rarely repeat.
TEST(Tape, WhatIsKeptForShapesIsBounded) {
  const Var w = weights({8, 8}, std::vector<float>(64, 0.1F));
  for (int64_t step = 0; step < 500; ++step) {
    const int64_t rows = 1 + step * 7 % 701;
    const Var x = floats({rows, 8}, std::vector<float>(static_cast<size_t>(rows) * 8, 1));
    backward(reduce_mean(tanh(matmul(x, w)), {}, false));
    clear_gradient(w);
  }
  EXPECT_LE(eager_statistics().prepared_calls, 1024 + 64);
  EXPECT_GT(eager_statistics().prepared_calls, 0);
}

TEST(EagerErrors, NameTheOpAndThePlace) {
  const Var x = floats({2, 3}, std::vector<float>(6, 1));
  const std::string message = message_of<ShapeError>([&] {
    const ProvenanceScope layer("encoder/first");
    matmul(x, x);
  });
  EXPECT_NE(message.find("[matmul]"), std::string::npos) << message;
  EXPECT_NE(message.find("encoder/first"), std::string::npos) << message;
  EXPECT_THROW(backward(x), ValueError);
  EXPECT_THROW(backward(weights({2}, {1, 2}) * 2), ShapeError);
  EXPECT_THROW(gradient(x), ValueError);
  EXPECT_THROW(grad(total(weights({2}, {1, 2})), {x}), ValueError);
  EXPECT_THROW(assign(weights({2}, {1, 2}), x), ShapeError);
  EXPECT_THROW(variable(Tensor::scalar(int64_t{1})), TypeError);
  Graph graph;
  const std::string host_read = message_of<ValueError>([&] { item(input(graph, DType::f32, {}, "x")); });
  EXPECT_NE(host_read.find("tape_test.cpp"), std::string::npos) << host_read;
}

TEST(EagerErrors, GradientsThatHaveNoRuleSayWhereTheOpWasMade) {
  const Var q = reshape(weights({4}, {1, 2, 3, 4}), {1, 1, 2, 2});
  const SourceScope here;
  const Var y = attention(q, q, cast(q, DType::f64));
  const std::string message = message_of<UnsupportedError>([&] { backward(total(y)); });
  EXPECT_NE(message.find("attention"), std::string::npos) << message;
  EXPECT_NE(message.find("q, k and v of one dtype"), std::string::npos) << message;
  EXPECT_NE(message.find("tape_test.cpp"), std::string::npos) << message;
}

TEST(EagerErrors, InsideAGraphEagerValuesAreConstants) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var y = x + floats({2}, {1, 2});
  EXPECT_FALSE(y.is_eager());
  EXPECT_EQ(graph.constants().size(), 1u);
  EXPECT_THROW(floats({2}, {1, 2}).graph(), ValueError);
}

// Many picks from one value add to one gradient: neither zeros nor a sum for each.
TEST(Tape, PicksAddToOneGradient) {
  constexpr int64_t kPicks = 20;
  const Var w = weights({4}, {1, 2, 3, 4});
  const Var x = w * 2;
  Var sum = total(x * x);  // flows into x, too, and is there when the picks come
  for (int64_t n = 0; n < kPicks; ++n) {
    const Var at = eager(Tensor::of<int64_t>({2}, {n % 4, 0}));
    sum = sum + total(n % 2 == 0 ? gather_elements(x, at) : gather_nd(x, unsqueeze(at, {1})));
  }
  const int64_t before = eager_statistics().calls;
  const Var slope = grad(sum, {w})[0];
  EXPECT_LE(eager_statistics().calls - before, 4 * kPicks + 20);
  // 4 w * 2 of the squares; each pick counts 2 for its element and 2 for element 0.
  EXPECT_EQ(values_of(slope), (std::vector<float>{8 + 10 + 40, 16 + 10, 24 + 10, 32 + 10}));
  EXPECT_EQ(values_of(grad(total(slope * slope), {w})[0]), (std::vector<float>{16 * 58, 16 * 26, 16 * 34, 16 * 42}));
}

}  // namespace
}  // namespace autograph
