// Pools of row-major planes (positions of maxima, NaN, windows in the padding) and global pools against the reference.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

// A random call, with NaN and infinity among the inputs where wanted, and many equal elements.
OpSample random_pool(Random& random, bool has_specials, int64_t channels = 3) {
  const int64_t rank = draw(random, 1, 3);
  Dims x{draw(random, 1, 2), channels}, kernel, strides, dilations, pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t a = 0; a < rank; ++a) {
    kernel.push_back(draw(random, 1, 4));
    strides.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    const int64_t span = (kernel.back() - 1) * dilations.back() + 1;
    for (const int64_t side : {a, a + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, kernel.back() - 1);
    x.push_back(span + draw(random, 0, a + 1 == rank ? 40 : 6));
  }
  OpSample sample;
  Tensor values = Tensor::empty(DType::f32, x);
  float* data = values.mutable_data<float>();
  for (int64_t i = 0; i < values.num_elements(); ++i) data[i] = static_cast<float>(draw(random, -4, 4));
  if (has_specials) {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    for (int64_t i = 0; i < values.num_elements(); i += draw(random, 1, 5)) {
      data[i] = draw_one_of(random, {-kInfinity, kInfinity, -kInfinity, std::nanf("")});
    }
  }
  sample.inputs = {values};
  sample.attributes = {{"kernel_shape", kernel},
                       {"strides", strides},
                       {"pads", pads},
                       {"dilations", dilations},
                       {"ceil_mode", draw(random, 0, 1)}};
  return sample;
}

TEST(PlanePool, MaximaAndTheirPositions) {
  Random random(21);
  for (int i = 0; i < 200; ++i) {
    OpSample sample = random_pool(random, i % 3 == 0);
    sample.num_outputs = 1 + i % 2;
    SCOPED_TRACE(i);
    const KernelDef def = cpu_kernel("cpu.max_pool_rows", "max_pool");
    on_every_isa([&] { expect_reference(def, KernelCase(max_pool_def(), sample, {1 + i % 2})); });
  }
}

TEST(PlanePool, Means) {
  Random random(22);
  for (int i = 0; i < 200; ++i) {
    OpSample sample = random_pool(random, i % 3 == 0);
    sample.attributes.set("count_include_pad", draw(random, 0, 1));
    SCOPED_TRACE(i);
    const KernelDef def = cpu_kernel("cpu.average_pool_rows", "average_pool");
    on_every_isa([&] { expect_reference(def, KernelCase(average_pool_def(), sample, {1 + i % 2})); });
  }
}

// As spatial pyramids have them: windows larger than the image, most of each in the padding.
OpSample random_large_pool(Random& random, int64_t channels) {
  const int64_t rank = draw(random, 1, 3);
  Dims x{draw(random, 1, 2), channels}, kernel, strides, pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t a = 0; a < rank; ++a) {
    const int64_t window = draw_one_of<int64_t>(random, {3, 5, 9, 13});
    kernel.push_back(window);
    strides.push_back(draw(random, 1, 2));
    x.push_back(draw(random, 1, 9));
    for (const int64_t side : {a, a + rank}) pads[static_cast<size_t>(side)] = window / 2 + draw(random, 0, window / 2);
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -4, 4)};
  sample.attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
  return sample;
}

TEST(PlanePool, WindowsLargerThanTheImage) {
  Random random(30);
  for (int i = 0; i < 200; ++i) {
    const bool is_mean = i % 2 == 0;
    OpSample sample = random_large_pool(random, draw(random, 1, 40));
    if (is_mean) sample.attributes.set("count_include_pad", draw(random, 0, 1));
    const OpDef& op = is_mean ? average_pool_def() : max_pool_def();
    const KernelDef def = cpu_kernel(is_mean ? "cpu.average_pool_rows" : "cpu.max_pool_rows", op.name);
    SCOPED_TRACE(i);
    expect_reference(def, KernelCase(op, sample, {1 + i % 2}));
  }
}

