#include "device/thread_steps.h"

#include <gtest/gtest.h>

#include <vector>

namespace autograph {
namespace {

TEST(ThreadSteps, AreFourToAPowerOfTwo) {
  std::vector<int> steps;
  for (int threads = 40; threads > 0; threads = steps.back() - 1) steps.push_back(thread_step_at_most(threads));
  EXPECT_EQ(steps, (std::vector<int>{40, 32, 28, 24, 20, 16, 14, 12, 10, 8, 7, 6, 5, 4, 3, 2, 1}));
  EXPECT_EQ(thread_step_at_most(47), 40);
  EXPECT_EQ(thread_step_at_most(0), 1);
}

}  // namespace
}  // namespace autograph
