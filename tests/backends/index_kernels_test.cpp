// trilu, gather_elements, gather_nd, scatter_elements, scatter_nd and tensor_scatter on the CPU against the reference.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/error.h"
#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

constexpr DType kSizes[]{DType::u8, DType::f16, DType::f32, DType::i64};

void expect_reference(const KernelDef& def, const OpDef& op, const OpSample& sample) {
  for (const int threads : {1, 2}) {
    const KernelCase test(op, sample, {threads, false});
    KernelRun run(def, test);
    ASSERT_EQ(run.refusal(), "");
    run.run();
    EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {0, 0}), "");
  }
}

// Both must end with the same error.
void expect_same_error(const KernelDef& def, const OpDef& op, const OpSample& sample) {
  for (const int threads : {1, 2}) {
    const KernelCase test(op, sample, {threads, false});
    KernelRun run(def, test);
    std::string expected, actual;
    try {
      test.reference();
    } catch (const ValueError& error) {
      expected = error.what();
    }
    try {
      run.run();
    } catch (const ValueError& error) {
      actual = error.what();
    }
    EXPECT_NE(expected, "");
    EXPECT_EQ(actual, expected);
  }
}

Tensor draw_indices(Random& random, DType dtype, const Dims& dims, int64_t extent) {
  Tensor indices = Tensor::zeros(dtype, dims);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    const int64_t index = draw(random, -extent, extent - 1);
    if (dtype == DType::i32)
      indices.mutable_data<int32_t>()[i] = static_cast<int32_t>(index);
    else
      indices.mutable_data<int64_t>()[i] = index;
  }
  return indices;
}

TEST(Trilu, KeepsEitherTriangleOfAnyShape) {
  Random random(1);
  for (const DType dtype : kSizes) {
    for (const Dims& dims : std::vector<Dims>{{3, 101, 150}, {151, 1}, {1, 7}, {2, 0, 5}, {4, 40, 33}}) {
      const Tensor x = draw_tensor(random, dtype, dims, 1, 100);
      for (const int64_t upper : {0, 1}) {
        const Attributes attributes{{"upper", upper}};
        expect_reference(trilu_kernel(), trilu_def(), {{x}, attributes});
        for (const int64_t k : {int64_t{-2}, int64_t{31}, INT64_MIN, INT64_MAX}) {
          expect_reference(trilu_kernel(), trilu_def(), {{x, Tensor::scalar(k)}, attributes});
        }
      }
    }
  }
}

TEST(GatherElements, PicksAlongEveryAxis) {
  Random random(2);
  for (const DType dtype : kSizes) {
    for (const DType index : {DType::i32, DType::i64}) {
      const Tensor x = draw_tensor(random, dtype, {40, 7, 130}, 0, 100);
      const std::vector<Dims> dims{{90, 7, 129}, {40, 11, 130}, {39, 6, 301}};
      for (int64_t axis = 0; axis < 3; ++axis) {
        const Dims& shape = dims[static_cast<size_t>(axis)];
        const Tensor indices = draw_indices(random, index, shape, x.dims()[static_cast<size_t>(axis)]);
        expect_reference(gather_elements_kernel(), gather_elements_def(), {{x, indices}, {{"axis", axis}}});
        expect_reference(gather_elements_kernel(), gather_elements_def(), {{x, indices}, {{"axis", axis - 3}}});
      }
    }
  }
  const Tensor line = draw_tensor(random, DType::f32, {5});
  expect_reference(gather_elements_kernel(), gather_elements_def(), {{line, draw_indices(random, DType::i64, {9}, 5)}});
}

TEST(GatherElements, RefusesIndicesOutOfRange) {
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {200, 300});
  for (const int64_t bad : {int64_t{300}, int64_t{-301}, INT64_MIN, INT64_MAX}) {
    Tensor indices = draw_indices(random, DType::i64, {200, 300}, 300);
    indices.mutable_data<int64_t>()[50000] = bad;
    indices.mutable_data<int64_t>()[59999] = 301;
    expect_same_error(gather_elements_kernel(), gather_elements_def(), {{x, indices}, {{"axis", int64_t{1}}}});
  }
}

