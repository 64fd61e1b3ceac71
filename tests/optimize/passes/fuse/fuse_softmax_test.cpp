#include <gtest/gtest.h>

#include <functional>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

Graph spelled(const std::function<Var(Var)>& spelling, DType dtype = DType::f32) {
  Graph graph;
  graph.add_output(spelling(input(graph, dtype, {2, 3, 4}, "x")).id());
  return graph;
}

Var exponentials(Var x, int64_t axis) { return exp(sub(x, reduce_max(x, {axis}))); }

TEST(FuseSoftmax, FindsItInItsSpellings) {
  for (const int64_t axis : {1, -1}) {
    const std::vector<std::function<Var(Var)>> spellings = {
        [&](Var x) {
          const Var e = exponentials(x, axis);
          return div(e, reduce_sum(e, {axis}));
        },
        [&](Var x) {
          const Var e = exp(x);
          return mul(reciprocal(reduce_sum(e, {axis})), e);
        },
    };
    for (const auto& spelling : spellings) {
      const Graph after = after_pass(fuse_softmax, spelled(spelling));
      EXPECT_EQ(ops_of(after), "softmax");
      EXPECT_EQ(only_node(after).attributes().integer("axis"), axis < 0 ? 2 : axis);
      EXPECT_EQ(only_node(after).input(0), after.inputs()[0]);
    }
  }
}

TEST(FuseSoftmax, LeavesNearMisses) {
  const auto quotient = [](Var e, Var of, const std::vector<int64_t>& axes, bool keepdims) {
    return div(e, reduce_sum(of, axes, keepdims));
  };
  expect_untouched(fuse_softmax, spelled([&](Var x) {
                     const Var e = exp(x);
                     return quotient(e, e, {1, 2}, true);
                   }));
  expect_untouched(fuse_softmax, spelled([&](Var x) {
                     const Var e = exp(x);
                     return quotient(e, abs(e), {1}, true);
                   }));
  expect_untouched(fuse_softmax, spelled([&](Var x) {
                     const Var e = abs(x);
                     return quotient(e, e, {1}, true);
                   }));
  expect_untouched(fuse_softmax, spelled([&](Var x) {
                     const Var e = exp(x);
                     return quotient(e, e, {0}, false);
                   }));
  expect_untouched(fuse_softmax, spelled(
                                     [&](Var x) {
                                       const Var e = exp(x);
                                       return quotient(e, e, {1}, true);
                                     },
                                     DType::f64));
}

TEST(FuseSoftmax, KeepsASubtractionOfAnotherMaximum) {
  const Graph after = after_pass(fuse_softmax, spelled([](Var x) {
                                   const Var e = exponentials(x, 1);
                                   return div(e, reduce_sum(e, {2}));
                                 }));
  EXPECT_EQ(ops_of(after), "reduce_max sub softmax");
}

TEST(FuseSoftmax, LeavesExponentialsThatAreReadElsewhere) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var e = exponentials(x, 1);
  graph.add_output(div(e, reduce_sum(e, {1})).id());
  graph.add_output(e.id());
  expect_untouched(fuse_softmax, graph);
}

}  // namespace
}  // namespace autograph
