#include <gtest/gtest.h>

#include <functional>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/random.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

using Spelling = std::function<Var(Var)>;

Graph graph_of(const Spelling& spelling, DType dtype = DType::f32, Shape shape = {2, 3, 4}) {
  Graph graph;
  graph.add_output(spelling(input(graph, dtype, std::move(shape), "x")).id(), "y");
  return graph;
}

Var number(Var x, double value) { return scalar_like(x, value); }

// ---- simplify_shapes -------------------------------------------------------------------------------------------

TEST(SimplifyShapes, MakesOneReshapeOfAChain) {
  const Graph after = after_pass(simplify_shapes, graph_of([](Var x) {
                                   const Var flat = unsqueeze(flatten(x), {1});
                                   return relu(reshape(squeeze(flat, {1}), std::vector<int64_t>{4, 6}));
                                 }));
  EXPECT_EQ(ops_of(after), "reshape relu");
}

TEST(SimplifyShapes, RemovesAChainThatComesBack) {
  const Graph after = after_pass(simplify_shapes, graph_of([](Var x) {
                                   return relu(squeeze(reshape(x, std::vector<int64_t>{1, 2, 3, 4}), {0}));
                                 }));
  EXPECT_EQ(ops_of(after), "relu");
}

TEST(SimplifyShapes, RemovesSqueezesOfAddedAxes) {
  const auto back_and_forth = [](std::vector<int64_t> added, std::vector<int64_t> removed) {
    const auto spelling = [&](Var x) { return relu(squeeze(unsqueeze(x, added), removed)); };
    Graph graph = graph_of(spelling, DType::f32, Shape::unknown());
    PassContext context = willing_device();
    simplify_shapes(graph, context);
    return ops_of(graph);
  };
  EXPECT_EQ(back_and_forth({0, -1}, {0, -1}), "relu");
  EXPECT_EQ(back_and_forth({0, -1}, {0}), "unsqueeze squeeze relu");
}

TEST(SimplifyShapes, KeepsWhatOthersReadInTheMiddle) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3, 4}, "x");
  const Var flat = flatten(x);
  graph.add_output(relu(flat).id());
  graph.add_output(reshape(flat, std::vector<int64_t>{4, 6}).id());
  const Graph after = after_pass(simplify_shapes, graph);
  EXPECT_EQ(after.num_nodes(), 3u);
  for (const NodeId id : after.nodes()) {
    if (after.node(id).op().traits.view) {
      EXPECT_EQ(after.node(id).input(0), after.inputs()[0]);
    }
  }
}

TEST(SimplifyShapes, ComposesTransposes) {
  const auto twice = [](std::vector<int64_t> first, std::vector<int64_t> second) {
    return ops_of(
        after_pass(simplify_shapes, graph_of([&](Var x) { return relu(transpose(transpose(x, first), second)); })));
  };
  EXPECT_EQ(twice({1, 2, 0}, {1, 2, 0}), "transpose relu");
  EXPECT_EQ(twice({1, 2, 0}, {2, 0, 1}), "relu");
}

TEST(SimplifyShapes, MovesExtentsOfOneByReshape) {
  const Graph after = after_pass(simplify_shapes, graph_of(
                                                      [](Var x) {
                                                        return relu(transpose(x, {1, 2, 0}));
                                                      },
                                                      DType::f32, {1, 3, 4}));
  EXPECT_EQ(ops_of(after), "reshape relu");
  expect_untouched(simplify_shapes, graph_of([](Var x) { return relu(transpose(x, {0, 2, 1})); }));
}

// x.view(x.size(0), -1), as exporters write it.
Var view_of_own_shape(Var x) {
  const Var extents = shape(x);
  const Var batch = slice(extents, {0}, {1}, {0});
  return reshape(x, concat({batch, constant(x.graph(), Tensor::vector({-1}))}, 0));
}

TEST(SimplifyShapes, MakesComputedShapesConstantWhileTheBatchIsSymbolic) {
  Graph graph = graph_of(view_of_own_shape, DType::f32, {Dim::symbol("batch"), 3, 4});
  // infer cannot tell the extents of a computed shape; a front end may.
  const ValueId result = graph.outputs()[0];
  graph.set_type(result, Type(DType::f32, {Dim::symbol("batch"), 12}));
  PassContext context;
  EXPECT_TRUE(simplify_shapes(graph, context));
  verify(graph);
  EXPECT_EQ(ops_of(graph), "reshape");
  const ValueId target = only_node(graph).input(1);
  EXPECT_EQ(graph.value(target).constant().to_i64(), (std::vector<int64_t>{0, 12}));
}