TEST(GatherNd, CopiesTheSliceOfEveryTuple) {
  Random random(4);
  for (const DType dtype : kSizes) {
    const Tensor x = draw_tensor(random, dtype, {6, 6, 6, 37}, 0, 100);
    for (const Dims& dims : std::vector<Dims>{{700, 2}, {1}, {3, 50, 3}, {0, 2}}) {
      expect_reference(gather_nd_kernel(), gather_nd_def(), {{x, draw_indices(random, DType::i64, dims, 6)}});
    }
    const Attributes batched{{"batch_dims", int64_t{1}}};
    for (const Dims& dims : std::vector<Dims>{{6, 2}, {6, 500, 1}, {6, 5, 2, 2}}) {
      expect_reference(gather_nd_kernel(), gather_nd_def(), {{x, draw_indices(random, DType::i64, dims, 6)}, batched});
    }
  }
}

TEST(GatherNd, RefusesIndicesOutOfRange) {
  Random random(5);
  const Tensor x = draw_tensor(random, DType::f32, {6, 6, 100});
  for (const int64_t bad : {int64_t{6}, int64_t{-7}, INT64_MIN, INT64_MAX}) {
    Tensor indices = draw_indices(random, DType::i64, {700, 2}, 6);
    indices.mutable_data<int64_t>()[801] = bad;
    indices.mutable_data<int64_t>()[1300] = 9;
    expect_same_error(gather_nd_kernel(), gather_nd_def(), {{x, indices}});
  }
}

// Slices that threads share, and short ones, for which they share the output; tuples that name a slice often.
TEST(ScatterNd, CombinesInOrderForAnyNumberOfThreads) {
  Random random(8);
  Tensor x = draw_tensor(random, DType::f32, {9, 5, 300});
  x.mutable_data<float>()[70] = std::numeric_limits<float>::quiet_NaN();
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    for (const Dims& dims : std::vector<Dims>{{130, 1}, {700, 2}, {40, 50, 3}, {3, 1, 1}}) {
      const int64_t depth = dims.back();
      Dims updates(dims.begin(), dims.end() - 1);
      updates.insert(updates.end(), x.dims().begin() + depth, x.dims().end());
      const Tensor indices = draw_indices(random, DType::i64, dims, 5);
      expect_reference(scatter_nd_kernel(), scatter_nd_def(),
                       {{x, indices, draw_tensor(random, DType::f32, updates)}, {{"reduction", reduction}}});
    }
  }
}

// Few updates of much data, one after the other of the same elements, all of them in the part of one thread, too.
TEST(ScatterNd, EachThreadUpdatesWhatItHasCopied) {
  Random random(10);
  const Tensor x = draw_tensor(random, DType::f32, {300, 2, 150});
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    for (const int64_t extent : {300, 20}) {
      const Tensor indices = draw_indices(random, DType::i64, {140, 1}, extent);
      const Tensor updates = draw_tensor(random, DType::f32, {140, 2, 150});
      expect_reference(scatter_nd_kernel(), scatter_nd_def(), {{x, indices, updates}, {{"reduction", reduction}}});
      const Tensor pairs = draw_indices(random, DType::i64, {7, 40, 2}, 2);
      expect_reference(scatter_nd_kernel(), scatter_nd_def(),
                       {{x, pairs, draw_tensor(random, DType::f32, {7, 40, 150})}, {{"reduction", reduction}}});
    }
  }
}

TEST(ScatterNd, RefusesIndicesOutOfRange) {
  Random random(9);
  const Tensor x = draw_tensor(random, DType::f32, {6, 6, 100});
  const Tensor updates = draw_tensor(random, DType::f32, {700, 100});
  for (const int64_t bad : {int64_t{6}, int64_t{-7}, INT64_MIN, INT64_MAX}) {
    Tensor indices = draw_indices(random, DType::i64, {700, 2}, 6);
    indices.mutable_data<int64_t>()[801] = bad;
    indices.mutable_data<int64_t>()[1300] = 9;
    expect_same_error(scatter_nd_kernel(), scatter_nd_def(), {{x, indices, updates}});
  }
}

