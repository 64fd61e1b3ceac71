// What an OpenCL device makes of long rows: sums that many groups share, extremes and their places, the first few, all
// in order, running sums.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

// Millions of equal numbers: each item of a single group would add up so many that all are rounded the same way.
TEST(OpenClLongRows, AddUpMillions) {
  AG_NEEDS_OPENCL();
  constexpr int64_t kCount = 1 << 22;
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {2, kCount});
  graph.output("mean", reduce_mean(x, {1}, false));
  graph.output("sum", reduce_sum(mul(x, x), {0, 1}, true));
  graph.output("largest", reduce_max(x, {1}, false));
  Random random(1);
  const Tensor values = draw_tensor(random, DType::f32, {2, kCount}, 0.1, 0.1);
  EXPECT_EQ(difference_on_opencl(graph.build(), {values}, {1e-5, 0}), "");
}

// Integers wrap around in parts as in one piece.
TEST(OpenClLongRows, CombineIntegersInParts) {
  AG_NEEDS_OPENCL();
  for (const DType dtype : {DType::i32, DType::u32, DType::i64, DType::u64}) {
    GraphBuilder graph;
    const Var x = graph.input("x", dtype, {3, 50021});
    graph.output("sum", reduce_sum(x, {1}, false));
    graph.output("least", reduce_min(x, {0, 1}, false));
    Random random(2);
    EXPECT_EQ(difference_on_opencl(graph.build(), {draw_tensor(random, dtype, {3, 50021}, 0, 1e9)}), "")
        << to_string(dtype);
  }
}

Graph extremes_of(DType dtype, const Dims& dims, int64_t axis) {
  Graph graph;
  const Var x = input(graph, dtype, Shape::of(dims), "x");
  for (const OpDef* op : {&arg_max_def(), &arg_min_def()}) {
    for (const int64_t last : {0, 1}) {
      Attributes attributes{{"axis", axis}, {"keepdims", int64_t{0}}, {"select_last_index", last}};
      graph.add_output(apply(*op, {x}, std::move(attributes)).id(), std::string(op->name) + std::to_string(last));
    }
  }
  return graph;
}

// Few values, so that each extreme is there many times; in one row NaN, too.
TEST(OpenClLongRows, HaveTheirExtremesWhereTheReferenceHasThem) {
  AG_NEEDS_OPENCL();
  for (const DType dtype : {DType::f32, DType::i32, DType::u8, DType::f16}) {
    for (const int64_t axis : {0, 1}) {
      const Dims dims = axis == 0 ? Dims{5000, 3} : Dims{3, 5000};
      Random random(3);
      Tensor x = draw_tensor(random, DType::i32, dims, 0, 5);
      if (dtype == DType::f32) {
        std::vector<float> values;
        for (const double v : x.to_f64()) values.push_back(static_cast<float>(v));
        for (const size_t k : {1500, 1501, 4203}) values[k] = std::numeric_limits<float>::quiet_NaN();
        x = Tensor::of<float>(dims, values);
      } else {
        x = draw_tensor(random, dtype, dims, 0, 5);
      }
      EXPECT_EQ(difference_on_opencl(extremes_of(dtype, dims, axis), {x}), "") << to_string(dtype) << ", axis " << axis;
    }
  }
}

// Rows are cut into blocks, of which the first few elements each come together until all can be compared.
TEST(OpenClLongRows, GiveTheirFirstFewElements) {
  AG_NEEDS_OPENCL();
  for (const auto& [length, k] : std::vector<std::pair<int64_t, int64_t>>{{4097, 1}, {50257, 40}, {70001, 512}}) {
    for (const int64_t axis : {0, 1}) {
      for (const bool largest : {true, false}) {
        const Dims dims = axis == 0 ? Dims{length, 2} : Dims{2, length};
        GraphBuilder graph;
        const Var x = graph.input("x", DType::f32, Shape::of(dims));
        const auto [first, places] = top_k(x, k, axis, largest);
        graph.output("values", first);
        graph.output("places", places);
        Random random(4);
        std::vector<float> values;
        // Many are equal: of these the first ones are wanted.
        for (const double v : draw_tensor(random, DType::i32, dims, 0, 999).to_f64()) {
          values.push_back(static_cast<float>(v));
        }
        values[2049] = std::numeric_limits<float>::quiet_NaN();
        EXPECT_EQ(difference_on_opencl(graph.build(), {Tensor::of<float>(dims, values)}), "")
            << k << " of " << length << ", axis " << axis;
      }
    }
  }
}

