// What oneDNN's iterator gives depends on what was made before: the implementations that are offered must not.
#include <gtest/gtest.h>

#include <set>

#include "autograph/devices.h"
#include "backends/cpu/cpu_kernels.h"
#include "support/graphs/epilogue_case.h"

namespace autograph {
namespace {

std::vector<std::string> names_of_candidates(const FusedCase& fused) {
  std::vector<std::string> names;
  for (const KernelCandidate& candidate : get_device("cpu").catalog().candidates(fused.call(1)).candidates)
    names.push_back(candidate.name());
  return names;
}

TEST(Implementations, AreTheSameWhateverWasMadeBefore) {
  if (!cpu_reorder()) GTEST_SKIP() << "a build without oneDNN";
  for (const ProductKind& product : product_kinds()) {
    const EpilogueCase test(product, 24, 5, [](Var x, OperandMaker&) { return x; });
    const FusedCase fused(test);
    const std::vector<std::string> before = names_of_candidates(fused);
    EXPECT_EQ(std::set<std::string>(before.begin(), before.end()).size(), before.size()) << product.name;
    const ExpectedElements expected = expected_elements(test, {.product = 4e-5F});
    // The second time everything is in oneDNN's cache.
    for (int turn = 0; turn < 2; ++turn) {
      for (const KernelCandidate& candidate : get_device("cpu").catalog().candidates(fused.call(1)).candidates) {
        std::string complaint;
        const Tensor actual = fused.run(get_device("cpu").catalog(), candidate, 1, false, complaint);
        EXPECT_EQ(complaint + difference(actual, expected), "") << product.name << " " << candidate.name();
      }
      EXPECT_EQ(names_of_candidates(fused), before) << product.name;
    }
  }
}

}  // namespace
}  // namespace autograph
