// Kernels made for three threads that may use fewer: the same numbers, and no more threads than allowed.
#include "backends/cpu/threads/thread_limit.h"
#include "autograph/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"

namespace autograph {
namespace {

constexpr int kThreads = 3;

// Work on a new thread, which has no team yet, that may use `limit` threads in kernels made for three.
template <class Work>
void limited_to(int limit, const Work& work) {
  std::thread([&] {
    set_cpu_threads(kThreads);
    limit_cpu_threads(limit);
    work();
  }).join();
}

// Threads of this process.
std::ptrdiff_t count_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

// Are there no more threads than `most`? One that ends is counted for a moment longer; a team that was started stays.
bool has_at_most(std::ptrdiff_t most) {
  for (int wait_ms = 0; wait_ms < 500; ++wait_ms) {
    if (count_threads() <= most) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// What each plain kernel for the op gives with `limit` threads of three.
std::vector<Datum> outputs_of(const OpDef& op, const OpSample& sample, int limit) {
  std::vector<Datum> outputs;
  limited_to(limit, [&] {
    const KernelCase test(op, sample, {kThreads, true});
    const std::ptrdiff_t before = count_threads();
    for (const KernelDef& def : cpu_kernels()) {
      if (def.op != op.name || def.variants) continue;
      KernelRun run(def, test);
      if (!run.refusal().empty()) continue;
      run.run();
      for (const Tensor& output : run.outputs()) outputs.emplace_back(output);
    }
    EXPECT_TRUE(has_at_most(before + std::min(limit, kThreads) - 1)) << count_threads();
  });
  return outputs;
}

void expect_equal(const OpDef& op, const OpSample& sample) {
  SCOPED_TRACE(std::string(op.name));
  const std::vector<Datum> expected = outputs_of(op, sample, kNoThreadLimit);
  EXPECT_FALSE(expected.empty());
  for (const int limit : {1, 2, 3}) {
    EXPECT_EQ(difference(outputs_of(op, sample, limit), expected, {0, 0}), "") << limit;
  }
}

TEST(ThreadLimit, OwnLoopsGiveTheSameBits) {
  Random random(4);
  const auto floats = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims)); };
  expect_equal(softmax_def(), {.inputs = {floats({301, 407})}});
  expect_equal(layer_normalization_grad_def(),
               {.inputs = {floats({301, 407}), floats({407}), floats({301, 407})}, .num_outputs = 3});
  expect_equal(reduce_mean_def(), {.inputs = {floats({70, 110, 33}), Tensor::vector(std::vector<int64_t>{0, 2})}});
  expect_equal(gather_def(), {.inputs = {floats({500, 400}), draw_tensor(random, DType::i64, {99}, 0, 399)},
                              .attributes = {{"axis", int64_t{1}}}});
  // Its threads stay together from step to step.
  const int64_t hidden = 96;
  expect_equal(*find_op("lstm"),
               {.inputs = {floats({9, 2, 64}), floats({1, 4 * hidden, 64}), floats({1, 4 * hidden, hidden})},
                .attributes = {{"hidden_size", hidden}},
                .num_outputs = 3});
}

// They add up what each thread gives.
TEST(ThreadLimit, GlobalPoolsGiveTheSameNumbers) {
  Random random(5);
  const OpSample sample{.inputs = {draw_tensor(random, DType::f32, {1, 64, 61, 67})}};
  for (const char* name : {"global_average_pool", "global_max_pool"}) {
    const KernelDef def = cpu_kernel("cpu.global_pool", name);
    for (const int limit : {1, 2}) {
      limited_to(limit, [&] { expect_every_variant(def, *find_op(name), sample, kThreads, {1e-5, 1e-5}); });
    }
  }
}

OpSample conv_sample(Random& random, int64_t channels, int64_t outputs, int64_t kernel, int64_t group) {
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, {1, channels, 14, 15}),
                   draw_tensor(random, DType::f32, {outputs, channels / group, kernel, kernel}),
                   draw_tensor(random, DType::f32, {outputs})};
  const int64_t pad = kernel / 2;
  sample.attributes = {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}, {"group", group}};
  return sample;
}

// Its tiles of 4 x 4 lose more digits than sums in another order, and are among the implementations.
constexpr FloatTolerance kWinograd{1e-4, 1e-3};

// Every implementation of oneDNN, in every layout, with smaller teams than it was made for. A team that is not allowed
// would start threads: the thread that runs the kernels has none.
void expect_limited(const std::string& name, const OpDef& op, const OpSample& sample) {
  const KernelDef def = cpu_kernel(name, op.name);
  if (def.name.empty()) return;  // a build without oneDNN
  for (const int limit : {1, 2}) {
    SCOPED_TRACE(limit);
    limited_to(limit, [&] {
      const std::ptrdiff_t before = count_threads();
      expect_every_variant(def, op, sample, kThreads, kWinograd);
      EXPECT_TRUE(has_at_most(before + limit - 1)) << count_threads();
    });
  }
}

TEST(ThreadLimit, Convolutions) {
  Random random(1);
  for (const int64_t kernel : {1, 3}) {
    for (const int64_t channels : {16, 32, 48, 67}) {
      expect_limited("cpu.conv_onednn", conv_def(), conv_sample(random, channels, 64, kernel, 1));
    }
  }
  expect_limited("cpu.conv_onednn", conv_def(), conv_sample(random, 3, 32, 3, 1));
  expect_limited("cpu.conv_onednn", conv_def(), conv_sample(random, 32, 32, 3, 32));
  expect_limited("cpu.conv_onednn", conv_def(), conv_sample(random, 32, 64, 3, 2));
}