// One in the place of the largest element, the first of several, or of NaN; rows of zeros stay so.
TEST(OpenClLongRows, AreNormalizedByTheirNormAndTheirLargestElement) {
  AG_NEEDS_OPENCL();
  for (const int64_t axis : {0, 1}) {
    const Dims dims = axis == 0 ? Dims{2000, 3} : Dims{3, 2000};
    GraphBuilder graph;
    const Var x = graph.input("x", DType::f32, Shape::of(dims));
    graph.output("hard", hardmax(x, axis));
    graph.output("sum", lp_normalization(x, axis, 1));
    graph.output("euclid", lp_normalization(x, axis, 2));
    graph.output("standard", mean_variance_normalization(add(x, exp(x * 0.01F)), {axis}));
    std::vector<float> values;
    for (int k = 0; k < 6000; ++k) {
      const int row = axis == 0 ? k % 3 : k / 2000;
      values.push_back(row == 1 ? 0 : static_cast<float>(k * 37 % 101 - 50));
    }
    EXPECT_EQ(difference_on_opencl(graph.build(), {Tensor::of<float>(dims, values)}, {1e-5, 0}), "") << axis;
    GraphBuilder alone;
    alone.output("hard", hardmax(alone.input("x", DType::f32, Shape::of(dims)), axis));
    for (const size_t k : {1500, 1501, 4203}) values[k] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(difference_on_opencl(alone.build(), {Tensor::of<float>(dims, values)}), "") << axis;
  }
}

// Blocks in order are merged, several at a time, and again: all elements, or more of them than are compared at once.
TEST(OpenClLongRows, AreSorted) {
  AG_NEEDS_OPENCL();
  struct Case {
    DType dtype;
    Dims dims;
    int64_t k, axis;
    bool largest;
  };
  for (const Case& each : {Case{DType::f16, {2, 5000}, 5000, 1, true}, Case{DType::i64, {9000}, 600, 0, false}}) {
    GraphBuilder graph;
    const auto [first, places] =
        top_k(graph.input("x", each.dtype, Shape::of(each.dims)), each.k, each.axis, each.largest);
    graph.output("values", first);
    graph.output("places", places);
    Random random(5);
    const Tensor x = draw_tensor(random, each.dtype, each.dims, 0, 200);
    EXPECT_EQ(difference_on_opencl(graph.build(), {x}), "") << to_string(each.dtype);
  }
}

TEST(OpenClLongRows, AreSortedWithNumbersThatAreNone) {
  AG_NEEDS_OPENCL();
  const Dims dims{5000, 2};
  GraphBuilder graph;
  graph.output("places", top_k(graph.input("x", DType::f32, Shape::of(dims)), 5000, 0, false).second);
  std::vector<float> values;
  for (int k = 0; k < 10000; ++k) {
    values.push_back(k % 7 == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(k * 37 % 101));
  }
  EXPECT_EQ(difference_on_opencl(graph.build(), {Tensor::of<float>(dims, values)}), "");
}

// By groups that share a row, by one each, and by one that walks over its row in several steps.
TEST(OpenClLongRows, HaveRunningSums) {
  AG_NEEDS_OPENCL();
  struct Case {
    DType dtype;
    Dims dims;
    int64_t axis;
    bool exclusive, reverse;
  };
  for (const Case& each :
       {Case{DType::f32, {2, 50021}, 1, false, false}, Case{DType::i32, {50021}, 0, true, true},
        Case{DType::f16, {3000, 2}, 0, false, true}, Case{DType::u64, {3, 100, 2}, 1, true, false}}) {
    GraphBuilder graph;
    const Var x = graph.input("x", each.dtype, Shape::of(each.dims));
    graph.output("sums", cum_sum(x, each.axis, each.exclusive, each.reverse));
    if (each.dims.size() == 3) graph.output("products", cum_prod(x, each.axis, each.exclusive, each.reverse));
    Random random(6);
    const bool is_float = each.dtype == DType::f32 || each.dtype == DType::f16;
    const Tensor values = draw_tensor(random, each.dtype, each.dims, 0, is_float ? 1 : 1e9);
    const FloatTolerance tolerance{each.dtype == DType::f16 ? 1e-3 : 1e-5, 0};
    EXPECT_EQ(difference_on_opencl(graph.build(), {values}, tolerance), "") << to_string(each.dtype);
  }
}

// 32 parts first, and then what each of them begins with.
TEST(OpenClSource, SharesFewLongRowsAmongGroups) {
  Random random(7);
  const auto groups_of = [&](const Dims& dims) {
    const OpSample sample{.inputs = {draw_tensor(random, DType::f32, dims), Tensor::scalar(int64_t{1})}};
    const KernelCase test(cum_sum_def(), sample, {.constant_weights = true});
    std::vector<size_t> groups;
    for (const gpu::Launch& launch : gpu::emit(test.call(), {.processors = 16}).launches)
      groups.push_back(launch.groups);
    return groups;
  };
  EXPECT_EQ(groups_of({1, 1 << 20}), (std::vector<size_t>{32, 32}));
  EXPECT_EQ(groups_of({100, 5000}), (std::vector<size_t>{100}));
  EXPECT_EQ(groups_of({256, 20}), (std::vector<size_t>{1})) << "an item has a row";
}

}  // namespace
}  // namespace autograph
