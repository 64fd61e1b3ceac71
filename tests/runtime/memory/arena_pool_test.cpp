#include "runtime/memory/arena_pool.h"

#include <gtest/gtest.h>

#include <utility>

namespace autograph {
namespace {

TEST(ArenaPool, GivesTheSameMemoryAgain) {
  ArenaPool pool;
  Tensor arena = pool.take(1000, nullptr);
  const void* address = arena.raw();
  pool.give_back(std::move(arena));
  EXPECT_EQ(pool.take(200, nullptr).raw(), address);
}

TEST(ArenaPool, GrowsInPlaceOfTheLargestAndAheadOfNeed) {
  ArenaPool pool;
  pool.give_back(pool.take(1000, nullptr));
  pool.give_back(pool.take(3000, nullptr));
  const Tensor grown = pool.take(11000, nullptr);
  EXPECT_EQ(grown.size_bytes(), 12000U);
  EXPECT_EQ(pool.take(1000, nullptr).size_bytes(), 1000U) << "the largest is gone";
}

TEST(ArenaPool, RunsAtOneTimeHaveArenasOfTheirOwn) {
  ArenaPool pool;
  Tensor large = pool.take(4000, nullptr);
  Tensor small = pool.take(100, nullptr);
  const void *large_address = large.raw(), *small_address = small.raw();
  EXPECT_NE(large_address, small_address);
  pool.give_back(std::move(large));
  pool.give_back(std::move(small));
  // The last one, though it is larger than it need be; without it the smallest that is large enough.
  Tensor again = pool.take(100, large_address);
  EXPECT_EQ(again.raw(), large_address);
  pool.give_back(std::move(again));
  EXPECT_EQ(pool.take(100, nullptr).raw(), small_address);
  EXPECT_EQ(pool.take(101, nullptr).raw(), large_address);
}

}  // namespace
}  // namespace autograph
