#include "schedule/memory/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "autograph/error.h"
#include "base/aligned_size.h"

namespace autograph {
namespace {

bool alive_together(const Lifetime& a, const Lifetime& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

// Every pair that is alive together lies apart, and everything lies below the peak.
void expect_valid(const std::vector<Lifetime>& tensors, const MemoryPlan& plan, const AliveTogether& are_alive) {
  ASSERT_EQ(plan.offsets.size(), tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % kMemoryAlignment, 0u);
    EXPECT_LE(plan.offsets[i] + tensors[i].bytes, plan.peak_bytes);
    for (size_t j = 0; j < i; ++j) {
      if (!are_alive(i, j) || tensors[i].bytes == 0 || tensors[j].bytes == 0) continue;
      const bool apart = plan.offsets[i] + tensors[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + tensors[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(apart) << i << " and " << j << " overlap";
    }
  }
}

void expect_valid(const std::vector<Lifetime>& tensors, const MemoryPlan& plan) {
  expect_valid(tensors, plan, [&](size_t i, size_t j) { return alive_together(tensors[i], tensors[j]); });
}

TEST(MemoryPlan, ChainAlternatesBetweenTwoBuffers) {
  std::vector<Lifetime> chain;
  for (uint32_t i = 0; i < 10; ++i) chain.push_back({1024, i, i + 1});
  const MemoryPlan plan = plan_memory(chain);
  expect_valid(chain, plan);
  EXPECT_EQ(plan.peak_bytes, 2048u);
  EXPECT_EQ(plan.sum_bytes, 10240u);
  EXPECT_EQ(plan.lower_bound_bytes, 2048u);
}

TEST(MemoryPlan, TakesTheBlockThatWasFreedLast) {
  // 0 and 1 are freed after steps 1 and 2; 3 fits into both and must land in 1.
  const std::vector<Lifetime> tensors{{640, 0, 1}, {640, 0, 2}, {64, 0, 9}, {640, 3, 4}};
  const MemoryPlan plan = plan_memory(tensors);
  expect_valid(tensors, plan);
  EXPECT_EQ(plan.offsets[3], plan.offsets[1]);
}

TEST(MemoryPlan, RandomLifetimesNeverOverlapAndPeakIsBetweenBounds) {
  std::mt19937_64 random(7);
  const auto draw = [&](uint64_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> tensors(1 + draw(60));
    for (Lifetime& t : tensors) {
      t.bytes = draw(4) == 0 ? 0 : draw(5000);
      t.first_step = draw(40);
      t.last_step = t.first_step + draw(10);
    }
    const MemoryPlan plan = plan_memory(tensors);
    expect_valid(tensors, plan);
    EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);
    EXPECT_LE(plan.peak_bytes, plan.sum_bytes);
  }
}

// As pieces that are joined in the end: each question walked over all of them.
TEST(MemoryPlan, ManyTensorsThatWaitForOneNodeLieSideBySide) {
  constexpr uint32_t kCount = 50'000;
  std::vector<Lifetime> tensors;
  for (uint32_t i = 0; i < kCount; ++i) {
    tensors.push_back({64, 2 * i, 2 * i + 1});
    tensors.push_back({64, 2 * i + 1, 2 * kCount});
  }
  const MemoryPlan plan = plan_memory(tensors);
  EXPECT_EQ(plan.peak_bytes, plan.lower_bound_bytes);
  std::vector<size_t> waiting;
  for (size_t i = 1; i < tensors.size(); i += 2) waiting.push_back(plan.offsets[i]);
  std::sort(waiting.begin(), waiting.end());
  EXPECT_EQ(std::adjacent_find(waiting.begin(), waiting.end()), waiting.end()) << "two lie at the same place";
}

TEST(MemoryPlan, PartialOrderSharesOnlyWhereTheRelationAllows) {
  // Two streams, 0 -> 1 and 2 -> 3; nothing orders one stream against the other.
  const std::vector<size_t> bytes{128, 128, 256, 256};
  const MemoryPlan plan = plan_memory(bytes, [](size_t a, size_t b) { return (a < 2) != (b < 2); });
  EXPECT_EQ(plan.offsets[0], plan.offsets[1]);
  EXPECT_EQ(plan.offsets[2], plan.offsets[3]);
  EXPECT_NE(plan.offsets[0], plan.offsets[2]);
  EXPECT_EQ(plan.peak_bytes, 384u);
}

TEST(MemoryPlan, LifetimesInAPartialOrderNeverOverlap) {
  std::mt19937_64 random(8);
  const auto draw = [&](uint64_t n) { return static_cast<uint32_t>(random() % n); };
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> tensors(1 + draw(60));
    for (Lifetime& t : tensors) {
      t.bytes = draw(4) == 0 ? 0 : draw(5000);
      t.first_step = draw(40);
      t.last_step = t.first_step + draw(10);
    }
    // Tensors of two streams are alive together whenever their steps may run at the same time: 20 steps a stage.
    const auto together = [&](size_t i, size_t j) {
      const bool same_stage = tensors[i].first_step / 20 == tensors[j].first_step / 20;
      return alive_together(tensors[i], tensors[j]) || (same_stage && i % 2 != j % 2);
    };
    const MemoryPlan plan = plan_memory(tensors, together);
    expect_valid(tensors, plan, together);
    EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);
    EXPECT_LE(plan.peak_bytes, plan.sum_bytes);
  }
}

// Two streams of `num_steps` each that meet every 16 steps; tensors live for a few steps of their stream.
struct MeetingStreams {
  explicit MeetingStreams(uint32_t num_steps, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (uint32_t step = 0; step < 2 * num_steps; ++step) {
      const auto more = 2 * static_cast<uint32_t>(random() % 5);
      tensors.push_back({64 * (1 + random() % 40), step, std::min(2 * num_steps - 1, step + more)});
    }
  }
  // Even steps are those of one stream, odd ones those of the other.
  static bool precedes(uint32_t a, uint32_t b) { return a / 16 < b / 16 || (a % 2 == b % 2 && a < b); }
  bool together(size_t a, size_t b) const {
    return !precedes(tensors[a].last_step, tensors[b].first_step) &&
           !precedes(tensors[b].last_step, tensors[a].first_step);
  }
  bool is_over(size_t a, uint32_t step) const {
    return precedes(tensors[a].last_step, step) && precedes(tensors[a].last_step, step + 1);
  }

