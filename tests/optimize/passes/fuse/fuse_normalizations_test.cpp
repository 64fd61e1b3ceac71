#include <gtest/gtest.h>

#include <functional>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// How a model spells d / sqrt(mean(d^2) + epsilon).
using Quotient = std::function<Var(Var d, Var variance)>;

Var number(Var x, double value) { return scalar_like(x, value); }

const std::vector<Quotient> kQuotients = {
    [](Var d, Var variance) { return div(d, sqrt(variance)); },
    [](Var d, Var variance) { return mul(d, reciprocal(sqrt(variance))); },
    [](Var d, Var variance) { return mul(div(number(d, 1), sqrt(variance)), d); },
    [](Var d, Var variance) { return mul(d, pow(variance, number(d, -0.5))); },
};

Var mean_square(Var d, const std::vector<int64_t>& axes, bool as_power, double epsilon) {
  const Var square = as_power ? pow(d, number(d, 2)) : mul(d, d);
  return add(reduce_mean(square, axes), number(d, epsilon));
}

Var centered(Var x, const std::vector<int64_t>& axes) { return sub(x, reduce_mean(x, axes)); }

Var parameter(Var x, Dims dims) {
  Random random(7);
  return constant(x.graph(), draw_tensor(random, x.dtype(), std::move(dims), 0.5, 2));
}

Graph spelled(const std::function<Var(Var)>& spelling, Shape shape = {2, 3, 8}) {
  Graph graph;
  graph.add_output(spelling(input(graph, DType::f32, std::move(shape), "x")).id());
  return graph;
}

TEST(FuseLayerNorm, FindsItInItsSpellings) {
  for (const Quotient& quotient : kQuotients) {
    for (const bool as_power : {true, false}) {
      const Graph before = spelled([&](Var x) {
        const Var d = centered(x, {-1});
        const Var y = mul(quotient(d, mean_square(d, {-1}, as_power, 0.01)), parameter(x, {8}));
        return add(parameter(x, {8}), y);
      });
      const Graph after = after_pass(fuse_layer_norm, before);
      EXPECT_EQ(ops_of(after), "layer_normalization");
      EXPECT_FLOAT_EQ(only_node(after).attributes().real("epsilon"), 0.01F);
      EXPECT_EQ(only_node(after).inputs().size(), 3u);
    }
  }
}

// As TensorFlow writes it.
Var folded_normal(Var x, const std::vector<int64_t>& axes, Var scale, Var bias, bool reversed) {
  const Var mean = reduce_mean(x, axes);
  const Var d = reversed ? sub(mean, x) : sub(x, mean);
  const Var s = mul(reciprocal(sqrt(mean_square(d, axes, false, 1e-3))), scale);
  return reversed ? add(sub(bias, mul(s, mean)), mul(s, x)) : add(mul(x, s), sub(bias, mul(mean, s)));
}

TEST(FuseLayerNorm, FindsScaleAndBiasMultipliedOut) {
  for (const bool reversed : {true, false}) {
    const Graph before =
        spelled([&](Var x) { return folded_normal(x, {-1}, parameter(x, {8}), parameter(x, {8}), reversed); });
    EXPECT_EQ(ops_of(after_pass(fuse_layer_norm, before)), "layer_normalization");
    // Over channels, and with a scale for each of them.
    expect_untouched(fuse_layer_norm, spelled([&](Var x) {
                       return folded_normal(x, {1}, parameter(x, {3, 1}), parameter(x, {3, 1}), reversed);
                     }));
    expect_untouched(fuse_layer_norm, spelled([&](Var x) {
                       return folded_normal(x, {-1}, parameter(x, {3, 1}), parameter(x, {8}), reversed);
                     }));
  }
}

TEST(FuseLayerNorm, WorksWithoutScaleAndBias) {
  const auto normal = [](Var x) {
    const Var d = centered(x, {2});
    return kQuotients[0](d, mean_square(d, {-1}, true, 1e-5));
  };
  const Graph plain = after_pass(fuse_layer_norm, spelled(normal));
  EXPECT_EQ(ops_of(plain), "layer_normalization");
  const Graph scaled = after_pass(fuse_layer_norm, spelled([&](Var x) {
                                    return mul(normal(x), parameter(x, {1, 8}));
                                  }));
  EXPECT_EQ(ops_of(scaled), "layer_normalization");
}

TEST(FuseLayerNorm, WorksOverSeveralTrailingAxes) {
  const Graph after = after_pass(fuse_layer_norm, spelled([](Var x) {
                                   const Var d = centered(x, {1, 2});
                                   const Var y = kQuotients[0](d, mean_square(d, {-1, -2}, true, 1e-5));
                                   return add(mul(y, parameter(x, {3, 8})), parameter(x, {3, 8}));
                                 }));
  EXPECT_EQ(ops_of(after), "layer_normalization");
  EXPECT_EQ(only_node(after).attributes().integer("axis"), -2);
}

