// Initialisers: ranges and moments, fans as torch counts them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograph/error.h"
#include "autograph/nn/init.h"
#include "autograph/nn/layers.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
  double low = 0;
  double high = 0;
};

Moments moments_of(const Init& init, const Dims& dims) {
  const std::vector<double> values = init.draw(dims, 3, "layer.weight").to_f64();
  Moments m{.low = *std::min_element(values.begin(), values.end()),
            .high = *std::max_element(values.begin(), values.end())};
  for (const double v : values) m.mean += v / static_cast<double>(values.size());
  for (const double v : values) m.deviation += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

void expect_uniform(const Init& init, const Dims& dims, double bound) {
  const Moments m = moments_of(init, dims);
  EXPECT_NEAR(m.mean, 0, 0.02 * bound);
  EXPECT_NEAR(m.deviation, bound / std::sqrt(3.0), 0.01 * bound);
  EXPECT_GT(m.low, -bound * 1.000001);
  EXPECT_LT(m.low, -0.99 * bound);
  EXPECT_LT(m.high, bound * 1.000001);
  EXPECT_GT(m.high, 0.99 * bound);
}

void expect_normal(const Init& init, const Dims& dims, double deviation) {
  const Moments m = moments_of(init, dims);
  EXPECT_NEAR(m.mean, 0, 0.02 * deviation);
  EXPECT_NEAR(m.deviation, deviation, 0.02 * deviation);
  EXPECT_GT(m.high, 3 * deviation);
}

TEST(Init, FansAreTorchs) {
  EXPECT_EQ(fans_of({10, 20}).in, 20);
  EXPECT_EQ(fans_of({10, 20}).out, 10);
  EXPECT_EQ(fans_of({8, 4, 3, 5}).in, 60);
  EXPECT_EQ(fans_of({8, 4, 3, 5}).out, 120);
  EXPECT_EQ(message_of<ShapeError>([] { Init::xavier_uniform().draw({5}, 0, "x"); }),
            "[nn] fans: expected two dims or more, got [5]");
}

TEST(Init, Distributions) {
  const Dims dims{64, 16, 3, 3};  // fans 144 and 576
  expect_uniform(Init::uniform(-0.25, 0.25), dims, 0.25);
  expect_normal(Init::normal(0, 2), dims, 2);
  expect_uniform(Init::xavier_uniform(2), dims, 2 * std::sqrt(6.0 / 720));
  expect_normal(Init::xavier_normal(), dims, std::sqrt(2.0 / 720));
  expect_uniform(Init::kaiming_uniform(std::sqrt(5.0)), dims, 1 / std::sqrt(144.0));
  expect_uniform(Init::kaiming_uniform(), dims, std::sqrt(6.0 / 144));
  expect_normal(Init::kaiming_normal(0, Fan::out), dims, std::sqrt(2.0 / 576));
  const Moments cut = moments_of(Init::truncated_normal(0, 1, -0.5, 1), dims);
  EXPECT_GE(cut.low, -0.5);
  EXPECT_LE(cut.high, 1);
  EXPECT_EQ(Init::constant(3).draw({2}, 0, "").to_f64(), (std::vector<double>{3, 3}));
}

TEST(Init, SeedAndPathDecide) {
  const Init init = Init::normal();
  EXPECT_TRUE(init.draw({9}, 1, "a").bitwise_equal(init.draw({9}, 1, "a")));
  EXPECT_FALSE(init.draw({9}, 1, "a").bitwise_equal(init.draw({9}, 1, "b")));
  EXPECT_FALSE(init.draw({9}, 1, "a").bitwise_equal(init.draw({9}, 2, "a")));
}

TEST(Init, LayersBeginAsTorchs) {
  const Conv2d conv(16, 64, {3});
  expect_uniform(Init::uniform(-1.0 / 12, 1.0 / 12), {64, 16, 3, 3}, 1.0 / 12);
  const std::vector<double> weight = conv.tensor("weight").value().to_f64();
  EXPECT_LT(*std::max_element(weight.begin(), weight.end()), 1.0 / 12);
  EXPECT_GT(*std::max_element(weight.begin(), weight.end()), 0.99 / 12);
  const std::vector<double> bias = conv.tensor("bias").value().to_f64();
  EXPECT_LT(*std::max_element(bias.begin(), bias.end()), 1.0 / 12);
}

double dot(const std::vector<double>& x, size_t i, size_t j, size_t length, size_t between) {
  const size_t a = between == 1 ? i * length : i, b = between == 1 ? j * length : j;
  double sum = 0;
  for (size_t k = 0; k < length; ++k) sum += x[a + k * between] * x[b + k * between];
  return sum;
}

// Of a wide tensor the rows, of a tall one the columns; and Q of the QR decomposition of what was drawn, whose R has a
// positive diagonal, as torch makes it.
TEST(Init, OrthogonalVectors) {
  const std::vector<double> wide = Init::orthogonal(2).draw({4, 3, 2}, 3, "w").to_f64();
  for (size_t i = 0; i < 4; ++i) {
    for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(dot(wide, i, j, 6, 1), i == j ? 4 : 0, 1e-6);
  }
  const std::vector<double> tall = Init::orthogonal().draw({40, 8}, 3, "w").to_f64();
  const std::vector<double> drawn = Init::normal().draw({40, 8}, 3, "w").to_f64();
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) EXPECT_NEAR(dot(tall, i, j, 40, 8), i == j ? 1 : 0, 1e-6);
    for (size_t j = 0; j <= i; ++j) {  // R(i, j): 0 below the diagonal
      double r = 0;
      for (size_t k = 0; k < 40; ++k) r += tall[8 * k + i] * drawn[8 * k + j];
      if (i == j) {
        EXPECT_GT(r, 1);
      } else {
        EXPECT_NEAR(r, 0, 1e-5);
      }
    }
  }
}