  std::vector<Lifetime> tensors;
};

TEST(MemoryPlan, WhatIsOverForGoodChangesNothing) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const MeetingStreams streams(600, seed);
    const auto together = [&](size_t a, size_t b) { return streams.together(a, b); };
    const MemoryPlan plain = plan_memory(streams.tensors, together);
    const MemoryPlan pruned =
        plan_memory(streams.tensors, together, [&](size_t a, uint32_t step) { return streams.is_over(a, step); });
    EXPECT_EQ(pruned.offsets, plain.offsets) << "seed " << seed;
    EXPECT_EQ(pruned.peak_bytes, plain.peak_bytes) << "seed " << seed;
  }
}

// Asked about each pair, a plan of 20,000 tensors took 200 million answers.
TEST(MemoryPlan, WorkGrowsWithTheTensorsWhereTheyAreOverSoon) {
  const MeetingStreams streams(10'000, 3);
  size_t num_asked = 0;
  const auto together = [&](size_t a, size_t b) {
    ++num_asked;
    return streams.together(a, b);
  };
  const MemoryPlan plan =
      plan_memory(streams.tensors, together, [&](size_t a, uint32_t step) { return streams.is_over(a, step); });
  EXPECT_LE(plan.peak_bytes, plan.sum_bytes);
  EXPECT_LT(num_asked, 200 * streams.tensors.size());
}

TEST(MemoryPlan, APartialOrderThatIsTotalTakesTheBlockThatWasFreedLast) {
  const std::vector<Lifetime> tensors{{640, 0, 1}, {640, 0, 2}, {64, 0, 9}, {640, 3, 4}};
  const MemoryPlan plan =
      plan_memory(tensors, [&](size_t i, size_t j) { return alive_together(tensors[i], tensors[j]); });
  EXPECT_EQ(plan.offsets[3], plan.offsets[1]);
}

TEST(MemoryPlan, AbsurdSizesAreABudgetError) {
  EXPECT_THROW(plan_memory(std::vector<Lifetime>{{static_cast<size_t>(-8), 0, 0}}), BudgetError);
  const size_t half = size_t{1} << 63;
  EXPECT_THROW(plan_memory(std::vector<Lifetime>{{half, 0, 0}, {half, 0, 0}}), BudgetError);
}

}  // namespace
}  // namespace autograph
