#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

using Spelling = std::function<Var(Var)>;

Var number(Var x, double value) { return scalar_like(x, value); }

Graph spelled(const Spelling& spelling, DType dtype = DType::f32) {
  Graph graph;
  const Var x = input(graph, dtype, {3, 5, 7}, "x");
  graph.add_output(spelling(x).id());
  return graph;
}

Graph fused(const Spelling& spelling) { return after_pass(fuse_activations, spelled(spelling)); }

void expect_left_alone(const Spelling& spelling) { expect_untouched(fuse_activations, spelled(spelling)); }

Var one_plus_erf(Var x) { return add(erf(div(x, number(x, std::sqrt(2.0)))), number(x, 1)); }

const std::vector<Spelling> kExactGelus = {
    [](Var x) { return mul(mul(x, number(x, 0.5)), one_plus_erf(x)); },
    [](Var x) { return mul(mul(x, one_plus_erf(x)), number(x, 0.5)); },
    [](Var x) { return mul(x, mul(number(x, 0.5), one_plus_erf(x))); },
    [](Var x) { return div(mul(one_plus_erf(x), x), number(x, 2)); },
    [](Var x) { return mul(div(x, number(x, 2)), one_plus_erf(x)); },
    [](Var x) {
      const Var half_erf = mul(number(x, 0.5), erf(mul(number(x, std::sqrt(0.5)), x)));
      return mul(add(number(x, 0.5), half_erf), x);
    },
    [](Var x) { return mul(x, sub(number(x, 0.5), mul(erf(mul(x, number(x, 0.70710678))), number(x, -0.5)))); },
};

TEST(FuseActivations, FindsTheExactGeluInItsSpellings) {
  for (const Spelling& spelling : kExactGelus) {
    const Graph graph = fused(spelling);
    EXPECT_EQ(ops_of(graph), "gelu");
    EXPECT_EQ(only_node(graph).attributes().text("approximate"), "none");
  }
}

Var cube(Var x) { return mul(mul(x, x), x); }

const std::vector<Spelling> kTanhGelus = {
    [](Var x) {
      const Var inner = add(x, mul(number(x, 0.044715), pow(x, number(x, 3))));
      return mul(mul(number(x, 0.5), x), add(number(x, 1), tanh(mul(number(x, 0.7978845608), inner))));
    },
    [](Var x) {
      const Var inner = add(mul(cube(x), number(x, 0.044715)), x);
      return mul(x, mul(add(tanh(mul(inner, number(x, 0.79788))), number(x, 1)), number(x, 0.5)));
    },
    [](Var x) {
      const Var slope = add(mul(mul(number(x, 0.044715), x), x), number(x, 1));
      return mul(mul(x, number(x, 0.5)), add(number(x, 1), tanh(mul(mul(x, number(x, 0.7978845608)), slope))));
    },
    [](Var x) {
      const Var inner = add(x, mul(number(x, 0.044715), pow(x, number(x, 3))));
      return mul(x, sigmoid(mul(inner, number(x, 1.5957691216))));
    },
};

TEST(FuseActivations, FindsTheTanhGeluInItsSpellings) {
  for (const Spelling& spelling : kTanhGelus) {
    const Graph graph = fused(spelling);
    EXPECT_EQ(ops_of(graph), "gelu");
    EXPECT_EQ(only_node(graph).attributes().text("approximate"), "tanh");
  }
}

TEST(FuseActivations, FindsHardSwishInItsSpellings) {
  const auto clipped = [](Var x, double offset, double high) {
    return clip(add(x, number(x, offset)), number(x, 0), number(x, high));
  };
  const std::vector<Spelling> spellings = {
      [&](Var x) { return div(mul(x, clipped(x, 3, 6)), number(x, 6)); },
      [&](Var x) { return mul(x, div(clipped(x, 3, 6), number(x, 6))); },
      [&](Var x) { return mul(mul(clipped(x, 3, 6), number(x, 1.0 / 6)), x); },
      [&](Var x) { return mul(x, clip(add(div(x, number(x, 6)), number(x, 0.5)), number(x, 0), number(x, 1))); },
      [](Var x) { return mul(hard_sigmoid(x, 1.0F / 6, 0.5F), x); },
  };
  for (const Spelling& spelling : spellings) EXPECT_EQ(ops_of(fused(spelling)), "hard_swish");
}

TEST(FuseActivations, FindsHardSigmoid) {
  const std::vector<Spelling> spellings = {
      [](Var x) { return div(clip(add(x, number(x, 3)), number(x, 0), number(x, 6)), number(x, 6)); },
      [](Var x) { return clip(add(mul(x, number(x, 0.2)), number(x, 0.5)), number(x, 0), number(x, 1)); },
  };
  for (const Spelling& spelling : spellings) EXPECT_EQ(ops_of(fused(spelling)), "hard_sigmoid");
  EXPECT_FLOAT_EQ(only_node(fused(spellings[0])).attributes().real("alpha"), 1.0F / 6);
  EXPECT_FLOAT_EQ(only_node(fused(spellings[1])).attributes().real("beta"), 0.5F);
}

