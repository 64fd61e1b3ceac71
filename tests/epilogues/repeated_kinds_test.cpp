// Chains that have something twice. oneDNN 2.6 computes the second of two post-ops of one kind with the numbers of the
// first; a residual that two ops add must be whole when the second does.
#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "support/graphs/epilogue_case.h"
#include "support/kernels/random_cost.h"

namespace autograph {
namespace {

struct Chain {
  std::string_view name;
  Var (*append)(Var, OperandMaker&);
};

Var mul_add(Var x, OperandMaker& o, float factor, float term) { return add(mul(x, o.scalar(factor)), o.scalar(term)); }

constexpr Chain kChains[] = {
    {"relu, mul, add", [](Var x, OperandMaker& o) { return mul_add(relu(x), o, 1.384F, 0.586F); }},
    {"mul, add, hard_swish, mul, add",
     [](Var x, OperandMaker& o) { return mul_add(hard_swish(mul_add(x, o, 0.7F, -0.3F)), o, 1.384F, 0.586F); }},
    {"tanh, mul, add, relu, mul, add",
     [](Var x, OperandMaker& o) { return mul_add(relu(mul_add(tanh(x), o, 0.7F, -0.3F)), o, 1.384F, 0.586F); }},
    {"relu, leaky_relu", [](Var x, OperandMaker&) { return leaky_relu(relu(x), 0.1F); }},
    {"leaky_relu, tanh, leaky_relu", [](Var x, OperandMaker&) { return leaky_relu(tanh(leaky_relu(x, 0.3F)), 0.1F); }},
    {"leaky_relu, leaky_relu", [](Var x, OperandMaker&) { return leaky_relu(leaky_relu(x, 0.3F), 0.2F); }},
    {"negative slopes", [](Var x, OperandMaker&) { return leaky_relu(leaky_relu(x, -0.3F), 0.2F); }},
    {"clip, clip",
     [](Var x, OperandMaker& o) { return clip(clip(x, o.bound(-1), o.bound(0.5F)), o.bound(-0.25F), o.bound(6)); }},
    {"clips that leave one number",
     [](Var x, OperandMaker& o) { return clip(clip(x, o.bound(-1), o.bound(0.5F)), o.bound(1), o.bound(6)); }},
    {"clip, exp, clip",
     [](Var x, OperandMaker& o) {
       return clip(exp(clip(x, o.bound(-1), o.bound(0.5F))), o.bound(0.4F), o.bound(1.2F));
     }},
    {"hard_sigmoid, mul", [](Var x, OperandMaker& o) { return mul(hard_sigmoid(x), o.scalar(6)); }},
    {"hard_sigmoid, clip", [](Var x, OperandMaker& o) { return clip(hard_sigmoid(x), o.bound(0.4F), o.bound(0.6F)); }},
    {"tanh, mul, hard_sigmoid", [](Var x, OperandMaker& o) { return hard_sigmoid(mul(tanh(x), o.scalar(3))); }},
    {"elu, elu", [](Var x, OperandMaker&) { return elu(elu(x, 1), 0.5F); }},
    {"swish, swish, swish", [](Var x, OperandMaker&) { return swish(swish(swish(x, 1), 1.7F), 0.5F); }},
    {"residual, relu, mul, residual, relu, mul",
     [](Var x, OperandMaker& o) {
       const Var first = mul(relu(add(x, o.tensor(o.dims(), -1, 1))), o.scalar(1.5F));
       return mul(relu(add(first, o.tensor(o.dims(), -1, 1))), o.scalar(-0.4F));
     }},
    {"one residual twice",
     [](Var x, OperandMaker& o) {
       const Var residual = o.tensor(o.dims(), -1, 1);
       return add(residual, add(x, residual));
     }},
    {"one residual twice around an activation",
     [](Var x, OperandMaker& o) {
       const Var residual = o.tensor(o.dims(), -1, 1);
       return add(relu(add(x, residual)), residual);
     }},
    {"a rounding spelled out",
     [](Var x, OperandMaker& o) { return add(add(relu(x), o.scalar(8388608)), o.scalar(-8388608)); }},
    {"factors that vanish on the way",
     [](Var x, OperandMaker& o) { return mul(mul(relu(x), o.scalar(1e-30F)), o.scalar(1e-30F)); }},
    {"factors that overflow together",
     [](Var x, OperandMaker& o) { return mul(mul(tanh(mul(x, o.scalar(0))), o.scalar(1e30F)), o.scalar(1e30F)); }},
};

TEST(RepeatedKinds, EveryPlanGivesTheReferencesNumbers) {
  uint64_t seed = 0;
  for (const Chain& chain : kChains) {
    for (const ProductKind& product : product_kinds()) {
      for (const int64_t channels : {16, 24}) {
        const EpilogueCase test(product, channels, ++seed, chain.append);
        std::string plan;
        RandomCost cost(seed);
        const std::vector<Datum> actual = run_with_costs(test.graph, test.inputs, cost, plan);
        EXPECT_EQ(difference(actual[0].tensor(), expected_elements(test, {.product = 4e-5F, .op = 4e-6F})), "")
            << chain.name << " behind " << product.name << " of " << channels << " channels\n"
            << plan;
      }
    }
  }
}

// oneDNN forms softplus so that sums of the size of its operand cancel: of -35 nothing right is left.
TEST(RepeatedKinds, SoftplusOfLargeNegativeNumbersKeepsItsDigits) {
  for (const ProductKind& product : product_kinds()) {
    const EpilogueCase test(product, 16, 1, [](Var x, OperandMaker& o) { return softplus(add(x, o.scalar(-35))); });
    const std::vector<Datum> inputs(test.inputs.begin(), test.inputs.end());
    const std::vector<Datum> expected = compile(test.graph, {.device = "reference"}).run(inputs);
    const std::vector<Datum> actual = compile(test.graph).run(inputs);
    for (int64_t i = 0; i < expected[0].tensor().num_elements(); ++i) {
      const float value = expected[0].tensor().data<float>()[i];
      ASSERT_NEAR(actual[0].tensor().data<float>()[i], value, 0.01F * value) << product.name << ", element " << i;
    }
  }
}

// Neighbours that are one formula together still run in the product's kernel.
TEST(RepeatedKinds, LinearNeighboursStayInOneCall) {
  const ProductKind& product = product_kinds()[0];
  const EpilogueCase test(product, 16, 1, [](Var x, OperandMaker& o) { return mul_add(relu(x), o, 1.384F, 0.586F); });
  const FusedCase fused(test);
  const auto candidates = get_device("cpu").catalog().candidates(fused.call(1)).candidates;
  EXPECT_TRUE(std::any_of(candidates.begin(), candidates.end(), [](const KernelCandidate& candidate) {
    return candidate.kernel->name == "cpu.conv_onednn";
  }));
}

}  // namespace
}  // namespace autograph
