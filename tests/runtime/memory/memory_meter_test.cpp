#include "runtime/memory/memory_meter.h"

#include <gtest/gtest.h>

#include <limits>

namespace autograph {
namespace {

// Plans of small tensors, one for each shape and each eager op, read no files of the system.
TEST(AvailableMemory, IsAskedForWhatMightNotFit) {
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  EXPECT_EQ(available_memory_bytes(size_t{1} << 20), kAny);
  EXPECT_LT(available_memory_bytes(size_t{1} << 30), kAny);
  EXPECT_LT(available_memory_bytes(), kAny);
}

}  // namespace
}  // namespace autograph
