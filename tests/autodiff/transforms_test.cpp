// The transformations on graphs: what they compute, what they leave alone, what they refuse.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/text.h"
#include "autograph/verify.h"
#include "ops/defs.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Tensor f64(Dims dims, const std::vector<double>& values) { return Tensor::of<double>(std::move(dims), values); }

// Runs what `results` need, on the reference device and on the processor, which must agree.
std::vector<std::vector<double>> run(const GraphBuilder& graph, const std::vector<Var>& results,
                                     const std::vector<Datum>& inputs) {
  Graph copy = graph.build();
  for (const Var& result : results) copy.add_output(result.id());
  verify(copy);
  CompileOptions reference;
  reference.device = "reference";
  std::vector<std::vector<double>> values, others;
  for (const Datum& output : compile(copy, reference).run(inputs)) values.push_back(output.tensor().to_f64());
  for (const Datum& output : compile(copy).run(inputs)) others.push_back(output.tensor().to_f64());
  for (size_t k = 0; k < values.size(); ++k) {
    EXPECT_EQ(values[k].size(), others[k].size());
    for (size_t i = 0; i < std::min(values[k].size(), others[k].size()); ++i) {
      const bool same = (std::isnan(values[k][i]) && std::isnan(others[k][i])) || values[k][i] == others[k][i] ||
                        std::abs(values[k][i] - others[k][i]) <= 1e-5 * (1 + std::abs(values[k][i]));
      EXPECT_TRUE(same) << "result " << k << ", element " << i << ": " << values[k][i] << " and " << others[k][i];
    }
  }
  return values;
}

TEST(Grad, OfASquareIsTwiceTheValue) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {3});
  const auto values = run(graph, grad(reduce_sum(x * x), {x}), {f64({3}, {1, -2, 3})});
  EXPECT_EQ(values[0], (std::vector<double>{2, -4, 6}));
}

TEST(Grad, AddsUpOverTiedParameters) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2, 2});
  const Var w = graph.input("w", DType::f64, {2, 2});
  const Var y = matmul(matmul(x, w), w);
  const auto values = run(graph, grad(reduce_sum(y), {w}), {f64({2, 2}, {1, 2, 3, 4}), f64({2, 2}, {1, 0, 0, 1})});
  // d sum(x w w) / dw = x^T 1 w^T + (x w)^T 1, both of them columns sums of x in each row at w = 1.
  EXPECT_EQ(values[0], (std::vector<double>{8, 8, 12, 12}));
}

TEST(Grad, IsSummedOverWhatWasBroadcast) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2, 3});
  const Var b = graph.input("b", DType::f64, {3});
  const Var s = graph.input("s", DType::f64, {});
  const Var c = graph.input("c", DType::f64, {2, 1});
  const auto values = run(graph, grad(reduce_sum(x * b * s + c), {b, s, c}),
                          {f64({2, 3}, {1, 2, 3, 4, 5, 6}), f64({3}, {1, 1, 2}), f64({}, {10}), f64({2, 1}, {0, 0})});
  EXPECT_EQ(values[0], (std::vector<double>{50, 70, 90}));
  EXPECT_EQ(values[1], (std::vector<double>{30}));
  EXPECT_EQ(values[2], (std::vector<double>{3, 3}));
}

