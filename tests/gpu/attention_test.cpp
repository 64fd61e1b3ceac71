// attention in one generated kernel, on an OpenCL device beside the reference: tiles that are full and not, masks of
// all kinds, caches, padding, grouped heads.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "gpu/nvrtc.h"
#include "gpu/opencl_test_device.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/graphs/sample_graph.h"
#include "support/kernels/run_kernel.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// What a call of attention is about.
struct Extents {
  int64_t batch = 1, heads = 2, kv_heads = 2, queries = 1, keys = 1, size = 8, value_size = 8;
  bool packed = false;
};

OpSample make_call(Random& random, const Extents& e, DType dtype = DType::f32) {
  const auto tensor = [&](int64_t heads, int64_t length, int64_t size) {
    return draw_tensor(random, dtype,
                       e.packed ? Dims{e.batch, length, heads * size} : Dims{e.batch, heads, length, size});
  };
  OpSample call;
  call.inputs = {tensor(e.heads, e.queries, e.size), tensor(e.kv_heads, e.keys, e.size),
                 tensor(e.kv_heads, e.keys, e.value_size)};
  call.inputs.resize(7);
  if (e.packed) call.attributes.set("q_num_heads", e.heads);
  if (e.packed) call.attributes.set("kv_num_heads", e.kv_heads);
  return call;
}

Extents draw_extents(Random& random) {
  Extents e;
  e.batch = draw(random, 1, 2);
  e.kv_heads = draw(random, 1, 2);
  e.heads = e.kv_heads * draw(random, 1, 3);
  e.queries = draw_one_of<int64_t>(random, {1, 5, 16, 17, 33, 70});
  e.keys = draw_one_of<int64_t>(random, {1, 15, 32, 33, 80});
  e.size = draw_one_of<int64_t>(random, {1, 7, 32, 64});
  e.value_size = draw_one_of<int64_t>(random, {1, 16, 20, 64});
  e.packed = draw_bool(random);
  return e;
}

// Everything that can be given beside q, k and v.
OpSample draw_call(Random& random) {
  const Extents e = draw_extents(random);
  OpSample call = make_call(random, e);
  int64_t past = 0;
  if (draw(random, 0, 3) == 0) {
    past = draw_one_of<int64_t>(random, {1, 16, 40});
    call.inputs[4] = draw_tensor(random, DType::f32, {e.batch, e.kv_heads, past, e.size});
    call.inputs[5] = draw_tensor(random, DType::f32, {e.batch, e.kv_heads, past, e.value_size});
    call.num_outputs = static_cast<int>(draw_one_of(random, {1, 3}));
  } else if (draw(random, 0, 3) == 0) {
    call.inputs[6] = draw_tensor(random, DType::i64, {e.batch}, 0, static_cast<double>(e.keys));
  }
  if (draw_bool(random)) {
    Dims mask{e.batch, e.heads, e.queries, past + e.keys};
    for (int64_t& extent : std::span(mask).first(3)) extent = draw_bool(random) ? extent : 1;
    if (draw(random, 0, 3) == 0) mask[3] = draw(random, 1, mask[3]);
    mask.erase(mask.begin(), mask.begin() + draw(random, 0, 3));
    call.inputs[3] =
        draw_bool(random) ? draw_tensor(random, DType::boolean, mask) : draw_tensor(random, DType::f32, mask);
  }
  call.attributes.set("is_causal", draw(random, 0, 1));
  call.attributes.set("softcap", draw_one_of(random, {0.0f, 0.0f, 1.5f}));
  call.attributes.set("left_window_size", draw_one_of<int64_t>(random, {-1, -1, 0, 9, int64_t{1} << 50}));
  call.attributes.set("right_window_size", draw_one_of<int64_t>(random, {-1, -1, 0, 3}));
  if (draw_bool(random)) call.attributes.set("scale", 0.5f);
  return call;
}

std::string compared(const OpSample& call, const FloatTolerance& tolerance = {}) {
  const TestGraph test = make_sample_graph(attention_def(), call);
  return difference_on_opencl(test.graph, test.inputs, tolerance);
}

TEST(OpenClAttention, OfRandomCallsMatchesTheReference) {
  AG_NEEDS_OPENCL();
  for (uint64_t seed = 0; seed < 24; ++seed) {
    Random random(seed);
    EXPECT_EQ(compared(draw_call(random)), "") << "seed " << seed;
  }
}

