// The emitter in its other dialect: what is generated for the samples of all ops compiles as CUDA C++, and no kernel
// spills registers to memory.
#include <gtest/gtest.h>

#include <set>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "gpu/nvrtc.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

std::vector<const OpDef*> emitted_ops() {
  std::set<const OpDef*> ops;
  for (const gpu::Emitter& emitter : gpu::emitters()) ops.insert(emitter.op);
  return {ops.begin(), ops.end()};
}

class CudaSources : public testing::TestWithParam<const OpDef*> {};

// That spills would be seen: 512 sums that all live at once.
TEST(CudaSource, SpillsAreFound) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  std::string source = "extern \"C\" __global__ void __launch_bounds__(1024) kernel0(float* x) {\n";
  for (int k = 0; k < 512; ++k) source += "float a" + std::to_string(k) + " = x[" + std::to_string(k) + "];\n";
  source += "__syncthreads();\n";
  for (int k = 0; k < 512; ++k) source += "x[" + std::to_string(511 - k) + "] = a" + std::to_string(k) + " * 2;\n";
  EXPECT_NE(nvrtc.why_not(source + "}\n", "sm_90").find("spill"), std::string::npos);
}

// 24 x 24 pixels become 4096 x 4096: a table of two neighbours and their weights for each row and each column.
KernelCase large_resize() {
  OpSample sample;
  Random random(1);
  sample.inputs = {draw_tensor(random, DType::f32, {1, 1, 24, 24}), Datum(),
                   Tensor::of<float>({4}, {1, 1, 4096.0F / 24, 4096.0F / 24})};
  sample.attributes = {{"mode", std::string("linear")}};
  return {resize_def(), sample, {.constant_weights = true}};
}

TEST(CudaSource, HasRoomForTheTablesOfLargeImages) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  const KernelCase test = large_resize();
  const gpu::Emitted emitted = gpu::emit(test.call(), {.dialect = gpu::Dialect::cuda});
  ASSERT_EQ(emitted.refusal, "");
  EXPECT_EQ(nvrtc.why_not(emitted.source, "sm_90").substr(0, 2000), "");
}

// In several launches, which samples have no need of.
TEST(CudaSource, SortsAndScansLongRows) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  Random random(1);
  const Tensor x = draw_tensor(random, DType::f16, {2, 20000});
  const OpSample sort{.inputs = {x, Tensor::vector({20000})}, .num_outputs = 2};
  const OpSample scan{.inputs = {x, Tensor::scalar(int64_t{1})}};
  for (const KernelCase& test : {KernelCase(top_k_def(), sort, {.constant_weights = true}),
                                 KernelCase(cum_sum_def(), scan, {.constant_weights = true})}) {
    const gpu::Emitted emitted = gpu::emit(test.call(), {.dialect = gpu::Dialect::cuda});
    ASSERT_GT(emitted.launches.size(), 1U) << emitted.refusal;
    for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
      EXPECT_EQ(nvrtc.why_not(emitted.source, architecture), "") << architecture;
    }
  }
}

// Forms that samples are too small for.
std::vector<KernelCase> large_cases() {
  Random random(2);
  std::vector<KernelCase> cases;
  cases.emplace_back(det_def(), OpSample{.inputs = {draw_tensor(random, DType::f32, {2, 20, 20})}});
  const OpSample lines{.inputs = {draw_tensor(random, DType::f32, {2, 400, 2})}};
  cases.emplace_back(dft_def(), lines);
  OpSample recurrence{
      .inputs = {}, .attributes = {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}}, .num_outputs = 2};
  for (const int64_t width : {1024, 512, 512, 0, 512, 2}) {
    recurrence.inputs.emplace_back(width == 0 ? Datum() : draw_tensor(random, DType::f16, {1, 3, width}));
  }
  cases.emplace_back(linear_attention_def(), recurrence);
  return cases;
}

TEST(CudaSource, CompilesForLargeTensors) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  for (const KernelCase& test : large_cases()) {
    const gpu::Emitted emitted = gpu::emit(test.call(), {.dialect = gpu::Dialect::cuda});
    ASSERT_EQ(emitted.refusal, "");
    for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
      EXPECT_EQ(nvrtc.why_not(emitted.source, architecture), "") << test.call().op.name << ", " << architecture;
    }
  }
}

// There tables lie in constant memory, of which no device need have more.
TEST(OpenClSource, RefusesTablesThatSomeDevicesHaveNoRoomFor) {
  const KernelCase test = large_resize();
  const std::string refusal = gpu::emit(test.call(), {.dialect = gpu::Dialect::opencl}).refusal;
  EXPECT_EQ(refusal, "tables of 131072 bytes, of 65536 that every device has");
}

TEST_P(CudaSources, Compiles) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  const OpDef& op = *GetParam();
  int compiled = 0;
  for (uint64_t seed = 0; seed < 20 && compiled < 2; ++seed) {
    Random random(seed);
    const KernelCase test(op, op.sample(random), {.constant_weights = true});
    const gpu::Emitted emitted = gpu::emit(test.call(), {.dialect = gpu::Dialect::cuda});
    if (!emitted.refusal.empty() || emitted.launches.empty()) continue;
    for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
      const bool is_wanted = compiled == 0 || architecture == std::string_view("sm_90");
      if (!is_wanted) continue;
      EXPECT_EQ(nvrtc.why_not(emitted.source, architecture), "") << op.name << ", seed " << seed;
    }
    for (size_t other = 1; other < emitted.alternatives_us.size(); ++other) {
      const gpu::Emitted cut = gpu::emit(test.call(), {.dialect = gpu::Dialect::cuda, .alternative = other});
      EXPECT_EQ(nvrtc.why_not(cut.source, "sm_90"), "") << op.name << ", seed " << seed << ", alternative " << other;
    }
    ++compiled;
  }
  EXPECT_GT(compiled, 0) << op.name << " has an emitter that takes none of its samples";
}

INSTANTIATE_TEST_SUITE_P(All, CudaSources, testing::ValuesIn(emitted_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace autograph
