// Which of oneDNN's convolutions is expected to be the fastest.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/random.h"
#include "ops/defs.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

// gemm goes through the channels one by one: what follows a depthwise convolution makes it no cheaper.
TEST(ConvCost, DepthwiseByGemmIsSlowWhateverFollows) {
  Random random(1);
  int seen = 0;
  const OpSample conv{
      .inputs = {draw_tensor(random, DType::f32, {1, 96, 28, 28}, -1, 1),
                 draw_tensor(random, DType::f32, {96, 1, 3, 3}, -1, 1), draw_tensor(random, DType::f32, {96}, -1, 1)},
      .attributes = {{"group", int64_t{96}}, {"pads", std::vector<int64_t>(4, 1)}}};
  for (int64_t epilogue = 0; epilogue < kNumEpilogues; ++epilogue) {
    SCOPED_TRACE(epilogue);
    const KernelCase test(fused_def(), with_epilogue(random, conv, epilogue),
                          {.threads = 2, .constant_weights = true, .first_unknown = conv.inputs.size()});
    const KernelDef def = cpu_kernel("cpu.conv_onednn", "fused");
    if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
    if (!def.why_not(test.call()).empty()) continue;
    const std::vector<KernelVariant> variants = def.variants(test.call());
    const auto is_gemm = [](const KernelVariant& variant) { return variant.name.find("gemm") != std::string::npos; };
    const auto least = [&](bool of_gemm) {
      double us = 1e9;
      for (const KernelVariant& variant : variants)
        us = is_gemm(variant) == of_gemm ? std::min(us, variant.cost_us) : us;
      return us;
    };
    if (std::none_of(variants.begin(), variants.end(), is_gemm)) continue;
    EXPECT_GT(least(true), 5 * least(false));
    ++seen;
  }
  EXPECT_GT(seen, 5);
}

}  // namespace
}  // namespace autograph