TEST(Grad, OfExtentsKnownWhileRunningOnly) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, Shape({Dim::symbol("n"), 2}));
  const Var w = graph.input("w", DType::f64, Shape({Dim::symbol("m"), 2}));
  const Var loss = reduce_sum(x * w, {}, false);
  const std::vector<Var> gradients = grad(loss, {x, w});
  const Tensor wide = f64({3, 2}, {1, 2, 3, 4, 5, 6}), row = f64({1, 2}, {10, 20});
  EXPECT_EQ(run(graph, gradients, {wide, row})[1], (std::vector<double>{9, 12}));
  EXPECT_EQ(run(graph, gradients, {row, wide})[0], (std::vector<double>{9, 12}));
  EXPECT_EQ(run(graph, gradients, {wide, wide})[0], (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Grad, IsZeroForWhatTheLossDoesNotDependOn) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var other = graph.input("other", DType::f64, {2, 2});
  const auto values = run(graph, grad(reduce_sum(x), {other, x}), {f64({2}, {1, 2}), f64({2, 2}, {1, 2, 3, 4})});
  EXPECT_EQ(values[0], (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(values[1], (std::vector<double>{1, 1}));
}

TEST(Grad, WithRespectToAnIntermediateValue) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var hidden = x * 3;
  const auto values = run(graph, grad(reduce_sum(hidden * hidden), {hidden, x}), {f64({2}, {1, 2})});
  EXPECT_EQ(values[0], (std::vector<double>{6, 12}));
  EXPECT_EQ(values[1], (std::vector<double>{18, 36}));
}

TEST(Grad, StopsWhereItIsToldTo) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const auto values = run(graph, grad(reduce_sum(x * stop_gradient(x)), {x}), {f64({2}, {5, 7})});
  EXPECT_EQ(values[0], (std::vector<double>{5, 7}));
}

TEST(Grad, ComputesNothingThatIsNotAskedFor) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {4, 8});
  const Var w = graph.input("w", DType::f64, {8, 8});
  const Var loss = reduce_sum(matmul(tanh(matmul(x, stop_gradient(w))), w));
  const size_t before = graph.graph().num_nodes();
  grad(loss, {w});
  // One product for w behind tanh; none for x, none back through tanh.
  size_t products = 0;
  for (const NodeId id : graph.graph().nodes()) {
    const OpDef& op = graph.graph().node(id).op();
    products += &op == &matmul_def() || &op == &gemm_def();
  }
  EXPECT_EQ(products, 3U);
  EXPECT_LE(graph.graph().num_nodes(), before + 8);
}

TEST(Grad, OfALongChainOfDiamondsTakesLinearTime) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  Var y = x;
  for (int i = 0; i < 10'000; ++i) y = y * 0.5 + y * 0.5;
  const auto begin = std::chrono::steady_clock::now();
  const Var gradient = grad(reduce_sum(y), {x})[0];
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
#ifdef NDEBUG
  EXPECT_LT(seconds, 1.0);
#endif
  EXPECT_LT(seconds, 20.0);
  EXPECT_LT(graph.graph().num_nodes(), 80'000U);
  (void)gradient;
}

TEST(Grad, GivesTheValueAsWell) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const ValueAndGrad result = value_and_grad(reduce_sum(exp(x), {}, false), {x});
  const auto values = run(graph, {result.value, result.gradients[0]}, {f64({2}, {0, 0})});
  EXPECT_EQ(values[0], (std::vector<double>{2}));
  EXPECT_EQ(values[1], (std::vector<double>{1, 1}));
}

// ---- Kinks and slopes that are not finite ----------------------------------------------------------------------

std::vector<double> slopes(Var (*function)(Var), const std::vector<double>& at) {
  GraphBuilder graph;
  const auto count = static_cast<int64_t>(at.size());
  const Var x = graph.input("x", DType::f64, {count});
  return run(graph, grad(reduce_sum(function(x)), {x}), {f64({count}, at)})[0];
}

