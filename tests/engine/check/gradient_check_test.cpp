// Gradients that are right are found to be so, and those that are not are named.
#include "autograph/gradient_check.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/window.h"
#include "autograph/seeded_inputs.h"
#include "autograph/text.h"
#include "graph/nested/inline_graph.h"
#include "support/kernels/planted_kernel.h"

namespace autograph {
namespace {

void infer_same(InferContext& context) { context.set_output(0, context.dtype(0), context.shape(0)); }

template <class T>
void square_all(const TensorView& x, const TensorView& y) {
  for (int64_t i = 0; i < x.num_elements(); ++i) y.mutable_data<T>()[i] = x.data<T>()[i] * x.data<T>()[i];
}

void square(const OpCall& call) {
  const bool is_double = call.input(0).dtype() == DType::f64;
  (is_double ? square_all<double> : square_all<float>)(call.input(0), call.output(0));
}

// 2 x is right.
void wrong_rule(VjpContext& c) { c.set(0, c.in(0) * 2.001 * c.gy(0)); }

const OpDef& wrongly_squared_def() {
  static const OpDef def{.name = "wrongly_squared",
                         .doc = "y = x x, with a wrong gradient.",
                         .inputs = {{"x", "T", "Any shape."}},
                         .outputs = {{"y", "T", "Shape of x."}},
                         .types = {{"T", DTypeSet{DType::f32, DType::f64}}},
                         .infer = infer_same,
                         .reference = square,
                         .vjp = wrong_rule};
  return def;
}

Tensor drawn(const Dims& dims, uint64_t seed) {
  Graph graph;
  graph.add_input(Tensor::zeros(DType::f32, dims).type());
  SeedOptions options;
  options.seed = seed;
  return seeded_input(graph, 0, options).tensor();
}

// Two branches of weights, the second behind `function`.
Graph two_branches(Var (*function)(Var)) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {3, 4});
  const Var a = matmul(x, graph.constant(drawn({4, 5}, 1), "a"));
  const Var b = matmul(x, graph.constant(drawn({4, 5}, 2), "b"));
  graph.output("y", relu(a) + function(b));
  return graph.build();
}

GradientCheck checked(const Graph& graph, double seconds = 60, const CompileOptions& options = {}) {
  GradientCheckOptions how;
  how.seconds = seconds;
  return check_gradients(graph, seeded_inputs(graph), options, how);
}

TEST(GradientCheck, AgreesWhereRulesAreRight) {
  const GradientCheck check = checked(two_branches([](Var x) { return softmax(x); }));
  ASSERT_EQ(check.values.size(), 3U);
  EXPECT_TRUE(check.is_right());
  for (const GradientDifference& value : check.values) {
    EXPECT_GT(value.norm, 0) << value.name;
    EXPECT_LT(value.error, 1e-6) << value.name;
    EXPECT_EQ(value.group, 1U) << value.name;
  }
}

TEST(GradientCheck, NamesWhatAWrongRuleSpoils) {
  const Graph graph = two_branches([](Var x) { return apply(wrongly_squared_def(), {x}); });
  for (const double seconds : {60.0, 0.0}) {  // one by one, and from one group
    const GradientCheck check = checked(graph, seconds);
    EXPECT_FALSE(check.is_right());
    for (const GradientDifference& value : check.values) {
      EXPECT_EQ(value.agrees, value.name == "a") << value.name << " within " << seconds << " s: error " << value.error;
      EXPECT_TRUE(value.compiled.ok) << value.name;
    }
  }
}

TEST(GradientCheck, MovesManyValuesTogetherWhereTimeIsShort) {
  const GradientCheck check = checked(two_branches([](Var x) { return tanh(x); }), 0);
  EXPECT_TRUE(check.is_right());
  for (const GradientDifference& value : check.values) EXPECT_EQ(value.group, 3U) << value.name;
}

// The derivative with respect to a factor is what it is multiplied with: what the wrong kernel makes.
TEST(GradientCheck, NamesWhatAWrongKernelSpoils) {
  const Graph planted = planted_model();
  GraphBuilder graph;
  const Type& type = planted.type(planted.inputs().front());
  const Var x = graph.input("x", type.dtype(), type.shape());
  const Var made(graph.graph(), inline_graph(graph.graph(), planted, {x.id()}).front());
  graph.output("y", made * graph.constant(Tensor::of<float>({1}, {0.5F}), "factor"));
  CompileOptions options;
  options.device = planted_device();
  GradientCheckOptions how;
  how.gradients.wanted = "factor";
  const Graph model = graph.build();
  const GradientCheck check = check_gradients(model, seeded_inputs(model), options, how);
  EXPECT_FALSE(check.is_right());
  ASSERT_EQ(check.values.size(), 1U);
  EXPECT_TRUE(check.values[0].agrees);
  EXPECT_FALSE(check.values[0].compiled.ok);
}

TEST(GradientCheck, LossesWithoutInfluenceHaveZeros) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4});
  const Var unread = graph.input("unread", DType::f32, {4});
  graph.output("y", x * x);
  const GradientCheck check = checked(graph.build());
  EXPECT_TRUE(check.is_right());
  ASSERT_EQ(check.values.size(), 2U);
  EXPECT_EQ(check.values[1].norm, 0);
}

