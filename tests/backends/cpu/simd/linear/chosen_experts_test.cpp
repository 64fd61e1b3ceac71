// Mixtures of experts against the reference, on every instruction set.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/devices.h"
#include "autograph/graph.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel() { return cpu_kernel("cpu.chosen_experts_simd", "fused"); }

struct Extents {
  Dims lead;
  int64_t experts, width, inner, columns;
};

// Of the factors one in `used_every` is not 0; none where that is 0.
OpSample mixture(Random& random, const Extents& e, int64_t used_every, float alpha = 1) {
  OpSample sample;
  const auto body = std::make_shared<Graph>("body");
  const auto add_tensor = [&](const Tensor& tensor) {
    sample.inputs.emplace_back(tensor);
    return input(*body, DType::f32, Shape::of(tensor.dims()), "i" + std::to_string(sample.inputs.size()));
  };
  const auto add_input = [&](const Dims& dims) { return add_tensor(draw_tensor(random, DType::f32, dims, -1, 1)); };
  Dims x_dims = e.lead, factor_dims = e.lead;
  x_dims.push_back(e.width);
  factor_dims.push_back(1);
  const Var x = add_input(x_dims);
  std::vector<Var> terms;
  for (int64_t i = 0; i < e.experts; ++i) {
    const Var gate = matmul(x, add_input({e.width, e.inner})), up = matmul(x, add_input({e.width, e.inner}));
    const Var hidden = i % 2 == 0 ? mul(swish(gate, alpha), up) : mul(up, swish(gate, alpha));
    const Var result = matmul(hidden, add_input({e.inner, e.columns}));
    Tensor factors = draw_tensor(random, DType::f32, factor_dims, -1, 1);
    for (int64_t t = 0; t < factors.num_elements(); ++t) {
      if (used_every == 0 || draw(random, 1, used_every) > 1) factors.mutable_data<float>()[t] = 0;
    }
    terms.push_back(mul(result, add_tensor(factors)));
  }
  body->add_output(sum(terms).id());
  sample.attributes = {{"body", GraphRef(body)}};
  sample.num_outputs = 1;
  return sample;
}

TEST(ChosenExperts, RandomCalls) {
  Random random(51);
  for (int i = 0; i < 24; ++i) {
    const Extents extents{draw_bool(random) ? Dims{draw(random, 1, 3), draw(random, 1, 12)} : Dims{draw(random, 1, 20)},
                          draw(random, 2, 5), draw(random, 1, 40), draw(random, 1, 70), draw(random, 1, 40)};
    const OpSample sample = mixture(random, extents, draw(random, 0, 4));
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel(), fused_def(), sample, 1 + i % 2, {1e-4, 1e-4}); });
  }
}

// More tokens than are computed at a time, and enough work for threads.
TEST(ChosenExperts, ManyTokens) {
  Random random(52);
  const OpSample sample = mixture(random, {{2, 300}, 4, 48, 64, 48}, 3);
  for (const int threads : {1, 2, 3}) expect_every_variant(kernel(), fused_def(), sample, threads, {1e-4, 1e-4});
}

TEST(ChosenExperts, PackAnewWhatWasWritten) {
  Random random(54);
  const OpSample sample = mixture(random, {{5}, 3, 20, 40, 24}, 2);
  expect_every_variant_renews(kernel(), fused_def(), sample, 2);
}

TEST(ChosenExperts, RefusesWhatItCannotCompute) {
  Random random(53);
  const Extents extents{{3}, 2, 4, 8, 4};
  EXPECT_NE(kernel().why_not(KernelCase(fused_def(), mixture(random, extents, 1), {1, false}).call()), "");
  EXPECT_NE(kernel().why_not(KernelCase(fused_def(), mixture(random, extents, 1, 1.5F), {1, true}).call()), "");
  EXPECT_EQ(kernel().why_not(KernelCase(fused_def(), mixture(random, extents, 1), {1, true}).call()), "");
}

// A simulated GPU computes them all: that is what its figures are for.
TEST(ChosenExperts, AreNoneOfASimulatedDevice) {
  Random random(54);
  const KernelCase of(fused_def(), mixture(random, {{3}, 2, 4, 8, 4}, 1), {1, true});
  EXPECT_TRUE(get_device("cpu").catalog().accepts(of.call()));
  EXPECT_FALSE(get_device("sim:v100").catalog().accepts(of.call()));
}

}  // namespace
}  // namespace autograph
