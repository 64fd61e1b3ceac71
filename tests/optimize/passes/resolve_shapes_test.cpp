#include <gtest/gtest.h>

#include <functional>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

const Dim kBatch = Dim::symbol("batch");
const Dim kSequence = Dim::symbol("seq");

Var list(Graph& graph, const std::vector<int64_t>& values) { return constant(graph, Tensor::vector(values)); }

// The extent of an axis as [1], the way exporters write it.
Var extent(Var x, int64_t axis) {
  return unsqueeze(gather(shape(x), constant(x.graph(), Tensor::scalar<int64_t>(axis)), 0), {0});
}

// The constant that the only reshape goes to, with the type of the result, after the pass; "untouched" otherwise.
std::string resolved(Graph graph) {
  PassContext context;
  if (!resolve_shapes(graph, context)) return "untouched";
  verify(graph);
  std::string text;
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    if (node.op().name != "reshape" || !graph.value(node.input(1)).is_constant()) continue;
    if (!text.empty()) text += ' ';
    text += to_string(Dims(graph.value(node.input(1)).constant().to_i64())) + to_string(graph.type(node.output(0)));
  }
  return text;
}

Graph with_input(const std::function<Var(Var)>& spelling, Shape shape = {kBatch, kSequence, 768}) {
  Graph graph;
  graph.add_output(spelling(input(graph, DType::f32, std::move(shape), "x")).id());
  return graph;
}

TEST(ResolveShapes, CopiesExtentsOfTheInput) {
  const Graph graph = with_input([](Var x) {
    return reshape(x, concat({extent(x, 0), extent(x, 1), list(x.graph(), {-1, 64})}, 0));
  });
  EXPECT_EQ(resolved(graph), "[0,0,-1,64]f32[batch,seq,12,64]");
}

TEST(ResolveShapes, KnowsTypesBehindAReshapeItResolved) {
  const Graph graph = with_input([](Var x) {
    const Var heads = reshape(x, concat({extent(x, 0), extent(x, 1), list(x.graph(), {12, 64})}, 0));
    const Var swapped = transpose(heads, {0, 2, 1, 3});
    return reshape(swapped, concat({slice(shape(swapped), {0}, {3}, {0}), list(x.graph(), {8, -1})}, 0));
  });
  EXPECT_EQ(resolved(graph), "[0,0,12,64]f32[batch,seq,12,64] [0,12,0,8,-1]f32[batch,12,seq,8,8]");
}

TEST(ResolveShapes, WorksOneExtentOut) {
  const auto product = [](Var x) { return mul(extent(x, 0), extent(x, 1)); };
  const Graph graph = with_input([&](Var x) { return reshape(x, concat({product(x), list(x.graph(), {768})}, 0)); });
  EXPECT_EQ(resolved(graph), "[-1,768]f32[batch*seq,768]");
  // Two, or one beside a copy that may be 0, cannot be.
  EXPECT_EQ(resolved(with_input([&](Var x) {
              return reshape(x, concat({product(x), div(extent(x, 2), list(x.graph(), {1}))}, 0));
            })),
            "[-1,768]f32[batch*seq,768]");
  EXPECT_EQ(
      resolved(with_input([&](Var x) {
        return reshape(x, concat({extent(x, 0), mul(extent(x, 1), list(x.graph(), {2})), list(x.graph(), {384})}, 0));
      })),
      "");
}

TEST(ResolveShapes, KnowsTypesWhereTheShapeStaysComputed) {
  Graph graph = with_input([](Var x) {
    const Var rows = mul(extent(x, 0), list(x.graph(), {4}));
    const Var columns = mul(extent(x, 1), list(x.graph(), {2}));
    return reshape(x, concat({rows, columns, list(x.graph(), {96})}, 0));
  });
  PassContext context;
  EXPECT_TRUE(resolve_shapes(graph, context));
  verify(graph);
  const Shape& shape = graph.type(graph.outputs()[0]).shape();
  EXPECT_EQ(shape[0], kBatch * Dim(4));
  EXPECT_EQ(shape[1], kSequence * Dim(2));
  EXPECT_EQ(shape[2], Dim(96));
  EXPECT_FALSE(resolve_shapes(graph, context));
}

TEST(ResolveShapes, MakesConstantsOfExtentsThatAreNumbers) {
  Graph graph;
  const Var x = input(graph, DType::f32, {kBatch, 6}, "x");
  graph.add_output(extent(x, 1).id());
  graph.add_output(reshape(x, concat({extent(x, 0), list(graph, {-1})}, 0)).id());
  PassContext context;
  EXPECT_TRUE(resolve_shapes(graph, context));
  verify(graph);
  const Value& folded = graph.value(graph.outputs()[0]);
  ASSERT_TRUE(folded.is_constant());
  EXPECT_EQ(folded.constant().to_i64(), std::vector<int64_t>{6});
}

TEST(ResolveShapes, LeavesWhatItCannotTell) {
  Graph graph;
  const Var x = input(graph, DType::f32, {kBatch, 6}, "x");
  graph.add_output(reshape(x, input(graph, DType::i64, {2}, "shape")).id());
  EXPECT_EQ(resolved(graph), "untouched");
  EXPECT_EQ(resolved(with_input([](Var v) {
              const Var minus = sub(extent(v, 0), list(v.graph(), {1}));
              return reshape(v, concat({minus, list(v.graph(), {-1})}, 0));
            })),
            "untouched");
}

TEST(ResolveShapes, GivesWhatTheComputedShapeGave) {
  const auto before = with_input(
      [](Var x) {
        const Var two = list(x.graph(), {2});
        const Var flat = reshape(x, concat({mul(extent(x, 0), extent(x, 1)), list(x.graph(), {4})}, 0));
        const Var back = reshape(flat, concat({extent(flat, 0), two, two}, 0));
        return relu(reshape(back, concat({extent(back, 0), list(x.graph(), {-1})}, 0)));
      },
      {kBatch, kSequence, 4});
  Graph after = before;
  PassContext context;
  EXPECT_TRUE(resolve_shapes(after, context));
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  Random random(3);
  for (const Dims& dims : {Dims{2, 3, 4}, Dims{1, 1, 4}, Dims{5, 2, 4}}) {
    const std::vector<Datum> inputs{draw_tensor(random, DType::f32, dims)};
    EXPECT_EQ(difference(compile(after, options).run(inputs), compile(before, options).run(inputs)), "");
  }
}

}  // namespace
}  // namespace autograph