// With few places left threads share out channels, and oneDNN lays weights out by how many threads there are.
TEST(ThreadLimit, StridedConvolutions) {
  Random random(11);
  for (const int64_t channels : {16, 67, 128}) {
    for (const int64_t outputs : {32, 64, 128}) {
      OpSample sample = conv_sample(random, channels, outputs, 3, 1);
      sample.attributes.set("strides", Dims{2, 2});
      expect_limited("cpu.conv_onednn", conv_def(), sample);
    }
  }
}

OpSample signal_sample(Random& random, int64_t extent, int64_t stride) {
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, {1, 64, extent}),
                             draw_tensor(random, DType::f32, {128, 64, 3}), draw_tensor(random, DType::f32, {128})}};
  sample.attributes = {{"pads", Dims{1, 1}}, {"strides", Dims{stride}}};
  return sample;
}

TEST(ThreadLimit, ConvolutionsOfSignals) {
  Random random(12);
  for (const int64_t extent : {2, 4, 40}) {
    for (const int64_t stride : {1, 2}) {
      expect_limited("cpu.conv_onednn", conv_def(), signal_sample(random, extent, stride));
    }
  }
}

// A smaller team may read its own copy of the weights.
TEST(ThreadLimit, PacksRenewedWeights) {
  const KernelDef def = cpu_kernel("cpu.conv_onednn", "conv");
  if (def.name.empty()) return;  // a build without oneDNN
  Random random(13);
  const OpSample sample = signal_sample(random, 4, 2);
  limited_to(1, [&] { expect_every_variant_renews(def, conv_def(), sample, kThreads); });
}

TEST(ThreadLimit, PacksWeightsThatChangeFromRunToRun) {
  const KernelDef def = cpu_kernel("cpu.conv_onednn", "conv");
  if (def.name.empty()) return;  // a build without oneDNN
  Random random(14);
  const OpSample sample = signal_sample(random, 4, 2);
  limited_to(1, [&] {
    for (const KernelVariant& variant : def.variants(KernelCase(conv_def(), sample, {kThreads}).call())) {
      if (!variant.is_row_major()) continue;
      SCOPED_TRACE(variant.name);
      const KernelCase test(conv_def(), sample, {.threads = kThreads, .variant = &variant});
      KernelRun run(def, test);
      ASSERT_EQ(run.refusal(), "");
      for (int turn = 0; turn < 3; ++turn) {
        run.run();
        const std::vector<Tensor> expected = test.reference(), actual = run.outputs();
        EXPECT_EQ(difference({actual.begin(), actual.end()}, {expected.begin(), expected.end()}, kWinograd), "");
        const TensorView& weights = test.inputs()[1];
        std::reverse(weights.mutable_data<float>(), weights.mutable_data<float>() + weights.num_elements());
        std::rotate(weights.mutable_data<float>(), weights.mutable_data<float>() + 100,
                    weights.mutable_data<float>() + weights.num_elements());
      }
    }
  });
}

// Threads of a backward convolution wait for each other where they add up what each has of the weights.
TEST(ThreadLimit, BackwardConvolutions) {
  Random random(9);
  for (const int64_t kernel : {1, 3}) {
    for (const int64_t channels : {16, 32}) {
      const OpSample forward = conv_sample(random, channels, 64, kernel, 1);
      const Dims x = forward.inputs[0].tensor().dims(), y{x[0], 64, x[2], x[3]};
      OpSample weights{.inputs = {forward.inputs[0], draw_tensor(random, DType::f32, y, -1, 1)},
                       .attributes = forward.attributes};
      weights.attributes.set("kernel_shape", Dims{kernel, kernel});
      expect_limited("cpu.conv_grad_weight_onednn", conv_grad_weight_def(), weights);
      OpSample data{.inputs = {weights.inputs[1], forward.inputs[1]}, .attributes = forward.attributes};
      expect_limited("cpu.conv_transpose_onednn", conv_transpose_def(), data);
    }
  }
}

// Columns are shared out where there are enough of them.
TEST(ThreadLimit, TapProducts) {
  Random random(10);
  for (const int64_t extent : {30, 200}) {
    OpSample sample{
        .inputs = {draw_tensor(random, DType::f32, {1, 64, extent}), draw_tensor(random, DType::f32, {64, 48, 16})}};
    sample.attributes = {{"strides", Dims{8}}, {"pads", Dims{4, 4}}};
    expect_limited("cpu.tap_conv_simd", conv_transpose_def(), sample);
  }
}

TEST(ThreadLimit, Products) {
  Random random(2);
  for (const int64_t rows : {1, 7, 128}) {
    const OpSample sample{{draw_tensor(random, DType::f32, {rows, 96}), draw_tensor(random, DType::f32, {96, 130})}};
    expect_limited("cpu.matmul_onednn", matmul_def(), sample);
  }
  // Long sums, which threads may share.
  expect_limited("cpu.matmul_onednn", matmul_def(),
                 {{draw_tensor(random, DType::f32, {4, 4096}), draw_tensor(random, DType::f32, {4096, 16})}});
}

TEST(ThreadLimit, PoolsAndNormalizations) {
  Random random(3);
  const OpSample pool{{draw_tensor(random, DType::f32, {2, 32, 17, 19})},
                      {{"kernel_shape", std::vector<int64_t>{3, 3}}, {"strides", std::vector<int64_t>{2, 2}}}};
  expect_limited("cpu.max_pool_onednn", max_pool_def(), pool);
  expect_limited("cpu.average_pool_onednn", average_pool_def(), pool);
  expect_limited("cpu.lrn_simd", *find_op("lrn"),
                 {{draw_tensor(random, DType::f32, {2, 32, 9, 11})}, {{"size", int64_t{5}}}});
}

}  // namespace
}  // namespace autograph
