// Blocks that a thread keeps: where they lie, how many, and who may let go of them.
#include "tensor/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace autograph {
namespace {

TEST(BlockPool, BlocksAreAlignedAndDoNotMeet) {
  std::mt19937 random(3);
  struct Live {
    std::shared_ptr<void> block;
    size_t size;
    unsigned char mark;
  };
  std::vector<Live> live;
  const auto check = [](const Live& one) {
    const auto* bytes = static_cast<const unsigned char*>(one.block.get());
    for (size_t i = 0; i < one.size; ++i) {
      if (bytes[i] != one.mark) return false;
    }
    return true;
  };
  for (int turn = 0; turn < 3000; ++turn) {
    if (live.size() > 40 || (!live.empty() && random() % 3 == 0)) {
      const size_t at = random() % live.size();
      EXPECT_TRUE(check(live[at])) << live[at].size;
      live.erase(live.begin() + static_cast<int64_t>(at));
      continue;
    }
    const size_t size = random() % (size_t{1} << (random() % 17));
    Live one{allocate_pooled(size), size, static_cast<unsigned char>(turn)};
    EXPECT_EQ(reinterpret_cast<uintptr_t>(one.block.get()) % 64, 0U);
    std::memset(one.block.get(), one.mark, size);
    live.push_back(std::move(one));
  }
  for (const Live& one : live) EXPECT_TRUE(check(one));
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(BlockPool, WhatWasFreedIsTakenNext) {
  std::shared_ptr<void> first = allocate_pooled(16384);
  void* const address = first.get();
  const size_t before = kept_bytes_of_thread();
  const std::weak_ptr<void> watcher = first;
  first.reset();
  EXPECT_TRUE(watcher.expired());
  // The counts lie beside the elements: while somebody looks at them the block stays.
  EXPECT_EQ(kept_bytes_of_thread(), before);
  const_cast<std::weak_ptr<void>&>(watcher).reset();
  EXPECT_GT(kept_bytes_of_thread(), before);
  EXPECT_EQ(allocate_pooled(16000).get(), address);  // of the same class
}

TEST(BlockPool, AThreadKeepsNoMoreThanItsShare) {
  std::vector<std::shared_ptr<void>> blocks;
  for (size_t bytes = 0; bytes < 3 * kMaxKeptBytes; bytes += kMaxPooledBytes / 2) {
    blocks.push_back(allocate_pooled(kMaxPooledBytes / 2));
  }
  for (std::shared_ptr<void>& block : blocks) {
    block.reset();
    EXPECT_LE(kept_bytes_of_thread(), kMaxKeptBytes);
  }
  EXPECT_GT(kept_bytes_of_thread(), 0U);
}
#endif

TEST(BlockPool, AnyThreadMayLetGo) {
  std::vector<std::shared_ptr<void>> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(allocate_pooled(1000));
  std::thread([given = std::move(blocks)]() mutable {
    given.clear();
    EXPECT_EQ(kept_bytes_of_thread() == 0, kept_bytes_of_thread() < 100 * 1000);
  }).join();
  EXPECT_NE(allocate_pooled(1000).get(), nullptr);
}

}  // namespace
}  // namespace autograph