// Labels choose elements: they are drawn below the number of classes and do not move.
TEST(GradientCheck, DrawsTheTargetOfALoss) {
  const Graph graph = two_branches([](Var x) { return tanh(x); });
  for (const char* loss : {"cross_entropy", "token_cross_entropy", "soft_cross_entropy", "mse"}) {
    GradientCheckOptions how;
    how.gradients.loss = loss;
    const GradientCheck check = check_gradients(graph, seeded_inputs(graph), {}, how);
    EXPECT_TRUE(check.is_right()) << loss;
    ASSERT_EQ(check.values.size(), 3U) << loss;
    for (const GradientDifference& value : check.values) EXPECT_GT(value.norm, 0) << loss << ": " << value.name;
  }
}

// Elements that are near each other change places within a step: a kink for each pair.
TEST(GradientCheck, AgreesWhereElementsAreSorted) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {20000});
  graph.output("y", top_k(x * x * x, 10000, 0).first);
  const GradientCheck check = checked(graph.build());
  EXPECT_TRUE(check.is_right()) << check.values[0].derivative << " " << check.values[0].difference;
}

// Equal elements share no slope with their differences.
TEST(GradientCheck, ComparesBesideKinks) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {1});
  const Var q = graph.constant(Tensor::of<float>({6}, {1, 2, 2, 1, 2, 0}), "q");
  graph.output("y", top_k(q * x, 4, 0).first);
  GradientCheckOptions how;
  how.gradients.wanted = "q";
  const Graph model = graph.build();
  const GradientCheck check = check_gradients(model, seeded_inputs(model), {}, how);
  EXPECT_TRUE(check.is_right());
  EXPECT_TRUE(check.values.at(0).at_kink);
}

TEST(GradientCheck, NamesAWrongRuleAtAKink) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {1});
  const Var b = graph.constant(Tensor::of<float>({4}, {0.5F, 0, 0, -1}), "b");
  graph.output("y", (apply(wrongly_squared_def(), {b}) + 3 * relu(b)) * x);
  GradientCheckOptions how;
  how.gradients.wanted = "b";
  const Graph model = graph.build();
  const GradientCheck check = check_gradients(model, seeded_inputs(model), {}, how);
  EXPECT_FALSE(check.values.at(0).agrees);
}

// What is left when the time is over moves as one, and is not taken apart.
TEST(GradientCheck, KeepsItsTime) {
  const Graph graph = two_branches([](Var x) { return apply(wrongly_squared_def(), {x}); });
  GradientCheckOptions how;
  how.seconds = 1;
  int turns = 0;
  how.on_progress = [&](size_t, size_t) {
    if (++turns == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  };
  const GradientCheck check = check_gradients(graph, seeded_inputs(graph), {}, how);
  EXPECT_EQ(turns, 2);
  EXPECT_FALSE(check.is_right());
  // The most influential one moved alone; one of the other two is wrong as well, and which is not told.
  for (const GradientDifference& value : check.values) {
    EXPECT_EQ(value.told, value.name == "b") << value.name;
    EXPECT_TRUE(value.is_wrong()) << value.name;
  }
}

// All values as one group, and no time to take it apart.
GradientCheck checked_together(const Graph& graph) {
  GradientCheckOptions how;
  how.seconds = 0;
  int turns = 0;
  how.on_progress = [&](size_t, size_t) {
    if (++turns == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  };
  return check_gradients(graph, seeded_inputs(graph), {}, how);
}

TEST(GradientCheck, ComparesGroupsBesideKinks) {
  for (const bool is_right : {true, false}) {
    GraphBuilder graph;
    const Var x = graph.input("x", DType::f32, {4});
    const Var b = graph.constant(Tensor::of<float>({4}, {0.5F, 0, 0, -1}), "b");
    graph.output("y", (is_right ? x * x : apply(wrongly_squared_def(), {x})) + 3 * relu(b));
    const GradientCheck check = checked_together(graph.build());
    EXPECT_EQ(check.is_right(), is_right);
    ASSERT_EQ(check.values.size(), 2U);
    for (const GradientDifference& value : check.values) {
      EXPECT_EQ(value.group, 2U);
      EXPECT_EQ(value.told, is_right) << value.name;
    }
  }
}

// Steps of a floor are kinks everywhere: what no place beside them tells is neither right nor wrong.
TEST(GradientCheck, GroupsThatAreNotToldApartShowNothing) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4});
  const Var b = graph.constant(Tensor::of<float>({4}, {0.5F, 3, 2, -1}), "b");
  graph.output("y", floor(x * 1e8) + b * b);
  const GradientCheck check = checked_together(graph.build());
  EXPECT_TRUE(check.is_right());
  ASSERT_EQ(check.values.size(), 2U);
  for (const GradientDifference& value : check.values) {
    EXPECT_FALSE(value.told) << value.name;
    EXPECT_FALSE(value.agrees) << value.name;
    EXPECT_TRUE(value.at_kink) << value.name;
  }
}

TEST(GradientCheck, ModelsInHalfPrecisionAndWithBodies) {
  const Graph graph = parse_text(R"(graph "g" {
  input %0 "x": f16[4]
  input %1 "c": bool[]
  %2: f16[4] = if(%1, %0) {else_branch=graph "e" {
    input %0 "x": f16[4]
    %1: f16[4] = tanh(%0)
    output %1 "y"
  }, then_branch=graph "t" {
    input %0 "x": f16[4]
    %1: f16[4] = mul(%0, %0)
    output %1 "y"
  }}
  output %2 "y"
}
)");
  const GradientCheck check = checked(graph);
  EXPECT_TRUE(check.is_right());
  EXPECT_LT(check.values.at(0).error, 1e-6);
}

}  // namespace
}  // namespace autograph
