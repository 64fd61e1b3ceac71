// The kernel of philox gives the very numbers of the reference on any number of threads.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

TEST(PhiloxKernel, GivesTheNumbersOfTheReferenceOnAnyThreads) {
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    OpSample sample = philox_def().sample(random);
    // From a part of a block to what is worth several threads, parts of blocks and odd pairs at the end.
    const int64_t count = draw(random, 1, i % 2 == 0 ? 50 : 40000);
    sample.inputs[0] = Tensor::vector({count});
    const KernelCase test(philox_def(), sample, {1 + i % 5});
    KernelRun run(philox_kernel(), test);
    ASSERT_EQ(run.refusal(), "");
    run.run();
    EXPECT_EQ(difference(as_datums(run.outputs()), as_datums(test.reference()), {0, 0}), "") << count;
  }
}

}  // namespace
}  // namespace autograph