TEST(FuseActivations, FindsSwishWithItsFactor) {
  const std::vector<std::pair<Spelling, float>> spellings = {
      {[](Var x) { return mul(x, sigmoid(x)); }, 1.0F},
      {[](Var x) { return mul(sigmoid(x), x); }, 1.0F},
      {[](Var x) { return mul(x, sigmoid(mul(number(x, 1.702), x))); }, 1.702F},
      {[](Var x) { return div(x, add(number(x, 1), exp(neg(x)))); }, 1.0F},
      {[](Var x) { return div(x, add(exp(mul(x, number(x, -2))), number(x, 1))); }, 2.0F},
  };
  for (const auto& [spelling, alpha] : spellings) {
    const Graph graph = fused(spelling);
    EXPECT_EQ(ops_of(graph), "swish");
    EXPECT_FLOAT_EQ(only_node(graph).attributes().real("alpha"), alpha);
  }
}

TEST(FuseActivations, FindsMishAndSoftplus) {
  const auto spelled_softplus = [](Var x) { return log(add(exp(x), number(x, 1))); };
  EXPECT_EQ(ops_of(fused([&](Var x) { return mul(x, tanh(spelled_softplus(x))); })), "mish");
  EXPECT_EQ(ops_of(fused([](Var x) { return mul(tanh(softplus(x)), x); })), "mish");
  EXPECT_EQ(ops_of(fused(spelled_softplus)), "softplus");
}

TEST(FuseActivations, TakesTheWholeFormulaInAChain) {
  const Graph graph = fused([](Var x) {
    const Var y = mul(x, sigmoid(x));
    return mul(y, sigmoid(y));
  });
  EXPECT_EQ(ops_of(graph), "swish swish");
}

TEST(FuseActivations, KeepsTheOriginsOfAllNodes) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4}, "x");
  {
    const ProvenanceScope scope("act");
    graph.add_output(mul(x, sigmoid(x)).id(), "y");
  }
  PassContext context;
  ASSERT_TRUE(fuse_activations(graph, context));
  EXPECT_EQ(only_node(graph).provenance().to_string(), "act/sigmoid + act/mul");
  EXPECT_EQ(graph.output_name(0), "y");
}

TEST(FuseActivations, LeavesOtherConstantsAlone) {
  expect_left_alone([](Var x) { return mul(mul(x, number(x, 0.6)), one_plus_erf(x)); });
  expect_left_alone([](Var x) { return mul(mul(x, number(x, 0.5)), add(erf(x), number(x, 1))); });
  expect_left_alone([](Var x) {
    const Var inner = add(x, mul(number(x, 0.05), pow(x, number(x, 3))));
    return mul(mul(number(x, 0.5), x), add(number(x, 1), tanh(mul(number(x, 0.7978845608), inner))));
  });
  expect_left_alone([](Var x) { return mul(x, clip(x, number(x, 0), number(x, 6))); });
  expect_left_alone([](Var x) { return mul(hard_sigmoid(x, 0.2F, 0.5F), x); });
  expect_left_alone([](Var x) { return clip(x, number(x, 0), number(x, 6)); });
  expect_left_alone([](Var x) { return log(add(exp(x), number(x, 2))); });
  expect_left_alone([](Var x) { return mul(x, sigmoid(add(x, number(x, 1)))); });
  // An attribute has the range of f32, steps one after the other more: 1e-60 x.
  expect_left_alone(
      [](Var x) { return clip(mul(mul(x, number(x, 1e-30)), number(x, 1e-30)), number(x, 0), number(x, 1)); });
}

TEST(FuseActivations, LeavesAGateOnAnotherValueAlone) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 3}, "x");
  const Var y = input(graph, DType::f32, {2, 3}, "y");
  graph.add_output(mul(y, sigmoid(x)).id());
  graph.add_output(mul(mul(y, scalar(graph, 0.5)), one_plus_erf(x)).id());
  expect_untouched(fuse_activations, graph);
}

TEST(FuseActivations, LeavesAValueThatIsReadElsewhere) {
  for (const bool as_output : {true, false}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {2, 3}, "x");
    const Var gate = one_plus_erf(x);
    graph.add_output(mul(mul(x, scalar(graph, 0.5)), gate).id());
    graph.add_output(as_output ? gate.id() : relu(gate).id());
    expect_untouched(fuse_activations, graph);
  }
}

TEST(FuseActivations, LeavesConstantsThatAddDims) {
  Graph graph;
  const Var x = input(graph, DType::f32, {3}, "x");
  const Var half = constant(graph, Tensor::of<float>({1, 1}, {0.5F}));
  graph.add_output(mul(mul(x, half), one_plus_erf(x)).id());
  expect_untouched(fuse_activations, graph);
}

TEST(FuseActivations, AllowsForTheRoundingOfHalfPrecisionConstants) {
  const FloatTolerance half_precision{1e-2, 5e-3};
  const Graph graph = spelled(kExactGelus[0], DType::f16);
  EXPECT_EQ(ops_of(after_pass(fuse_activations, graph, true, half_precision)), "gelu");
  // The same coarse constant in f32 is another function.
  const auto coarse = [](Var x) {
    return mul(mul(x, number(x, 0.5)), add(erf(mul(x, number(x, 0.7065))), number(x, 1)));
  };
  expect_left_alone(coarse);
}

}  // namespace
}  // namespace autograph