TEST(SimplifyShapes, LeavesShapesWithTwoUnknownExtents) {
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::unknown(), 6}, "x");
  const Var target = input(graph, DType::i64, {3}, "shape");
  graph.add_output(reshape(x, target).id());
  PassContext context;
  EXPECT_FALSE(simplify_shapes(graph, context));
}

TEST(SimplifyShapes, LeavesEmptyTensors) {
  expect_untouched(simplify_shapes, graph_of(
                                        [](Var x) {
                                          const Var flat = reshape(x, std::vector<int64_t>{-1});
                                          return reshape(flat, constant(x.graph(), Tensor::vector({0, 5})), true);
                                        },
                                        DType::f32, {0, 2}));
}

// ---- simplify_arithmetic ---------------------------------------------------------------------------------------

TEST(SimplifyArithmetic, RemovesNeutralConstants) {
  const std::vector<Spelling> spellings = {
      [](Var x) { return add(x, number(x, 0)); }, [](Var x) { return add(number(x, 0), x); },
      [](Var x) { return sub(x, number(x, 0)); }, [](Var x) { return mul(number(x, 1), x); },
      [](Var x) { return div(x, number(x, 1)); }, [](Var x) { return pow(x, number(x, 1)); },
  };
  for (const Spelling& spelling : spellings) {
    const auto before = [&](DType dtype) { return graph_of([&](Var x) { return abs(spelling(x)); }, dtype); };
    EXPECT_EQ(ops_of(after_pass(simplify_arithmetic, before(DType::f32))), "abs");
    EXPECT_EQ(ops_of(after_pass(simplify_arithmetic, before(DType::i32))), "abs");
  }
}

TEST(SimplifyArithmetic, LeavesNearMisses) {
  expect_untouched(simplify_arithmetic, graph_of([](Var x) { return sub(number(x, 0), x); }));
  expect_untouched(simplify_arithmetic, graph_of([](Var x) { return div(number(x, 1), x); }));
  expect_untouched(simplify_arithmetic, graph_of([](Var x) { return mul(x, number(x, 0)); }));
  expect_untouched(simplify_arithmetic, graph_of([](Var x) { return add(x, number(x, 1)); }));
  // A constant that adds a dim.
  const Spelling wider = [](Var x) { return add(x, constant(x.graph(), Tensor::zeros(DType::f32, {1, 1, 1, 1}))); };
  expect_untouched(simplify_arithmetic, graph_of(wider));
  // A constant that stretches x.
  const Spelling longer = [](Var x) { return add(x, constant(x.graph(), Tensor::zeros(DType::f32, {5}))); };
  expect_untouched(simplify_arithmetic, graph_of(longer, DType::f32, {2, 1}));
  expect_untouched(simplify_arithmetic, graph_of([](Var x) { return relu(neg(x)); }));
}

TEST(SimplifyArithmetic, RemovesRepeatedSteps) {
  const auto ops = [](const Spelling& spelling) { return ops_of(after_pass(simplify_arithmetic, graph_of(spelling))); };
  EXPECT_EQ(ops([](Var x) { return relu(relu(relu(x))); }), "relu");
  EXPECT_EQ(ops([](Var x) { return relu(sigmoid(x)); }), "sigmoid");
  EXPECT_EQ(ops([](Var x) { return abs(abs(x)); }), "abs");
  EXPECT_EQ(ops([](Var x) { return relu(neg(neg(x))); }), "relu");
}

TEST(SimplifyArithmetic, KeepsReluOfTheLeastIntegerBehindAbs) {
  const auto of = [](DType dtype) {
    Graph graph;
    const Var x = input(graph, dtype, {4}, "x");
    const Var least = scalar_like(x, dtype == DType::i8 ? -128 : -2147483648.0);
    graph.add_output(relu(abs(mul(x, least))).id());  // wraps for every odd element
    return graph;
  };
  expect_untouched(simplify_arithmetic, of(DType::i8));
  expect_untouched(simplify_arithmetic, of(DType::i32));
  Graph floats;
  floats.add_output(relu(abs(input(floats, DType::f32, {4}, "x"))).id());
  EXPECT_EQ(ops_of(after_pass(simplify_arithmetic, floats)), "abs");
}