TEST(Kinks, AreThoseOfPyTorch) {
  EXPECT_EQ(slopes([](Var x) { return relu(x); }, {-1, 0, 1}), (std::vector<double>{0, 0, 1}));
  EXPECT_EQ(slopes([](Var x) { return abs(x); }, {-1, 0, 1}), (std::vector<double>{-1, 0, 1}));
  EXPECT_EQ(slopes([](Var x) { return leaky_relu(x, 0.5F); }, {-1, 0, 1}), (std::vector<double>{0.5, 0.5, 1}));
  EXPECT_EQ(slopes([](Var x) { return elu(x, 2.0F); }, {0, 1, 1000}), (std::vector<double>{2, 1, 1}));
  EXPECT_EQ(slopes([](Var x) { return hard_sigmoid(x, 0.25F, 0.5F); }, {-2, 0, 2}), (std::vector<double>{0, 0.25, 0}));
  EXPECT_EQ(slopes([](Var x) { return hard_swish(x); }, {-3, 0, 3}), (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(slopes([](Var x) { return clip(x, scalar_like(x, -1), scalar_like(x, 1)); }, {-2, -1, 0, 1, 2}),
            (std::vector<double>{0, 0, 1, 0, 0}));
  EXPECT_EQ(slopes([](Var x) { return max({x, scalar_like(x, 1)}); }, {0, 1, 2}), (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(slopes([](Var x) { return reduce_max(x); }, {3, 1, 3}), (std::vector<double>{0.5, 0, 0.5}));
}

TEST(Kinks, SmoothFunctionsHaveNone) {
  EXPECT_EQ(slopes([](Var x) { return sigmoid(x); }, {0}), (std::vector<double>{0.25}));
  EXPECT_EQ(slopes([](Var x) { return softplus(x); }, {0}), (std::vector<double>{0.5}));
  EXPECT_EQ(slopes([](Var x) { return softsign(x); }, {0}), (std::vector<double>{1}));
  EXPECT_EQ(slopes([](Var x) { return swish(x); }, {0}), (std::vector<double>{0.5}));
}

TEST(Kinks, FarAwayThereIsNoNan) {
  for (Var (*function)(Var) :
       {+[](Var x) { return sigmoid(x); }, +[](Var x) { return softplus(x); }, +[](Var x) { return mish(x); },
        +[](Var x) { return swish(x); }, +[](Var x) { return gelu(x, false); }, +[](Var x) { return gelu(x, true); },
        +[](Var x) { return elu(x); }, +[](Var x) { return tanh(x); }, +[](Var x) { return reduce_log_sum_exp(x); }}) {
    for (const double slope : slopes(function, {-1000, -100, 100, 1000})) EXPECT_TRUE(std::isfinite(slope));
  }
}

TEST(NanSafety, ABranchNotTakenGivesNoNan) {
  for (Var (*function)(Var) :
       {+[](Var x) { return sqrt(x); }, +[](Var x) { return log(x); }, +[](Var x) { return reciprocal(x); },
        +[](Var x) { return 1 / x; }, +[](Var x) { return pow(x, scalar_like(x, -0.5)); },
        +[](Var x) { return reduce_l2(x, {0}); }}) {
    GraphBuilder graph;
    const Var x = graph.input("x", DType::f64, {3, 1});
    const Var zero = scalar_like(x, 0);
    const Var y = where(greater(x, zero), function(x), zero);
    const std::vector<Var> first = grad(reduce_sum(y), {x});
    const std::vector<Var> second = grad(reduce_sum(first[0]), {x});
    for (const auto& values : run(graph, {first[0], second[0]}, {f64({3, 1}, {0, 4, 0})})) {
      EXPECT_TRUE(std::isfinite(values[0]) && std::isfinite(values[1])) << print_text(graph.graph());
    }
  }
}

TEST(NanSafety, ASlopeThatIsReadStaysInfinite) {
  EXPECT_EQ(slopes([](Var x) { return sqrt(x); }, {0})[0], INFINITY);
  EXPECT_EQ(slopes([](Var x) { return reduce_l2(x); }, {0, 0}), (std::vector<double>{0, 0}));
  EXPECT_EQ(slopes([](Var x) { return reduce_prod(x); }, {2, 0, 3}), (std::vector<double>{0, 6, 0}));
  EXPECT_EQ(slopes([](Var x) { return reduce_prod(x); }, {2, 0, 0}), (std::vector<double>{0, 0, 0}));
}

// ---- Other products --------------------------------------------------------------------------------------------

TEST(Vjp, OfSeveralOutputs) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var g = graph.input("g", DType::f64, {2});
  const std::vector<Var> gradients = vjp({x * x, x * 5, exp(x)}, {g, g, {}}, {x});
  const auto values = run(graph, gradients, {f64({2}, {1, 2}), f64({2}, {10, 100})});
  EXPECT_EQ(values[0], (std::vector<double>{70, 900}));
}

TEST(Jvp, IsTheChangeAlongADirection) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var t = graph.input("t", DType::f64, {2});
  const std::vector<Var> changes = jvp({x * x, reduce_sum(x)}, {x}, {t});
  const auto values = run(graph, changes, {f64({2}, {3, 4}), f64({2}, {1, 10})});
  EXPECT_EQ(values[0], (std::vector<double>{6, 80}));
  EXPECT_EQ(values[1], (std::vector<double>{11}));
}

// What flows into s from both outputs cancels; its own change does not.
TEST(Jvp, OfOutputsThatCancel) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {1});
  const Var t = graph.input("t", DType::f64, {1});
  const Var s = sqrt(x);
  const auto values = run(graph, jvp({s, -s}, {x}, {t}), {f64({1}, {4}), f64({1}, {1})});
  EXPECT_EQ(values[0][0], 0.25);
  EXPECT_EQ(values[1][0], -0.25);
}

