// The emitter in its other dialect: what is generated for the samples of all ops compiles as CUDA C++.
#include <gtest/gtest.h>

#include <set>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "gpu/nvrtc.h"
#include "support/run_kernel.h"

namespace autograph {
namespace {

std::vector<const OpDef*> emitted_ops() {
  std::set<const OpDef*> ops;
  for (const gpu::Emitter& emitter : gpu::emitters()) ops.insert(emitter.op);
  return {ops.begin(), ops.end()};
}

class CudaSource : public testing::TestWithParam<const OpDef*> {};

TEST_P(CudaSource, Compiles) {
  const Nvrtc& nvrtc = Nvrtc::of_process();
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc here";
  const OpDef& op = *GetParam();
  int compiled = 0;
  for (uint64_t seed = 0; seed < 20 && compiled < 2; ++seed) {
    Random random(seed);
    const KernelCase test(op, op.sample(random), {.constant_weights = true});
    const gpu::Emitted emitted = gpu::emit(test.call(), {.dialect = gpu::Dialect::cuda});
    if (!emitted.refusal.empty() || emitted.launches.empty()) continue;
    EXPECT_EQ(nvrtc.why_not(emitted.source, compiled == 0 ? "sm_80" : "sm_90"), "") << op.name << ", seed " << seed;
    ++compiled;
  }
  EXPECT_GT(compiled, 0) << op.name << " has an emitter that takes none of its samples";
}

INSTANTIATE_TEST_SUITE_P(All, CudaSource, testing::ValuesIn(emitted_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace autograph
