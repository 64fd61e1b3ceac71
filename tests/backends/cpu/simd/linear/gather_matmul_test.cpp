// Products with matrices that are chosen row by row against their definition, on every instruction set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

struct Sizes {
  int64_t tokens, choices, rows, matrices, n, k;

  std::string text() const {
    return fmt::format("{} x {} ({} rows) of {} x {} x {}", tokens, choices, rows, matrices, n, k);
  }
};

Sizes draw_sizes(Random& random) {
  const int64_t choices = draw(random, 1, 4);
  return {draw(random, 1, 30), choices, draw_bool(random) ? choices : 1, draw(random, 1, 9), draw(random, 1, 100),
          draw(random, 1, 200)};
}

std::vector<Datum> draw_choices(Random& random, const Sizes& sizes) {
  return {draw_tensor(random, DType::f32, {sizes.tokens, sizes.rows, sizes.k}, -1, 1),
          draw_tensor(random, DType::i64, {sizes.tokens, sizes.choices}, static_cast<double>(-sizes.matrices),
                      static_cast<double>(sizes.matrices - 1))};
}

void expect_definition(const OpDef& op, const OpSample& sample, int threads) {
  const bool is_packed = &op == &gather_block_matmul_def();
  expect_reference(simd::gather_matmul_kernels()[is_packed ? 1 : 0],
                   KernelCase(op, sample, {.threads = threads, .constant_weights = true}), {1e-4, 1e-4});
}

// ---- Floats ----------------------------------------------------------------------------------------------------

OpSample float_sample(Random& random, const Sizes& sizes) {
  OpSample sample{.inputs = draw_choices(random, sizes)};
  sample.inputs.push_back(draw_tensor(random, DType::f32, {sizes.matrices, sizes.n, sizes.k}, -1, 1));
  return sample;
}

TEST(GatherMatmul, RandomShapes) {
  on_every_isa([] {
    Random random(1);
    for (int i = 0; i < 40; ++i) {
      const Sizes sizes = draw_sizes(random);
      SCOPED_TRACE(sizes.text());
      expect_definition(gather_matmul_def(), float_sample(random, sizes), 1);
    }
  });
}

// More rows of a matrix than meet a panel at once, and matrices that nobody chose.
TEST(GatherMatmul, ManyRowsByThreads) {
  Random random(2);
  OpSample sample = float_sample(random, {600, 1, 1, 5, 70, 90});
  sample.inputs[1] = Tensor::of<int64_t>({600, 1}, std::vector<int64_t>(600, -2));
  expect_definition(gather_matmul_def(), sample, 2);
  expect_definition(gather_matmul_def(), float_sample(random, {1, 4, 1, 8, 700, 600}), 2);
}

TEST(GatherMatmul, RefusesIndicesOutOfRange) {
  Graph graph("g");
  const Var x = input(graph, DType::f32, Shape::of({1, 1, 2}), "x");
  const Var index = input(graph, DType::i64, Shape::of({1, 1}), "index");
  graph.add_output(gather_matmul(x, index, constant(graph, Tensor::of<float>({2, 1, 2}, {1, 2, 3, 4}))).id(), "y");
  auto program = compile(std::move(graph));
  const auto y = [&](int64_t i) {
    const std::vector<Datum> inputs{Tensor::of<float>({1, 1, 2}, {1, 1}), Tensor::of<int64_t>({1, 1}, {i})};
    return program.run(inputs)[0].tensor().to_f64()[0];
  };
  EXPECT_EQ(y(1), 7);
  EXPECT_EQ(y(-2), 3);
  for (const int64_t i : {2, -3}) {
    try {
      y(i);
      FAIL() << i;
    } catch (const ValueError& error) {
      EXPECT_NE(std::string(error.what()).find("expected -2..1"), std::string::npos) << error.what();
    }
  }
}

// ---- Numbers of 4 or 8 bits ------------------------------------------------------------------------------------

OpSample block_sample(Random& random, const Sizes& sizes, int64_t bits, int64_t block, bool rounds) {
  const int64_t blocks = (sizes.k + block - 1) / block;
  OpSample sample{.inputs = draw_choices(random, sizes)};
  if (rounds) {
    // What rounding leaves as it is.
    const Tensor given = draw_tensor(random, DType::i8, sample.inputs[0].tensor().dims(), -1, 1);
    const std::vector<double> x = given.to_f64();
    sample.inputs[0] = Tensor::of<float>(given.dims(), std::vector<float>(x.begin(), x.end()));
  }
  sample.inputs.push_back(draw_tensor(random, DType::u8, {sizes.matrices, sizes.n, blocks, block * bits / 8}, 0, 255));
  sample.inputs.push_back(draw_tensor(random, DType::f32, {sizes.matrices, sizes.n, blocks}, 0.001, 0.01));
  sample.inputs.resize(5);
  if (draw_bool(random)) {
    sample.inputs[4] = draw_tensor(random, DType::f32, {sizes.matrices, sizes.n, blocks}, 0, bits == 4 ? 15 : 255);
  }
  sample.attributes = {{"bits", bits}, {"k", sizes.k}, {"x_bits", int64_t{rounds ? 16 : 32}}};
  return sample;
}

TEST(GatherBlockMatmul, RandomShapes) {
  with_and_without_vnni([] {
    Random random(3);
    for (int i = 0; i < 60; ++i) {
      const Sizes sizes = draw_sizes(random);
      const auto bits = draw_one_of<int64_t>(random, {4, 8}), block = draw_one_of<int64_t>(random, {8, 16, 32, 128});
      SCOPED_TRACE(fmt::format("{}, {} bits, blocks of {}", sizes.text(), bits, block));
      expect_definition(gather_block_matmul_def(), block_sample(random, sizes, bits, block, draw_bool(random)), 1);
    }
  });
}

TEST(GatherBlockMatmul, ByThreads) {
  Random random(4);
  for (const int64_t tokens : {1, 70}) {
    for (const bool rounds : {false, true}) {
      expect_definition(gather_block_matmul_def(), block_sample(random, {tokens, 3, 1, 6, 333, 500}, 4, 32, rounds), 2);
    }
  }
}

TEST(GatherBlockMatmul, SaysWhatItRefuses) {
  Random random(5);
  const OpSample sample = block_sample(random, {1, 1, 1, 2, 3, 8}, 4, 8, false);
  const OpSample odd = block_sample(random, {1, 1, 1, 2, 3, 8}, 4, 4, false);
  const auto refusal = [](const OpSample& of, bool constant_weights) {
    return KernelRun(simd::gather_matmul_kernels()[1],
                     KernelCase(gather_block_matmul_def(), of, {.constant_weights = constant_weights}))
        .refusal();
  };
  EXPECT_EQ(refusal(sample, false), "weights that are computed");
  EXPECT_EQ(refusal(odd, true), "blocks that do not fill words");
}

}  // namespace
}  // namespace autograph