TEST(Hvp, IsTheHessianTimesAVector) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var v = graph.input("v", DType::f64, {2});
  const Var loss = reduce_sum(x * x * x, {}, false) + reduce_prod(x, {}, false);
  const auto values = run(graph, hvp(loss, {x}, {v}), {f64({2}, {2, 3}), f64({2}, {1, 10})});
  EXPECT_EQ(values[0], (std::vector<double>{22, 181}));
}

TEST(Jacobian, HasARowForEachOutput) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var a = constant(graph.graph(), f64({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Var y = matmul(a, x * x);
  const Var matrix = jacobian(y, x);
  EXPECT_EQ(to_string(matrix.type()), "f64[3,2]");
  EXPECT_EQ(run(graph, {matrix}, {f64({2}, {1, 10})})[0], (std::vector<double>{2, 40, 6, 80, 10, 120}));
}

TEST(Jacobian, OfSomethingElseIsZero) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const Var y = graph.input("y", DType::f64, {3});
  EXPECT_EQ(run(graph, {jacobian(y, x)}, {f64({2}, {1, 2}), f64({3}, {1, 2, 3})})[0], std::vector<double>(6, 0));
}

TEST(Grad, OfGradientsOfGradients) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {1});
  Var y = reduce_sum(x * x * x * x);
  std::vector<Var> derivatives;
  for (int order = 0; order < 5; ++order) {
    y = grad(y, {x})[0];
    derivatives.push_back(y);
  }
  const auto values = run(graph, derivatives, {f64({1}, {2})});
  const double expected[] = {32, 48, 48, 24, 0};
  for (size_t k = 0; k < 5; ++k) EXPECT_EQ(values[k][0], expected[k]);
}

// ---- Extents of zero -------------------------------------------------------------------------------------------

TEST(Grad, OfNothingIsNothing) {
  for (const Dims& dims : {Dims{0, 3}, Dims{2, 0}}) {
    GraphBuilder graph;
    const Var x = graph.input("x", DType::f64, Shape::of(dims));
    const Var w = graph.input("w", DType::f64, {dims[1], 4});
    const Var b = graph.input("b", DType::f64, {4});
    const Var y = softmax(tanh(matmul(x, w) + b));
    const Var loss = reduce_sum(y * y) + reduce_sum(concat({x, x}, 0)) + reduce_sum(slice(x, {0}, {1}, {0}));
    const std::vector<Var> gradients = grad(loss, {x, w, b});
    const auto values =
        run(graph, gradients,
            {Tensor::zeros(DType::f64, dims), Tensor::zeros(DType::f64, {dims[1], 4}), Tensor::zeros(DType::f64, {4})});
    EXPECT_EQ(values[0].size(), 0U);
    EXPECT_EQ(values[1], std::vector<double>(static_cast<size_t>(dims[1] * 4), 0));
    EXPECT_EQ(values[2].size(), 4U);
  }
}