TEST(FuseLayerNorm, WorksOnSymbolicBatches) {
  Graph graph = spelled(
      [](Var x) {
        const Var d = centered(x, {-1});
        return mul(kQuotients[0](d, mean_square(d, {-1}, true, 1e-5)), parameter(x, {8}));
      },
      {Dim::symbol("batch"), 3, 8});
  PassContext context = willing_device();
  EXPECT_TRUE(fuse_layer_norm(graph, context));
  verify(graph);
  EXPECT_EQ(ops_of(graph), "layer_normalization");
}

TEST(FuseLayerNorm, LeavesScalesOfOtherDimsOutside) {
  const Graph after = after_pass(fuse_layer_norm, spelled([](Var x) {
                                   const Var d = centered(x, {-1});
                                   const Var y = kQuotients[0](d, mean_square(d, {-1}, true, 1e-5));
                                   return add(mul(y, parameter(x, {3, 8})), parameter(x, {8}));
                                 }));
  EXPECT_EQ(ops_of(after), "layer_normalization mul add");
}

TEST(FuseLayerNorm, LeavesNearMisses) {
  const auto near_miss = [](const std::vector<int64_t>& center, const std::vector<int64_t>& square, double epsilon) {
    return spelled([&](Var x) {
      const Var d = centered(x, center);
      return kQuotients[0](d, mean_square(d, square, true, epsilon));
    });
  };
  expect_untouched(fuse_layer_norm, near_miss({1}, {1}, 1e-5));
  expect_untouched(fuse_layer_norm, near_miss({1, 2}, {2}, 1e-5));
  expect_untouched(fuse_layer_norm, near_miss({0, 2}, {0, 2}, 1e-5));
  // Cubes instead of squares.
  expect_untouched(fuse_layer_norm, spelled([](Var x) {
                     const Var d = centered(x, {-1});
                     const Var cubes = reduce_mean(pow(abs(d), number(x, 3)), {-1});
                     return div(d, sqrt(add(cubes, number(x, 1e-5))));
                   }));
}

TEST(FuseLayerNorm, LeavesValuesThatAreReadElsewhere) {
  for (const int which : {0, 1, 2}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {2, 3, 8}, "x");
    const Var d = centered(x, {-1});
    const Var variance = mean_square(d, {-1}, true, 1e-5);
    graph.add_output(div(d, sqrt(variance)).id());
    graph.add_output(which == 0 ? d.id() : which == 1 ? variance.id() : relu(d).id());
    expect_untouched(fuse_layer_norm, graph);
  }
}

TEST(FuseLayerNorm, AsksTheDeviceForAKernel) {
  Graph graph = spelled([](Var x) {
    const Var d = centered(x, {-1});
    return div(d, sqrt(mean_square(d, {-1}, true, 1e-5)));
  });
  PassContext context;
  EXPECT_FALSE(fuse_layer_norm(graph, context));
  verify(graph);
}

TEST(FuseLayerNorm, LeavesDoublesAlone) {
  Graph graph;
  const Var x = input(graph, DType::f64, {2, 8}, "x");
  const Var d = centered(x, {-1});
  graph.add_output(div(d, sqrt(mean_square(d, {-1}, false, 1e-5))).id());
  expect_untouched(fuse_layer_norm, graph);
}

TEST(FuseRmsNorm, FindsItInItsSpellings) {
  for (const Quotient& quotient : kQuotients) {
    for (const bool as_power : {true, false}) {
      const Graph before = spelled([&](Var x) {
        const Var y = relu(x);
        return mul(parameter(x, {8}), quotient(y, mean_square(y, {-1}, as_power, 1e-6)));
      });
      EXPECT_EQ(ops_of(after_pass(fuse_rms_norm, before)), "relu rms_normalization");
      expect_untouched(fuse_layer_norm, before);
    }
  }
}

TEST(FuseRmsNorm, TakesAMissingEpsilonAsZero) {
  const Graph after =
      after_pass(fuse_rms_norm, spelled([](Var x) { return div(x, sqrt(reduce_mean(mul(x, x), {-1}))); }));
  EXPECT_EQ(ops_of(after), "rms_normalization");
  EXPECT_EQ(only_node(after).attributes().real("epsilon"), 0);
}

TEST(FuseRmsNorm, DropsTheCastsOfHalfPrecision) {
  Graph graph;
  const Var x = input(graph, DType::f16, {2, 8}, "x");
  const Var wide = cast(x, DType::f32);
  const Var normal = cast(mul(wide, reciprocal(sqrt(mean_square(wide, {-1}, true, 1e-5)))), DType::f16);
  graph.add_output(mul(parameter(x, {8}), normal).id());
  const Graph after = after_pass(fuse_rms_norm, graph, true, {2e-3, 1e-3});
  EXPECT_EQ(ops_of(after), "rms_normalization");
  EXPECT_EQ(only_node(after).input(0), after.inputs()[0]);
}

TEST(FuseRmsNorm, LeavesNearMisses) {
  expect_untouched(fuse_rms_norm, spelled([](Var x) { return div(relu(x), sqrt(mean_square(x, {-1}, true, 1e-5))); }));
  // The sum, not the mean.
  expect_untouched(fuse_rms_norm,
                   spelled([](Var x) { return div(x, sqrt(add(reduce_sum(mul(x, x), {-1}), number(x, 1e-5)))); }));
}

}  // namespace
}  // namespace autograph