TEST(OnednnPool, WindowsLargerThanTheImage) {
  Random random(29);
  for (const auto& [name, op] :
       {std::pair{"cpu.max_pool_onednn", &max_pool_def()}, std::pair{"cpu.average_pool_onednn", &average_pool_def()}}) {
    const KernelDef def = cpu_kernel(name, op->name);
    if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
    int taken = 0;
    for (int i = 0; i < 200; ++i) {
      OpSample sample = random_large_pool(random, draw_one_of<int64_t>(random, {3, 8, 16, 24, 33}));
      if (op == &average_pool_def()) sample.attributes.set("count_include_pad", draw(random, 0, 1));
      if (!def.why_not(KernelCase(*op, sample).call()).empty()) continue;
      SCOPED_TRACE(i);
      expect_every_variant(def, *op, sample, 1 + i % 2);
      ++taken;
    }
    EXPECT_GT(taken, 50) << name;
  }
}

TEST(OnednnPool, EveryLayout) {
  Random random(25);
  for (const auto& [name, op] :
       {std::pair{"cpu.max_pool_onednn", &max_pool_def()}, std::pair{"cpu.average_pool_onednn", &average_pool_def()}}) {
    const KernelDef def = cpu_kernel(name, op->name);
    if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
    int taken = 0;
    for (int i = 0; i < 100; ++i) {
      const OpSample sample = random_pool(random, i % 3 == 0 && op == &max_pool_def());
      if (!def.why_not(KernelCase(*op, sample).call()).empty()) continue;
      SCOPED_TRACE(i);
      expect_every_variant(def, *op, sample, 1 + i % 2);
      ++taken;
    }
    EXPECT_GT(taken, 20) << name;
  }
}

TEST(PixelPool, EveryLayout) {
  Random random(26);
  for (int i = 0; i < 80; ++i) {
    const bool is_mean = i % 2 == 0;
    const int64_t channels = draw_one_of(random, {int64_t{3}, int64_t{16}, int64_t{40}});
    OpSample sample = random_pool(random, i % 3 == 0, channels);
    if (is_mean) sample.attributes.set("count_include_pad", draw(random, 0, 1));
    const OpDef& op = is_mean ? average_pool_def() : max_pool_def();
    const KernelDef def = cpu_kernel(is_mean ? "cpu.average_pool_pixels" : "cpu.max_pool_pixels", op.name);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(def, op, sample, 1 + i % 2); });
  }
}

TEST(GlobalPool, EveryLayout) {
  Random random(24);
  for (int i = 0; i < 60; ++i) {
    const int64_t channels = draw_one_of(random, {int64_t{1}, int64_t{16}, int64_t{40}, int64_t{200}});
    Dims x{draw(random, 1, 3), channels};
    for (int64_t a = draw(random, 1, 3); a > 0; --a) x.push_back(draw(random, 1, 15));
    Tensor values = draw_tensor(random, DType::f32, x, -1, 1);
    if (i % 4 == 0) values.mutable_data<float>()[values.num_elements() / 2] = std::nanf("");
    SCOPED_TRACE(i);
    const OpSample sample{.inputs = {values}, .attributes = {}};
    for (const OpDef* op : {&global_average_pool_def(), &global_max_pool_def()}) {
      expect_every_variant(cpu_kernel("cpu.global_pool", op->name), *op, sample, 1 + i % 2);
    }
    const KernelDef onednn = cpu_kernel("cpu.global_max_pool_onednn", "global_max_pool");
    if (!onednn.name.empty()) expect_every_variant(onednn, global_max_pool_def(), sample, 1 + i % 2);
  }
}

TEST(GlobalPool, PlanesOfOnePixel) {
  const OpSample sample{.inputs = {Tensor::of<float>({1, 3, 1, 1}, {1, -2, 3})}, .attributes = {}};
  for (const OpDef* op : {&global_average_pool_def(), &global_max_pool_def()}) {
    expect_every_variant(cpu_kernel("cpu.global_pool", op->name), *op, sample, 1);
  }
}

TEST(PlanePool, RefusesColumnMajorPositions) {
  Random random(23);
  OpSample sample = random_pool(random, false);
  sample.num_outputs = 2;
  sample.attributes.set("storage_order", int64_t{1});
  EXPECT_EQ(cpu_kernel("cpu.max_pool_rows", "max_pool").why_not(KernelCase(max_pool_def(), sample).call()),
            "indices in column-major order");
}

}  // namespace
}  // namespace autograph