// ---- Errors ----------------------------------------------------------------------------------------------------

// An op without a rule.
const OpDef& mystery_def() {
  static const OpDef def{
      .name = "mystery",
      .doc = "y = x.",
      .inputs = {{"x", "T", "Any shape."}},
      .outputs = {{"y", "T", "Shape of x."}},
      .types = {{"T", dtypes::kFloat}},
      .infer = [](InferContext& context) { context.set_output(0, context.input(0)); },
      .reference = [](const OpCall&) {},
  };
  return def;
}

TEST(Errors, AnOpWithoutARuleIsNamed) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {2});
  const ProvenanceScope scope("layer7");
  const Var y = apply(mystery_def(), {x});
  const std::string message = message_of<UnsupportedError>([&] { grad(reduce_sum(y), {x}); });
  EXPECT_NE(message.find("mystery"), std::string::npos) << message;
  EXPECT_NE(message.find("layer7"), std::string::npos) << message;
  // Nobody asks for a gradient that passes it.
  EXPECT_NO_THROW(grad(reduce_sum(y * x), {y}));
}

TEST(Errors, ArgumentsAreChecked) {
  GraphBuilder graph, other;
  const Var x = graph.input("x", DType::f64, {2});
  const Var i = graph.input("i", DType::i64, {2});
  const Var far = other.input("x", DType::f64, {2});
  EXPECT_NE(message_of<ShapeError>([&] { grad(x, {x}); }).find("one element"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { grad(reduce_sum(x), {i}); }).find("float"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { grad(reduce_sum(x), {far}); }).find("one graph"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { grad({}, {x}); }).find("loss"), std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { vjp({x}, {}, {x}); }).find("one for each"), std::string::npos);
  EXPECT_NE(message_of<ShapeError>([&] { vjp({x}, {reduce_sum(x)}, {x}); }).find("f64[2]"), std::string::npos);
}

// ---- Ops of programs -------------------------------------------------------------------------------------------

// x^2 with a gradient that a user has made up.
const OpDef& odd_square_def() {
  static const OpDef def = [] {
    OpDef op = mystery_def();
    op.name = "odd_square";
    op.reference = nullptr;
    op.decompose = [](DecomposeContext& c) { return std::vector<Var>{c.inputs[0] * c.inputs[0]}; };
    op.vjp = [](VjpContext& c) { c.set(0, c.gy(0) * 100); };
    return op;
  }();
  return def;
}

// x^2 that leaves its gradient to its body.
const OpDef& plain_square_def() {
  static const OpDef def = [] {
    OpDef op = odd_square_def();
    op.name = "plain_square";
    op.vjp = nullptr;
    return op;
  }();
  return def;
}

TEST(CustomOps, BringTheirOwnGradientOrHaveThatOfTheirBody) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f64, {1});
  const Var odd = apply(odd_square_def(), {x});
  const Var plain = apply(plain_square_def(), {x});
  graph.output("plain", plain);
  const std::vector<Var> of_odd = grad(reduce_sum(odd), {x});
  const std::vector<Var> of_plain = grad(reduce_sum(plain), {x, plain});
  const auto values = run(graph, {of_odd[0], of_plain[0], of_plain[1]}, {f64({1}, {3})});
  EXPECT_EQ(values[0][0], 9);  // the output that the graph had before
  EXPECT_EQ(values[1][0], 100);
  EXPECT_EQ(values[2][0], 6);
  EXPECT_EQ(values[3][0], 1);
}

}  // namespace
}  // namespace autograph