TEST(TensorScatter, WritesBetweenAllPositions) {
  Random random(11);
  for (const DType dtype : kSizes) {
    for (const std::string mode : {"linear", "circular"}) {
      for (const auto& [cache, axis] : std::vector<std::pair<Dims, int64_t>>{
               {{3, 2, 7, 5}, 2}, {{3, 7, 5}, 1}, {{2, 3, 7}, -1}, {{2, 40, 7, 300}, -2}}) {
        const int64_t length = draw(random, 1, 7);
        Dims update = cache;
        update[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(cache.size()) : axis)] = length;
        std::vector<int64_t> starts;
        for (int64_t b = 0; b < cache[0]; ++b) starts.push_back(draw(random, 0, mode == "linear" ? 7 - length : 6));
        const Attributes attributes{{"axis", axis}, {"mode", mode}};
        const Tensor x = draw_tensor(random, dtype, cache), y = draw_tensor(random, dtype, update);
        expect_reference(tensor_scatter_kernel(), tensor_scatter_def(), {{x, y, Tensor::vector(starts)}, attributes});
        expect_reference(tensor_scatter_kernel(), tensor_scatter_def(), {{x, y}, attributes});
      }
    }
  }
}

TEST(TensorScatter, RefusesPositionsOutOfRange) {
  Random random(12);
  const Tensor x = draw_tensor(random, DType::f32, {2, 7, 5}), y = draw_tensor(random, DType::f32, {2, 3, 5});
  for (const auto& [mode, bad] : std::vector<std::pair<std::string, int64_t>>{
           {"linear", 5}, {"linear", -1}, {"circular", 7}, {"circular", INT64_MIN}}) {
    expect_same_error(tensor_scatter_kernel(), tensor_scatter_def(),
                      {{x, y, Tensor::vector({0, bad})}, {{"axis", int64_t{1}}, {"mode", mode}}});
  }
}

TEST(ScatterElements, CombinesInOrderAlongEveryAxis) {
  Random random(6);
  Tensor x = draw_tensor(random, DType::f32, {40, 7, 530});
  x.mutable_data<float>()[70] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<Dims> dims{{90, 7, 129}, {40, 11, 300}, {39, 6, 301}};
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    for (const DType index : {DType::i32, DType::i64}) {
      for (int64_t axis = 0; axis < 3; ++axis) {
        const Dims& shape = dims[static_cast<size_t>(axis)];
        const Tensor indices = draw_indices(random, index, shape, x.dims()[static_cast<size_t>(axis)]);
        expect_reference(scatter_elements_kernel(), scatter_elements_def(),
                         {{x, indices, draw_tensor(random, DType::f32, shape)},
                          {{"axis", axis == 1 ? axis - 3 : axis}, {"reduction", reduction}}});
      }
    }
  }
}

// Positions before the indexed axis that have no indices are copied all the same.
TEST(ScatterElements, CopiesWhatNoIndexBelongsTo) {
  Random random(11);
  const Tensor x = draw_tensor(random, DType::f32, {20, 30, 4, 50});
  for (const Dims& dims : {Dims{20, 30, 9, 50}, Dims{20, 7, 9, 50}, Dims{3, 30, 2, 5}, Dims{13, 1, 40, 1}}) {
    const Tensor indices = draw_indices(random, DType::i64, dims, 4);
    for (const std::string reduction : {"none", "add"}) {
      expect_reference(
          scatter_elements_kernel(), scatter_elements_def(),
          {{x, indices, draw_tensor(random, DType::f32, dims)}, {{"axis", int64_t{2}}, {"reduction", reduction}}});
    }
  }
}

TEST(ScatterElements, RefusesIndicesOutOfRange) {
  Random random(7);
  const Tensor x = draw_tensor(random, DType::f32, {200, 300});
  for (const int64_t bad : {int64_t{300}, int64_t{-301}, INT64_MIN, INT64_MAX}) {
    Tensor indices = draw_indices(random, DType::i64, {200, 300}, 300);
    indices.mutable_data<int64_t>()[50000] = bad;
    indices.mutable_data<int64_t>()[59999] = 301;
    expect_same_error(scatter_elements_kernel(), scatter_elements_def(), {{x, indices, x}, {{"axis", int64_t{1}}}});
  }
}

}  // namespace
}  // namespace autograph
