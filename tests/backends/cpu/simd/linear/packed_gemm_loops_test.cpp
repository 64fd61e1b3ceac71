// Products of packed factors, with steps behind them, against sums in f64.
#include "backends/cpu/simd/linear/packed_gemm_loops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "autograph/random.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph::simd {
namespace {

std::vector<float> draw_floats(Random& random, int64_t count) {
  const Tensor values = draw_tensor(random, DType::f32, {count}, -1, 1);
  return {values.data<float>(), values.data<float>() + count};
}

// A product with strides of its own and every kind of step, beside its sum in f64.
class Product {
 public:
  Product(Random& random, int64_t rows, int64_t depth, int64_t columns, bool in_place)
      : rows_(rows), depth_(depth), columns_(columns), y_stride_(columns + draw(random, 0, 5)), in_place_(in_place) {
    a_transposed_ = draw_bool(random), b_transposed_ = draw_bool(random);
    a_stride_ = (a_transposed_ ? rows : depth) + draw(random, 0, 3);
    b_stride_ = (b_transposed_ ? depth : columns) + draw(random, 0, 3);
    a_ = draw_floats(random, (a_transposed_ ? depth : rows) * a_stride_);
    b_ = draw_floats(random, (b_transposed_ ? columns : depth) * b_stride_);
    row_ = draw_floats(random, columns);
    tensor_ = draw_floats(random, rows * y_stride_);
    alpha_ = draw_one_of(random, {1.0F, -0.5F});
    for (int64_t i = draw(random, 0, 4); i > 0; --i) {
      kinds_.push_back(draw_one_of(
          random, {GemmStep::Kind::add, GemmStep::Kind::add_row, GemmStep::Kind::multiply, GemmStep::Kind::relu}));
    }
  }

  std::vector<float> run() const {
    std::vector<GemmStep> steps;
    for (const GemmStep::Kind kind : kinds_) {
      steps.push_back({kind, kind == GemmStep::Kind::relu      ? nullptr
                             : kind == GemmStep::Kind::add_row ? row_.data()
                                                               : tensor_.data()});
    }
    const int64_t size = in_place_ ? in_place_gemm_scratch_size(depth_, columns_) : gemm_scratch_size();
    std::vector<float> y(tensor_.size(), kUntouched), scratch(static_cast<size_t>(size));
    run_gemm({.a = {a_.data(), a_stride_, a_transposed_},
              .b = {b_.data(), b_stride_, b_transposed_},
              .rows = rows_,
              .depth = depth_,
              .columns = columns_,
              .alpha = alpha_,
              .in_place = in_place_,
              .y = y.data(),
              .y_stride = y_stride_,
              .steps = steps},
             scratch.data());
    return y;
  }

  double expected(int64_t i, int64_t j) const {
    double y = 0;
    for (int64_t k = 0; k < depth_; ++k) {
      y += static_cast<double>(at(a_, a_transposed_ ? k * a_stride_ + i : i * a_stride_ + k)) *
           static_cast<double>(at(b_, b_transposed_ ? j * b_stride_ + k : k * b_stride_ + j));
    }
    y *= static_cast<double>(alpha_);
    for (const GemmStep::Kind kind : kinds_) {
      const auto other = static_cast<double>(at(tensor_, i * y_stride_ + j));
      if (kind == GemmStep::Kind::add) y += other;
      if (kind == GemmStep::Kind::multiply) y *= other;
      if (kind == GemmStep::Kind::add_row) y += static_cast<double>(at(row_, j));
      if (kind == GemmStep::Kind::relu) y = std::fmax(y, 0.0);
    }
    return y;
  }

  void check() const {
    const std::vector<float> y = run();
    double worst = 0;
    for (int64_t i = 0; i < rows_; ++i) {
      for (int64_t j = 0; j < y_stride_; ++j) {
        const float got = at(y, i * y_stride_ + j);
        if (j >= columns_) {
          EXPECT_EQ(got, kUntouched) << i << " " << j;
        } else {
          worst = std::fmax(worst, std::abs(static_cast<double>(got) - expected(i, j)));
        }
      }
    }
    EXPECT_LT(worst, 1e-4) << rows_ << " x " << depth_ << " x " << columns_;
  }

 private:
  static constexpr float kUntouched = 77;
  static float at(const std::vector<float>& values, int64_t i) { return values[static_cast<size_t>(i)]; }

  int64_t rows_, depth_, columns_, y_stride_, a_stride_ = 0, b_stride_ = 0;
  bool in_place_;
  bool a_transposed_ = false, b_transposed_ = false;
  std::vector<float> a_, b_, row_, tensor_;
  float alpha_ = 1;
  std::vector<GemmStep::Kind> kinds_;
};

TEST(PackedGemmLoops, EveryStepOnEveryInstructionSet) {
  Random random(1);
  const auto extent = [&](int64_t most) { return draw(random, 1, draw_one_of<int64_t>(random, {4, 30, most})); };
  for (int i = 0; i < 80; ++i) {
    const Product product(random, extent(220), extent(600), extent(300), i % 2 == 1);
    SCOPED_TRACE(i);
    on_every_isa([&] { product.check(); });
  }
}

// Whole panels of b are read where they lie, the others from a copy: no element behind a row counts.
TEST(PackedGemmLoops, SmallFactorsAreReadInPlace) {
  EXPECT_TRUE(is_better_in_place({nullptr, 64, false}, {nullptr, 64, false}, 64, 64));
  EXPECT_TRUE(is_better_in_place({nullptr, 64, true}, {nullptr, 64, true}, 64, 64));
  // Rows of b that are 4 KiB apart, columns of a that are, and more than the caches take.
  EXPECT_FALSE(is_better_in_place({nullptr, 64, false}, {nullptr, 1024, false}, 64, 16));
  EXPECT_FALSE(is_better_in_place({nullptr, 1024, true}, {nullptr, 64, true}, 64, 16));
  EXPECT_FALSE(is_better_in_place({nullptr, 256, false}, {nullptr, 250, false}, 256, 250));
}

}  // namespace
}  // namespace autograph::simd
