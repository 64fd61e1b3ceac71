// The kernels of attention while training against the bodies of the ops, on every instruction set: shapes that fill no
// tile and several, masks, windows, heads that share keys, and calls that are cut into tasks of queries and of keys.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

struct CallShape {
  int64_t batch, heads, kv_heads, queries, keys, size, value_size;
};

const std::vector<CallShape> kShapes{
    {1, 1, 1, 1, 1, 1, 1},    {2, 3, 3, 5, 7, 4, 9},     {1, 4, 2, 17, 33, 12, 8},
    {1, 2, 1, 9, 200, 6, 20}, {1, 1, 1, 130, 150, 8, 8}, {3, 2, 2, 49, 49, 32, 32},
};

Tensor draw_floats(Random& random, Dims dims) { return draw_tensor(random, DType::f32, std::move(dims), -1, 1); }

OpSample draw_call(Random& random, const CallShape& s, bool packed) {
  const auto tensor = [&](int64_t heads, int64_t length, int64_t size) {
    return draw_floats(random, packed ? Dims{s.batch, length, heads * size} : Dims{s.batch, heads, length, size});
  };
  OpSample sample{.inputs = {tensor(s.heads, s.queries, s.size), tensor(s.kv_heads, s.keys, s.size),
                             tensor(s.kv_heads, s.keys, s.value_size)},
                  .num_outputs = 2};
  if (packed) sample.attributes = {{"q_num_heads", s.heads}, {"kv_num_heads", s.kv_heads}};
  return sample;
}

// The gradient of a call, from the sums that it gives.
OpSample gradient_of(Random& random, const OpSample& call) {
  const std::vector<Tensor> results = KernelCase(tiled_attention_def(), call).reference();
  OpSample sample = call;
  sample.inputs.resize(3);
  sample.inputs.emplace_back(draw_floats(random, results[0].dims()));
  sample.inputs.emplace_back(results[1]);
  sample.inputs.emplace_back(draw_floats(random, results[1].dims()));
  if (call.inputs.size() > 3) sample.inputs.push_back(call.inputs[3]);
  sample.num_outputs = 3;
  return sample;
}

void expect_both(Random& random, const OpSample& call, int threads) {
  const KernelCase forward(tiled_attention_def(), call, {threads});
  const KernelCase backward(tiled_attention_grad_def(), gradient_of(random, call), {threads});
  on_every_isa([&] {
    expect_reference(simd::tiled_attention_kernel(), forward, {1e-4, 1e-5});
    expect_reference(simd::tiled_attention_grad_kernel(), backward, {1e-4, 2e-5});
  });
}

TEST(AttentionGrad, OfManyShapes) {
  Random random(1);
  for (const CallShape& shape : kShapes) {
    for (const bool packed : {false, true}) {
      OpSample call = draw_call(random, shape, packed);
      expect_both(random, call, 1);
      call.attributes.set("is_causal", int64_t{1});
      call.attributes.set("scale", 0.3F);
      expect_both(random, call, 2);
      call.attributes.set("softcap", 0.7F);
      call.attributes.set("left_window_size", int64_t{5});
      expect_both(random, call, 1);
    }
  }
}

TEST(AttentionGrad, WithMasksThatBroadcast) {
  Random random(2);
  const CallShape s{2, 4, 2, 10, 90, 8, 8};
  for (const Dims& dims :
       {Dims{90}, Dims{10, 90}, Dims{1, 90}, Dims{4, 1, 90}, Dims{2, 1, 1, 90}, Dims{2, 4, 10, 90}, Dims{10, 70}}) {
    OpSample call = draw_call(random, s, false);
    call.inputs.emplace_back(draw_floats(random, dims));
    expect_both(random, call, 1);
    call.attributes.set("softcap", 1.5F);
    call.inputs[3] = draw_tensor(random, DType::boolean, dims, 0, 1);
    expect_both(random, call, 2);
  }
}

TEST(AttentionGrad, OfAQueryThatSeesNothingIsZero) {
  Random random(3);
  OpSample call = draw_call(random, {1, 1, 1, 3, 4, 8, 8}, false);
  call.inputs.emplace_back(
      Tensor::of<bool>({3, 4}, {true, true, false, true, false, false, false, false, true, false, true, true}));
  expect_both(random, call, 1);
}

// Fewer heads than threads: tasks of queries and tasks of keys. Each gradient is one task's, so that they are the same
// as those of any other cut.
TEST(AttentionGrad, CutIntoTasksOfQueriesAndOfKeys) {
  Random random(4);
  for (const CallShape& shape : {CallShape{1, 1, 1, 300, 300, 16, 16}, CallShape{1, 6, 3, 150, 260, 8, 12}}) {
    for (const bool causal : {false, true}) {
      OpSample call = draw_call(random, shape, true);
      call.attributes.set("is_causal", int64_t{causal});
      expect_both(random, call, 4);
    }
  }
}

TEST(AttentionGrad, SaysWhatItRefuses) {
  Random random(5);
  OpSample call = draw_call(random, {1, 1, 1, 3, 4, 8, 8}, false);
  call.inputs.emplace_back(draw_tensor(random, DType::f64, {3, 4}));
  EXPECT_EQ(KernelRun(simd::tiled_attention_kernel(), KernelCase(tiled_attention_def(), call)).refusal(),
            "a mask of f64");
}

}  // namespace
}  // namespace autograph