TEST(Init, DiracLetsChannelsThrough) {
  const std::vector<double> w = Init::dirac().draw({3, 2, 3, 4}, 0, "").to_f64();
  for (size_t i = 0; i < w.size(); ++i) EXPECT_EQ(w[i], i == 6 || i == 36 + 6 ? 1 : 0) << i;
  EXPECT_EQ(Init::dirac().draw({2, 3}, 0, "").to_f64(), (std::vector<double>{1, 0, 0, 0, 1, 0}));
}

// As in torch: of each column the share of zeros, rounded up; the others are as they were drawn.
TEST(Init, SparseColumns) {
  const std::vector<double> w = Init::sparse(0.3, 0.5).draw({11, 40}, 3, "w").to_f64();
  const std::vector<double> drawn = Init::normal(0, 0.5).draw({11, 40}, 3, "w").to_f64();
  std::vector<size_t> in_rows(11);
  for (size_t column = 0; column < 40; ++column) {
    size_t zeros = 0;
    for (size_t row = 0; row < 11; ++row) {
      const size_t at = 40 * row + column;
      EXPECT_TRUE(w[at] == 0 || w[at] == drawn[at]);
      zeros += w[at] == 0 ? 1 : 0;
      in_rows[row] += w[at] == 0 ? 1 : 0;
    }
    EXPECT_EQ(zeros, 4U);
  }
  for (const size_t count : in_rows) EXPECT_GT(count, 0U);
}

TEST(Init, WithARowOfZeros) {
  const Init plain = Init::orthogonal();
  const std::vector<double> w = plain.with_row_of_zeros(1).draw({3, 4}, 3, "w").to_f64();
  const std::vector<double> drawn = plain.draw({3, 4}, 3, "w").to_f64();
  for (size_t i = 0; i < w.size(); ++i) EXPECT_EQ(w[i], i / 4 == 1 ? 0 : drawn[i]) << i;
}

}  // namespace
}  // namespace autograph::nn
