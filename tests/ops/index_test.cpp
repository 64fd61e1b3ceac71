// Picking and writing by index: exact small cases, and that no index reaches outside.
#include "ops/call_op.h"
#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

using F32 = std::vector<float>;
using I64 = std::vector<int64_t>;

Tensor list(const F32& values) { return Tensor::of<float>({static_cast<int64_t>(values.size())}, values); }

TEST(Gather, ReplacesTheAxisByTheDimsOfIndices) {
  const Tensor y =
      run_op(gather_def(), {iota_f32({2, 3}), Tensor::of<int64_t>({2, 1}, {-1, 0})}, {{"axis", int64_t{1}}});
  EXPECT_EQ(y.dims(), (Dims{2, 2, 1}));
  EXPECT_EQ(elements<float>(y), (F32{2, 0, 5, 3}));
}

TEST(Gather, RejectsIndicesOutOfRange) {
  EXPECT_EQ(error_of(gather_def(), {iota_f32({3}), Tensor::vector({3})}),
            "[gather] indices: expected -3..2 for extent 3, got 3");
  EXPECT_EQ(error_of(gather_def(), {iota_f32({0, 2}), Tensor::vector({0})}),
            "[gather] indices: expected 0..-1 for extent 0, got 0");
}

TEST(GatherElements, TakesOneElementPerIndex) {
  const Tensor indices = Tensor::of<int64_t>({1, 3}, {1, 0, -1});
  EXPECT_EQ(elements<float>(run_op(gather_elements_def(), {iota_f32({2, 3}), indices})), (F32{3, 1, 5}));
  EXPECT_EQ(error_of(gather_elements_def(), {iota_f32({2, 3}), Tensor::of<int64_t>({1, 1}, {-3})}),
            "[gather_elements] indices: expected -2..1 for extent 2, got -3");
}

TEST(GatherNd, FollowsTuplesBehindBatchDims) {
  const Tensor indices = Tensor::of<int64_t>({2, 1}, {1, 0});
  const Tensor y = run_op(gather_nd_def(), {iota_f32({2, 2, 2}), indices}, {{"batch_dims", int64_t{1}}});
  EXPECT_EQ(elements<float>(y), (F32{2, 3, 4, 5}));
  EXPECT_EQ(error_of(gather_nd_def(), {iota_f32({2}), Tensor::of<int64_t>({1, 2}, {0, 0})}),
            "[gather_nd] indices: expected tuples of 1..1, got shape [1,2]");
}

TEST(ScatterElements, CombinesDuplicates) {
  const auto scatter = [](const char* reduction) {
    return elements<float>(run_op(scatter_elements_def(), {list({1, 2, 3}), Tensor::vector({1, 1}), list({5, -4})},
                                  {{"reduction", std::string(reduction)}}));
  };
  EXPECT_EQ(scatter("none"), (F32{1, -4, 3}));
  EXPECT_EQ(scatter("add"), (F32{1, 3, 3}));
  EXPECT_EQ(scatter("mul"), (F32{1, -40, 3}));
  EXPECT_EQ(scatter("max"), (F32{1, 5, 3}));
  EXPECT_EQ(scatter("min"), (F32{1, -4, 3}));
}

TEST(ScatterNd, WritesSlices) {
  const Tensor updates = Tensor::of<float>({1, 2}, {7, 8});
  const Tensor y = run_op(scatter_nd_def(), {iota_f32({2, 2}), Tensor::of<int64_t>({1, 1}, {-1}), updates});
  EXPECT_EQ(elements<float>(y), (F32{0, 1, 7, 8}));
  EXPECT_EQ(error_of(scatter_nd_def(), {iota_f32({2, 2}), Tensor::of<int64_t>({1, 1}, {2}), updates}),
            "[scatter_nd] indices: expected -2..1 for extent 2, got 2");
}

TEST(OneHot, LeavesIndicesOutOfRangeOff) {
  const Tensor y = run_op(one_hot_def(), {Tensor::vector({1, -1, 3, -4}), Tensor::scalar<int64_t>(3), list({0, 9})});
  EXPECT_EQ(elements<float>(y), (F32{0, 9, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0}));
}

TEST(TensorScatter, WrapsAroundWhenCircular) {
  const std::vector<Tensor> inputs{Tensor::zeros(DType::f32, {1, 3, 1}), Tensor::of<float>({1, 2, 1}, {1, 2}),
                                   Tensor::vector({2})};
  EXPECT_EQ(elements<float>(run_op(tensor_scatter_def(), inputs, {{"mode", std::string("circular")}})), (F32{2, 0, 1}));
  EXPECT_EQ(error_of(tensor_scatter_def(), inputs), "[tensor_scatter] write_indices[0]: expected 0..1, got 2");
}

TEST(IndexOps, RunTheirSamples) {
  for (const OpDef* op : {&gather_def(), &gather_elements_def(), &gather_nd_def(), &scatter_elements_def(),
                          &scatter_nd_def(), &one_hot_def(), &tensor_scatter_def()}) {
    run_samples(*op, 100);
  }
}

}  // namespace
}  // namespace autograph
