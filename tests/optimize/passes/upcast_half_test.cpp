#include <gtest/gtest.h>

#include <functional>

#include "autograph/ops/activation.h"
#include "autograph/ops/control.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// A device with kernels for all but half precision.
PassContext device_without_half() {
  PassContext context;
  context.has_kernel = [](const Graph& graph, NodeId id) {
    const auto is_half = [&](ValueId v) {
      const DType dtype = v.is_valid() ? graph.type(v).dtype() : DType::undefined;
      return dtype == DType::f16 || dtype == DType::bf16;
    };
    const auto& inputs = graph.node(id).inputs();
    return std::none_of(inputs.begin(), inputs.end(), is_half);
  };
  context.expects_kernel = context.has_kernel;
  return context;
}

Tensor half_tensor(Random& random, DType dtype, Dims dims) {
  return draw_tensor(random, dtype, std::move(dims), -1, 1);
}

// The graph after the pass; numbers may differ by some roundings to half precision.
Graph widened(const Graph& before, double error) {
  Random random(5);
  Graph after = before;
  PassContext context = device_without_half();
  EXPECT_TRUE(upcast_half(after, context));
  verify(after);
  for (size_t k = 0; k < before.outputs().size(); ++k) {
    EXPECT_EQ(after.type(after.outputs()[k]), before.type(before.outputs()[k]));
  }
  EXPECT_EQ(numeric_difference(before, after, random, {error, error}), "");
  return after;
}

TEST(WidenHalf, KeepsNeighboursInSinglePrecision) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    Random random(1);
    Graph graph;
    const Var x = input(graph, dtype, {3, 8}, "x");
    const Var hidden = relu(matmul(x, constant(graph, half_tensor(random, dtype, {8, 5}), "w")));
    const Var y = add(transpose(hidden, {1, 0}), constant(graph, half_tensor(random, dtype, {5, 1})));
    graph.add_output(y.id(), "y");
    const Graph after = widened(graph, dtype == DType::f16 ? 4e-3 : 4e-2);
    EXPECT_EQ(ops_of(after), "cast matmul relu transpose add cast");
  }
}

TEST(WidenHalf, LeavesOutCastsOfTheModel) {
  Random random(2);
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 8}, "x");
  const Var product = matmul(cast(x, DType::f16), constant(graph, half_tensor(random, DType::f16, {8, 5})));
  graph.add_output(exp(cast(product, DType::f32)).id());
  EXPECT_EQ(ops_of(widened(graph, 4e-3)), "matmul exp");
}

TEST(WidenHalf, GivesBackWhatIsReadInHalfPrecision) {
  Random random(3);
  Graph graph;
  const Var x = input(graph, DType::f16, {3, 8}, "x");
  const Var product = matmul(x, constant(graph, half_tensor(random, DType::f16, {8, 5})));
  graph.add_output(product.id());
  graph.add_output(cast(product, DType::i32).id());
  graph.add_output(arg_max(product, 1).id());
  const Graph after = widened(graph, 4e-3);
  EXPECT_EQ(after.type(after.outputs()[0]).dtype(), DType::f16);
  EXPECT_EQ(after.type(after.outputs()[1]).dtype(), DType::i32);
}

// A node that stays in half precision, with readers that do not.
TEST(WidenHalf, StandsBesideNodesThatStay) {
  const auto branch = [](const std::string& name, bool doubles) {
    Graph graph(name);
    const Var x = input(graph, DType::f16, {3, 5}, "x");
    graph.add_output(doubles ? add(x, x).id() : neg(x).id());
    return std::make_shared<const Graph>(std::move(graph));
  };
  const auto chosen = [&](Var product) {
    const Var condition = input(product.graph(), DType::boolean, {}, "condition");
    const Attributes branches{{"then_branch", branch("then", true)}, {"else_branch", branch("else", false)}};
    return apply_all(get_op("if"), {condition, product}, branches, 1)[0];
  };
  const auto kept = [](Var product) { return apply(get_op("cast_like"), {cast(product, DType::boolean), product}); };
  const auto dropped = [](Var product) {
    Graph& graph = product.graph();
    const NodeId node = graph.add_node(get_op("dropout"), {product.id()}, {}, {{}, 2});
    const Var mask(graph, graph.node(node).output(1));
    return mul(Var(graph, graph.node(node).output(0)), cast(mask, DType::f16));
  };
  const auto looped = [](Var product) {
    Graph body("body");
    input(body, DType::i64, {}, "turn");
    const Var goes_on = input(body, DType::boolean, {}, "goes_on"), state = input(body, DType::f16, {3, 5}, "state");
    body.add_output(goes_on.id());
    body.add_output(mul(state, scalar_like(state, 0.5)).id());
    return loop(constant(product.graph(), Tensor::scalar<int64_t>(2)), Var(), {product}, body)[0];
  };
  for (const auto& stays : std::vector<std::function<Var(Var)>>{chosen, kept, dropped, looped}) {
    Random random(4);
    Graph graph;
    const Var x = input(graph, DType::f16, {3, 8}, "x");
    const Var product = matmul(x, constant(graph, half_tensor(random, DType::f16, {8, 5})));
    const Var between = stays(product);
    const Var y = matmul(between, constant(graph, half_tensor(random, DType::f16, {5, 2})));
    graph.add_output(relu(y).id());
    graph.add_output(exp(neg(between)).id());
    widened(graph, 2e-2);
  }
}

TEST(WidenHalf, LeavesGraphsThatGainNothing) {
  expect_untouched(upcast_half, [] {
    Graph graph;
    graph.add_output(relu(input(graph, DType::f16, {4}, "x")).id());
    return graph;
  }());
  Graph single;
  single.add_output(relu(input(single, DType::f32, {4}, "x")).id());
  PassContext context = device_without_half();
  EXPECT_FALSE(upcast_half(single, context));
}

// A cache that grows: it stays in half precision, attention reads a cast of it.
TEST(UpcastHalf, LeavesWhatMovesFromAnInputToAnOutput) {
  Random random(8);
  Graph graph;
  const Var past = input(graph, DType::f16, {2, 5, 8}, "past"), x = input(graph, DType::f16, {2, 1, 8}, "x");
  const Var fresh = tanh(x);
  const Var present = concat({slice(past, {1}, {5}, {1}), fresh}, 1);
  graph.add_output(present.id(), "present");
  graph.add_output(relu(matmul(fresh, transpose(present, {0, 2, 1}))).id(), "y");
  const Graph after = widened(graph, 5e-3);
  for (const NodeId id : after.nodes()) {
    const Node& node = after.node(id);
    const bool is_moved = &node.op() == &concat_def() || &node.op() == &slice_def();
    const DType dtype = after.type(node.output(0)).dtype();
    EXPECT_EQ(dtype == DType::f16, is_moved || (&node.op() == &cast_def() && dtype == DType::f16)) << node.op().name;
  }
}

// What only leaves, or only comes in, is computed in f32 with the rest.
TEST(UpcastHalf, WidensWhatMovesAtOneEnd) {
  Graph graph;
  const Var x = input(graph, DType::f16, {4, 8}, "x");
  graph.add_output(transpose(exp(transpose(x, {1, 0})), {1, 0}).id(), "y");
  const Graph after = widened(graph, 5e-3);
  for (const NodeId id : after.nodes()) {
    const Node& node = after.node(id);
    if (&node.op() == &cast_def()) continue;
    EXPECT_EQ(after.type(node.output(0)).dtype(), DType::f32) << node.op().name;
  }
}

}  // namespace
}  // namespace autograph