// Many groups: the largest tiles.
TEST(OpenClAttention, WithManyHeadsMatchesTheReference) {
  AG_NEEDS_OPENCL();
  Random random(1);
  OpSample call = make_call(random, {.batch = 4,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .queries = 70,
                                     .keys = 75,
                                     .size = 16,
                                     .value_size = 24,
                                     .packed = true});
  call.attributes.set("is_causal", int64_t{1});
  EXPECT_EQ(compared(call), "");
}

TEST(OpenClAttention, OfOtherDtypesMatchesTheReference) {
  AG_NEEDS_OPENCL();
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16}) {
    Random random(2);
    const OpSample call = make_call(random, {.queries = 18, .keys = 35, .size = 12, .value_size = 20}, dtype);
    const double unit = dtype == DType::f64 ? 1e-6 : dtype == DType::f16 ? 2e-3 : 2e-2;
    EXPECT_EQ(compared(call, {unit, unit}), "") << to_string(dtype);
  }
}

Tensor filled(const Dims& dims, float value) {
  Tensor tensor = Tensor::zeros(DType::f32, dims);
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), value);
  return tensor;
}

// Row by row: all keys hidden gives 0, also where keys and values are NaN; keys of minus infinity alone are no number.
TEST(OpenClAttention, KnowsRowsWithoutAnyKey) {
  AG_NEEDS_OPENCL();
  Random random(3);
  OpSample call = make_call(random, {.heads = 1, .kv_heads = 1, .queries = 4, .keys = 40});
  Tensor mask = Tensor::zeros(DType::f32, {4, 40});
  for (int64_t key = 0; key < 40; ++key) {
    mask.mutable_data<float>()[0 * 40 + key] = -kInf;
    mask.mutable_data<float>()[1 * 40 + key] = key == 39 ? 1.0F : -kInf;
    mask.mutable_data<float>()[2 * 40 + key] = -3e38F;
  }
  call.inputs[3] = mask;
  EXPECT_EQ(compared(call), "");
  OpSample hidden = make_call(random, {.heads = 1, .kv_heads = 1, .queries = 3, .keys = 20});
  hidden.inputs[3] = Tensor::of<bool>({1}, {false});  // covers one key: the others are hidden, too
  hidden.inputs[2] = filled({1, 1, 20, 8}, std::nanf(""));
  EXPECT_EQ(compared(hidden), "");
  OpSample low = make_call(random, {.heads = 1, .kv_heads = 1, .queries = 2, .keys = 3, .size = 1});
  low.inputs[0] = filled({1, 1, 2, 1}, 1);
  low.inputs[1] = filled({1, 1, 3, 1}, -kInf);
  EXPECT_EQ(compared(low), "");
}

TEST(OpenClAttention, FindsCountsThatAreOutOfRange) {
  AG_NEEDS_OPENCL();
  Random random(4);
  OpSample call = make_call(random, {.queries = 2, .keys = 5});
  call.inputs[6] = Tensor::vector({6});
  const TestGraph test = make_sample_graph(attention_def(), call, true);
  const std::string message = message_of<ValueError>([&] { compile(test.graph, on_opencl()).run(test.inputs); });
  EXPECT_EQ(message.find("[attention] nonpad_kv_seqlen: expected 0..5, got 6"), 0U) << message;
}

gpu::Emitted emitted(const OpSample& sample, gpu::Target target) {
  const KernelCase test(attention_def(), sample);
  return gpu::emit(test.call(), target);
}

TEST(GpuAttention, IsRefusedWhereATileDoesNotFit) {
  Random random(5);
  const OpSample large = make_call(random, {.queries = 2, .keys = 2, .size = 700});
  const std::string refusal = emitted(large, {}).refusal;
  EXPECT_NE(refusal.find("heads of 700 and 8 elements"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("of 32768"), std::string::npos) << refusal;
  OpSample scores = make_call(random, {});
  scores.num_outputs = 4;
  EXPECT_EQ(emitted(scores, {}).refusal, "scores as an output");
  EXPECT_EQ(emitted(make_call(random, {}), {.max_group = 128}).refusal, "groups of 256 items");
}

TEST(GpuAttention, KeepsItsSumsInRegisters) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  Random random(6);
  for (const int64_t size : {64, 80, 128, 256}) {
    OpSample call = make_call(
        random, {.batch = 2, .heads = 16, .kv_heads = 4, .queries = 256, .keys = 64, .size = size, .value_size = size});
    call.attributes.set("is_causal", int64_t{1});
    const gpu::Emitted text = emitted(call, {.dialect = gpu::Dialect::cuda, .local_bytes = 48 * 1024});
    ASSERT_EQ(text.refusal, "") << size;
    for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
      EXPECT_EQ(nvrtc.why_not(text.source, architecture), "") << size;
    }
  }
}

}  // namespace
}  // namespace autograph
