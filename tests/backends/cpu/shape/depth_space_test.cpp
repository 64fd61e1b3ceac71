// depth_to_space and space_to_depth on the CPU against the reference.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

TEST(DepthSpace, MovesBlocksOfEverySize) {
  Random random(1);
  for (const KernelDef& def : depth_space_kernels()) {
    const bool to_space = def.op == "depth_to_space";
    for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
      for (const int64_t block : {1, 2, 3, 4}) {
        for (const std::string mode : {"DCR", "CRD"}) {
          const Dims dims = to_space ? Dims{2, 5 * block * block, 31, 17} : Dims{2, 5, 31 * block, 17 * block};
          for (const int threads : {1, 2}) {
            const KernelCase test(to_space ? depth_to_space_def() : space_to_depth_def(),
                                  {{draw_tensor(random, dtype, dims, 0, 100)}, {{"blocksize", block}, {"mode", mode}}},
                                  {threads});
            KernelRun run(def, test);
            ASSERT_EQ(run.refusal(), "");
            run.run();
            EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {0, 0}), "");
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace autograph
