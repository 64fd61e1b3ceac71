// Products with a known matrix by panels against the reference: any extents, gemm's forms, epilogues.
#include <gtest/gtest.h>

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

KernelDef kernel_for(std::string_view op) { return cpu_kernel("cpu.weight_product_simd", op); }

OpSample product_of(Random& random, Dims a, Dims b) {
  return {{draw_tensor(random, DType::f32, std::move(a), -1, 1), draw_tensor(random, DType::f32, std::move(b), -1, 1)}};
}

TEST(WeightProduct, AnyExtents) {
  Random random(71);
  for (int i = 0; i < 120; ++i) {
    SCOPED_TRACE(i);
    const int64_t depth = draw_one_of<int64_t>(random, {1, 3, 16, 65, 257, 1600});
    Dims a{draw(random, 1, 40), depth};
    if (draw_bool(random)) a.insert(a.begin(), draw(random, 1, 3));
    const OpSample sample = product_of(random, a, {depth, draw(random, 1, 200)});
    on_every_isa([&] { expect_every_variant(kernel_for("matmul"), matmul_def(), sample, 1 + i % 3); });
  }
}

TEST(WeightProduct, GemmWithBiasAndTransposedWeights) {
  Random random(72);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const int64_t rows = draw(random, 1, 20), depth = draw(random, 1, 90), columns = draw(random, 1, 50);
    const bool is_transposed = draw_bool(random);
    OpSample sample = product_of(random, {rows, depth}, is_transposed ? Dims{columns, depth} : Dims{depth, columns});
    sample.attributes = {{"transB", int64_t{is_transposed}}};
    if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {columns}, -1, 1));
    on_every_isa([&] { expect_every_variant(kernel_for("gemm"), gemm_def(), sample, 1 + i % 2); });
  }
}

// More weights than are near: what comes next is fetched meanwhile, panel by panel up to 32 rows.
TEST(WeightProduct, ManyWeightsForFewAndManyRows) {
  Random random(73);
  for (const int64_t rows : {1, 2, 5, 6, 7, 8, 13, 32, 64}) {
    SCOPED_TRACE(rows);
    const OpSample sample = product_of(random, {rows, 520}, {520, 515});
    on_every_isa([&] { expect_every_variant(kernel_for("matmul"), matmul_def(), sample, 2); });
  }
}

// f(behind(x w + bias), other), where `other` is as large as the product.
void expect_epilogue(Random& random, Var (*behind)(Var), Var (*with)(Var, Var)) {
  for (const int64_t rows : {1, 3, 11}) {
    SCOPED_TRACE(rows);
    auto body = std::make_shared<Graph>("body");
    OpSample sample = product_of(random, {rows, 50}, {50, 37});
    sample.inputs.emplace_back(draw_tensor(random, DType::f32, {37}, -1, 1));
    sample.inputs.emplace_back(draw_tensor(random, DType::f32, {rows, 37}, -1, 1));
    std::vector<Var> operands;
    for (const Datum& x : sample.inputs) operands.push_back(input(*body, DType::f32, Shape::of(x.tensor().dims()), ""));
    body->add_output(with(behind(add(matmul(operands[0], operands[1]), operands[2])), operands[3]).id());
    sample.attributes = {{"body", GraphRef(body)}};
    sample.num_outputs = 1;
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 2); });
  }
}

TEST(WeightProduct, BiasActivationAndResidual) {
  Random random(74);
  expect_epilogue(
      random, [](Var x) { return gelu(x); }, [](Var x, Var residual) { return add(x, residual); });
}

// The feed-forward layers of language models.
TEST(WeightProduct, AGateMultipliesTheProduct) {
  Random random(76);
  expect_epilogue(
      random, [](Var x) { return swish(x); }, [](Var x, Var gate) { return mul(x, gate); });
  expect_epilogue(
      random, [](Var x) { return x; }, [](Var x, Var gate) { return mul(gate, x); });
}

TEST(WeightProduct, SaysWhatItRefuses) {
  Random random(75);
  const OpSample sample = product_of(random, {4, 8}, {8, 5});
  EXPECT_EQ(KernelRun(kernel_for("matmul"), KernelCase(matmul_def(), sample)).refusal(), "an unknown matrix");
  OpSample scaled = sample;
  scaled.attributes = {{"alpha", 2.0F}};
  EXPECT_EQ(KernelRun(kernel_for("gemm"), KernelCase(gemm_def(), scaled, {1, true})).refusal(),
            "a scaled or transposed left side");
}

}  // namespace
}  // namespace autograph
