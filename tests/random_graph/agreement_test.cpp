// The comparison of plans with the reference: what it must see, and what it must let pass.
#include "support/agreement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "autograph/ops/activation.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/quantize.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/vision.h"
#include "autograph/ops/window.h"
#include "ops/real_values.h"
#include "ops/sample.h"
#include "random_graph/idioms/idioms.h"

namespace autograph {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor vector_of(DType dtype, const std::vector<double>& values) {
  Tensor tensor = Tensor::empty(dtype, {std::ssize(values)});
  store_reals(values, tensor.view());
  return tensor;
}

// A graph with one input, a vector of these values.
TestGraph graph_of(DType dtype, const std::vector<double>& values, const std::function<Var(Var)>& formula) {
  TestGraph test;
  const Var x = input(test.graph, dtype, Shape::of({std::ssize(values)}), "x");
  test.graph.add_output(formula(x).id());
  test.inputs = {vector_of(dtype, values)};
  return test;
}

// Do these results agree with the reference?
bool agree(const TestGraph& test, const std::vector<double>& results) {
  const std::vector<Datum> expected = run_reference(test.graph, test.inputs);
  return disagreement({vector_of(expected[0].tensor().dtype(), results)}, expected, test).empty();
}

std::vector<double> results_of(const TestGraph& test) {
  return run_reference(test.graph, test.inputs)[0].tensor().to_f64();
}

// One element of `of`, times `factor`.
std::vector<Datum> spoilt(std::vector<Datum> of, float factor) {
  Tensor copy = of[0].tensor().clone();
  copy.mutable_data<float>()[copy.num_elements() / 2] *= factor;
  of[0] = copy;
  return of;
}

TEST(Agreement, SeesOneWrongElement) {
  int64_t compared = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    IdiomGraph g(seed);
    add_conv_epilogue(g);
    const TestGraph test = g.finish();
    const std::vector<Datum> expected = run_reference(test.graph, test.inputs);
    const Tensor& first = expected[0].tensor();
    if (first.dtype() != DType::f32 || !(std::abs(first.to_f64()[first.num_elements() / 2]) > 0.1)) continue;
    EXPECT_EQ(disagreement(expected, expected, test), "");
    EXPECT_EQ(disagreement(spoilt(expected, 1.00001F), expected, test), "");
    EXPECT_NE(disagreement(spoilt(expected, 1.1F), expected, test), "") << seed;
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

TEST(Agreement, WantsIntegersExactly) {
  TestGraph test;
  const Var x = input(test.graph, DType::i32, Shape::of({2}), "x");
  test.graph.add_output(add(x, x).id());
  test.inputs = {Tensor::of<int32_t>({2}, {1000000, 7})};
  const std::vector<Datum> expected = run_reference(test.graph, test.inputs);
  EXPECT_EQ(disagreement(expected, expected, test), "");
  EXPECT_NE(disagreement({Tensor::of<int32_t>({2}, {2000001, 14})}, expected, test), "");
}

TEST(Agreement, WantsComplexNumbersAndTextsExactly) {
  const auto differs = [](const Tensor& expected, const Tensor& actual) {
    return !disagreement({actual}, {expected}, [](int) { return MovedRuns(); }).empty();
  };
  const auto complex = [](std::complex<float> value) {
    Tensor tensor = Tensor::empty(DType::c64, {1});
    tensor.mutable_data<std::complex<float>>()[0] = value;
    return tensor;
  };
  EXPECT_FALSE(differs(complex({1, 2}), complex({1, 2})));
  EXPECT_TRUE(differs(complex({1, 2}), complex({1, 3})));
  const Tensor text = Tensor::of<std::string>({1}, {"a"});
  EXPECT_FALSE(differs(text, Tensor::of<std::string>({1}, {"a"})));
  EXPECT_TRUE(differs(text, Tensor::of<std::string>({1}, {"b"})));
}

TEST(Agreement, LetsPlansKnowMoreExtentsOfNothing) {
  const auto agree = [](Dims actual, Dims expected) {
    return disagreement({Tensor::empty(DType::f32, std::move(actual))},
                        {Tensor::empty(DType::f32, std::move(expected))}, [](int) { return MovedRuns(); })
        .empty();
  };
  EXPECT_TRUE(agree({0, 1, 2, 3}, {0, 0, 0, 3}));
  EXPECT_FALSE(agree({0, 0, 0, 3}, {0, 1, 2, 3}));
  EXPECT_FALSE(agree({0, 1, 2, 4}, {0, 0, 0, 3}));
  EXPECT_FALSE(agree({0, 1, 3}, {0, 0, 0, 3}));
  EXPECT_FALSE(agree({1, 1, 2, 3}, {0, 0, 0, 3}));
}

// softmax(x + mask) in half precision.
TestGraph masked_softmax(double mask, const std::vector<double>& values) {
  return graph_of(DType::f16, values, [&](Var x) { return softmax(add(x, scalar_like(x, mask))); });
}

// A mask of -60000 rounds scores off, all of them alike: plans that compute in f32 still tell them apart.
TEST(Agreement, KnowsWhatRoundingMadeEqual) {
  const std::vector<double> finer = results_of(masked_softmax(0, {0.5, 2, -1, 0}));
  EXPECT_TRUE(agree(masked_softmax(-60000, {0.5, 2, -1, 0}), finer));
  EXPECT_TRUE(agree(masked_softmax(-1, {0.5, 2, -1, 0}), finer));
  EXPECT_FALSE(agree(masked_softmax(-1, {0.5, 2, -1, 0}), results_of(masked_softmax(0, {0.5, 2, 1, 0}))));
}

// Two masks of finite numbers hide nothing in f32, and the whole row in f16, where softmax then gives NaN.
TEST(Agreement, KnowsWhatOverflowsInHalfPrecisionAlone) {
  const TestGraph test = graph_of(DType::f16, {0, 32, 64}, [](Var x) {
    const Var masked = add(add(x, scalar_like(x, -60000)), scalar_like(x, -30000));
    const Var row = softmax(masked);
    return where(is_nan(row), scalar_like(x, 0), row);
  });
  EXPECT_EQ(results_of(test), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(agree(test, {0, 0, 1}));
  EXPECT_FALSE(agree(test, {0, 0, 3}));
  EXPECT_FALSE(agree(test, {0, 0, kNan}));
}

TEST(Agreement, KnowsWhatVanishesInHalfPrecisionAlone) {
  const TestGraph test = graph_of(DType::f16, {1e-4, 2e-4, 5e-4}, [](Var x) {
    const Var square = mul(mul(x, x), mul(x, x));
    return div(square, add(reduce_max(square, {0}, true), scalar_like(x, 1e-7)));
  });
  EXPECT_EQ(results_of(test), (std::vector<double>{0, 0, 0}));
  EXPECT_TRUE(agree(test, {0, 0, 0}));
  EXPECT_FALSE(agree(test, {0, 0, 1}));
}

// x - 1 has either sign where x moves, so that log makes NaN or a number there.
TEST(Agreement, LooksAtNumbersThatAMovedRunMakesNan) {
  const auto formula = [](Var x) { return log(sub(x, scalar_like(x, 1))); };
  for (const DType dtype : {DType::f16, DType::f32}) {
    const TestGraph test = graph_of(dtype, {dtype == DType::f16 ? 1.000977 : 1.000001, 2}, formula);
    const std::vector<double> expected = results_of(test);
    EXPECT_TRUE(agree(test, expected));
    EXPECT_TRUE(agree(test, {kNan, expected[1]}));
    EXPECT_FALSE(agree(test, {500, expected[1]}));
    EXPECT_FALSE(agree(test, {kInf, expected[1]}));
    EXPECT_FALSE(agree(test, {expected[0], kNan}));
  }
}

TEST(Agreement, KnowsThatLibrariesDropNan) {
  const TestGraph test = graph_of(DType::f32, {kNan, -1, 2}, [](Var x) { return add(relu(x), scalar_like(x, 1)); });
  EXPECT_TRUE(agree(test, {kNan, 1, 3}));
  EXPECT_TRUE(agree(test, {1, 1, 3}));
  EXPECT_FALSE(agree(test, {1.5, 1, 3}));
  EXPECT_FALSE(agree(test, {kInf, 1, 3}));
  const TestGraph other = graph_of(DType::f32, {kNan, -1, 2}, [](Var x) { return abs(x); });
  EXPECT_FALSE(agree(other, {1, 1, 2}));
  for (const double alpha : {0.25, -0.25}) {
    const TestGraph line = graph_of(DType::f32, {kNan, 1}, [&](Var x) { return hard_sigmoid(x, alpha, 0.5); });
    EXPECT_TRUE(agree(line, {0, 0.5 + alpha})) << alpha;
    EXPECT_FALSE(agree(line, {0.5, 0.5 + alpha})) << alpha;
  }
}

TEST(Agreement, KnowsWhatPaddingMeets) {
  const TestGraph test = graph_of(DType::f32, {1, 2, 3}, [](Var x) {
    const Var w = reshape(constant(x.graph(), vector_of(DType::f32, {kNan, 1, 1})), {1, 1, 3});
    return reshape(conv(reshape(x, {1, 1, 3}), w, {}, {.pads = {1, 1}}), {3});
  });
  EXPECT_TRUE(agree(test, {3, kNan, kNan}));
  EXPECT_TRUE(agree(test, {kNan, kNan, kNan}));
  EXPECT_FALSE(agree(test, {4, kNan, kNan}));
  EXPECT_FALSE(agree(test, {kInf, kNan, kNan}));
}

// 1 - (1 - x) > x: rounding decides. Each of many elements goes both ways in some run, not in each.
TEST(Agreement, KnowsWhatMasksHide) {
  const TestGraph test = graph_of(DType::f32, {1, kNan}, [](Var x) {
    const Var v = reshape(x, {1, 1, 2, 1}),
              q = reshape(constant(x.graph(), vector_of(DType::f32, {1, 1})), {1, 1, 2, 1});
    return reshape(tiled_attention(q, q, v, {}, {{"is_causal", int64_t{1}}})[0], {2});
  });
  EXPECT_TRUE(agree(test, {1, kNan}));
  EXPECT_TRUE(agree(test, {kNan, kNan}));
  EXPECT_FALSE(agree(test, {2, kNan}));
  EXPECT_FALSE(agree(test, {1, kInf}));
}

TEST(Agreement, DrawsEnoughRunsForTies) {
  std::vector<double> values;
  for (int i = 0; i < 100; ++i) values.push_back(0.21 + 0.001 * i);
  const TestGraph test = graph_of(DType::f32, values, [](Var x) {
    const Var one = scalar_like(x, 1);
    return where(greater(sub(one, sub(one, x)), x), x, neg(x));
  });
  std::vector<double> other = results_of(test);
  for (double& value : other) value = -value;
  EXPECT_TRUE(agree(test, other));
  other[50] = 50;
  EXPECT_FALSE(agree(test, other));
}

TEST(Agreement, KnowsThatGeluVanishesBesideX) {
  const TestGraph test = graph_of(DType::f32, {-7, -3, 1, 2, 3, 4, 5, 6},
                                  [](Var x) { return mul(cast(cast(gelu(x), DType::boolean), DType::f32), x); });
  std::vector<double> other = results_of(test);
  ASSERT_EQ(other[0], -7);
  other[0] = 0;
  EXPECT_TRUE(agree(test, other));
  other[1] = 0;
  EXPECT_FALSE(agree(test, other));
}

// The reference makes numbers of x^8 that kernels may flush.
// A tanh that ends at the number below 1 makes 128 of a zero point of 127, and moves all bytes.
TEST(Agreement, KnowsZeroPointsBetweenEndsThatSaturate) {
  std::vector<double> values;
  for (int i = 0; i < 20; ++i) values.insert(values.end(), {30.0 + i, -30.0 - i, 0.04 * i - 0.4});
  const auto bytes = [](Var x) { return cast(dynamic_quantize_linear(x)[0], DType::f32); };
  const TestGraph test = graph_of(DType::f32, values, [&](Var x) { return bytes(tanh(x)); });
  std::vector<double> ends;
  for (const double value : values) ends.push_back(std::clamp(std::tanh(value), -0.99999976, 0.99999976));
  const TestGraph below = graph_of(DType::f32, ends, bytes);
  ASSERT_NE(results_of(test), results_of(below));
  EXPECT_TRUE(agree(test, results_of(below)));
  std::vector<double> wrong = results_of(below);
  wrong[5] += 60;
  EXPECT_FALSE(agree(test, wrong));
}

TEST(Agreement, KnowsWhatIsFlushed) {
  const TestGraph test = graph_of(DType::f32, {1e-5, 0.5}, [](Var x) {
    const Var square = mul(x, x), fourth = mul(square, square), tiny = mul(fourth, fourth);
    return where(cast(tiny, DType::boolean), x, scalar_like(x, 3));
  });
  EXPECT_TRUE(agree(test, {1e-5, 0.5}));
  EXPECT_TRUE(agree(test, {3, 0.5}));
  EXPECT_FALSE(agree(test, {1e-5, 3}));
}

// A cell whose state is 1 - 1 but for what f32 cannot tell from 1.
TEST(Agreement, KnowsTheScaleOfStates) {
  TestGraph test;
  const Var x = input(test.graph, DType::f32, Shape::of({2, 1, 1}), "x");
  // Gates in the order of ONNX: input, output, forget, candidate.
  const Var w = constant(test.graph, Tensor::of<float>({1, 4, 1}, {0, 0, 0, 16}));
  const Var r = constant(test.graph, Tensor::of<float>({1, 4, 1}, {0, 0, 0, 0}));
  const Var b = constant(test.graph, Tensor::of<float>({1, 8}, {60, 60, 60, 0, 0, 0, 0, 0}));
  const auto outputs = apply_all(get_op("lstm"), {x, w, r, b}, {{"hidden_size", int64_t{1}}}, 3);
  test.graph.add_output(outputs[1].id());
  test.inputs = {Tensor::of<float>({2, 1, 1}, {1, -0.95F})};
  const std::vector<Datum> expected = run_reference(test.graph, test.inputs);
  EXPECT_NE(expected[0].tensor().to_f64()[0], 0);
  EXPECT_EQ(disagreement({Tensor::zeros(DType::f32, {1, 1, 1})}, expected, test), "");
  EXPECT_NE(disagreement({Tensor::of<float>({1, 1, 1}, {1e-3F})}, expected, test), "");
}

// The gradient of q where the scores of attention are cut off: tanh(40) is 1, or the number below it.
TEST(Agreement, KnowsTheEndsOfSoftCaps) {
  const TestGraph test = graph_of(DType::f32, {600}, [](Var x) {
    const auto row = [&](float number) { return constant_like(x, Tensor::of<float>({1, 1, 1}, {number})); };
    const auto whole = [&](float number) { return constant_like(x, Tensor::of<float>({1, 1, 1, 1}, {number})); };
    const Var q = reshape(x, {1, 1, 1, 1});
    return reshape(apply_all(get_op("tiled_attention_grad"), {q, whole(1), whole(3), whole(2), row(15), row(1), {}},
                             {{"softcap", 15.0F}}, 3)[0],
                   {1});
  });
  EXPECT_EQ(results_of(test)[0], 0);
  EXPECT_TRUE(agree(test, {6e-7}));
  EXPECT_FALSE(agree(test, {1e-3}));
}

std::vector<Dims> dims_of_moved(const TestGraph& test) {
  std::vector<Dims> dims;
  for (const auto& run : run_moved(test).moved) dims.push_back(run[0].tensor().dims());
  return dims;
}

TEST(MovedRuns, LeaveExponents) {
  const TestGraph test = graph_of(DType::f32, {-3, 2}, [](Var x) { return pow(x, scalar_like(x, 2)); });
  for (const auto& run : run_moved(test).moved) EXPECT_NEAR(run[0].tensor().to_f64()[0], 9, 1e-3);
}

TEST(MovedRuns, LeaveScalesThatSetShapes) {
  TestGraph test;
  const Var x = input(test.graph, DType::f32, Shape::of({1, 2, 5, 3}), "x");
  test.graph.add_output(neg(resize(x, {1, 1, 2, 3})).id());
  Random random(5);
  test.inputs = {draw_tensor(random, DType::f32, {1, 2, 5, 3})};
  EXPECT_EQ(dims_of_moved(test), std::vector<Dims>(3, {1, 2, 10, 9}));
}

// As exporters spell an extent: shape, cast, times a float, cast back.
TEST(MovedRuns, LeaveFactorsOfExtents) {
  TestGraph test;
  const Var x = input(test.graph, DType::f32, {Dim::symbol("n"), Dim(4)}, "x");
  const Var extents = mul(cast(shape(x), DType::f32), constant(test.graph, Tensor::of<float>({2}, {3, 1})));
  const Var ones = constant_of_shape(cast(extents, DType::i64), Tensor::scalar(1.0F).reshaped({1}));
  test.graph.add_output(mul(ones, reduce_mean(x)).id());
  Random random(5);
  test.inputs = {draw_tensor(random, DType::f32, {2, 4})};
  EXPECT_EQ(dims_of_moved(test), std::vector<Dims>(3, {6, 4}));
}

}  // namespace
}  // namespace autograph