TEST(SimplifyArithmetic, DropsCastsInBetweenThatLoseNothing) {
  const auto ops = [](DType from, DType middle, DType to) {
    return ops_of(
        after_pass(simplify_arithmetic, graph_of([&](Var x) { return abs(cast(cast(x, middle), to)); }, from)));
  };
  EXPECT_EQ(ops(DType::f16, DType::f32, DType::f16), "abs");
  EXPECT_EQ(ops(DType::f16, DType::f32, DType::f64), "cast abs");
  EXPECT_EQ(ops(DType::i32, DType::i64, DType::f32), "cast abs");
  EXPECT_EQ(ops(DType::i16, DType::i32, DType::i16), "abs");
}

TEST(SimplifyArithmetic, KeepsCastsInBetweenThatRound) {
  const auto keeps = [](DType from, DType middle, DType to) {
    expect_untouched(simplify_arithmetic, graph_of([&](Var x) { return cast(cast(x, middle), to); }, from));
  };
  keeps(DType::f32, DType::f16, DType::f32);
  keeps(DType::f32, DType::i32, DType::f32);
  keeps(DType::i64, DType::i32, DType::i64);
  keeps(DType::i32, DType::u32, DType::i64);
  keeps(DType::bf16, DType::f16, DType::f32);
  keeps(DType::i64, DType::f32, DType::i64);
}

// ---- eliminate_identity ----------------------------------------------------------------------------------------

TEST(EliminateIdentity, RemovesOpsThatHappenToDoNothing) {
  const std::vector<Spelling> spellings = {
      [](Var x) { return cast(x, DType::f32); },
      [](Var x) {
        return expand(x, {3, 1});
      },
      [](Var x) {
        return slice(x, {0, 0}, {2, 100}, {0, 2});
      },
      [](Var x) {
        return pad(x, {0, 0, 0, 0, 0, 0});
      },
      [](Var x) { return concat({x}, 1); },
      [](Var x) { return sum({x}); },
      [](Var x) { return clip(x, Var(), Var()); },
      [](Var x) { return dropout(x, Var(), Var(), std::nullopt).first; },
      [](Var x) { return split(x, {3}, 1)[0]; },
  };
  for (const Spelling& spelling : spellings) {
    const Graph before = graph_of([&](Var x) { return relu(spelling(x)); });
    EXPECT_EQ(ops_of(after_pass(eliminate_identity, before)), "relu") << ops_of(before);
  }
}

TEST(EliminateIdentity, KeepsThoseThatDoSomethingInTheSameShape) {
  expect_untouched(eliminate_identity, graph_of([](Var x) { return slice(x, {-1}, {-100}, {1}, {-1}); }));
  expect_untouched(eliminate_identity, graph_of([](Var x) { return pad(x, {0, 0, 1, 0, 0, -1}); }));
  expect_untouched(eliminate_identity, graph_of([](Var x) { return clip(x, number(x, 0), Var()); }));
  expect_untouched(eliminate_identity, graph_of([](Var x) { return sum({x, x}); }));
}

// ---- use_global_pool -------------------------------------------------------------------------------------------

TEST(UseGlobalPool, ReplacesMeansOverAllSpatialAxes) {
  const auto ops = [](const std::vector<int64_t>& axes, bool keepdims) {
    const Spelling spelling = [&](Var x) { return reduce_mean(x, axes, keepdims); };
    return ops_of(after_pass(use_global_pool, graph_of(spelling, DType::f32, {2, 3, 4, 5})));
  };
  EXPECT_EQ(ops({2, 3}, true), "global_average_pool");
  EXPECT_EQ(ops({-1, -2}, true), "global_average_pool");
  EXPECT_EQ(ops({-1, 2}, false), "global_average_pool reshape");
}

TEST(UseGlobalPool, LeavesOtherMeans) {
  const auto leaves = [](const std::vector<int64_t>& axes, DType dtype, Shape shape) {
    expect_untouched(use_global_pool, graph_of([&](Var x) { return reduce_mean(x, axes); }, dtype, std::move(shape)));
  };
  leaves({1, 2}, DType::f32, {2, 3, 4, 5});
  leaves({3}, DType::f32, {2, 3, 4, 5});
  leaves({1}, DType::f32, {2, 3});
  leaves({2}, DType::f32, {2, 3, 4});
  leaves({2, 3}, DType::i32, {2, 3, 4, 5});
}

}  // namespace
}  // namespace autograph
