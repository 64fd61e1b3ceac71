#include "report/chrome_trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace autograph {
namespace {

TEST(ChromeTrace, IsJsonWithOneCompleteEventPerStepAndNamedTracks) {
  const std::vector<StepProfile> steps{{"a \"quoted\"\n", "relu", "cpu.elementwise", 1.5, 2.25, 0, "", 0, 0, 0},
                                       {"b", "conv", "reference", 4, 8, 1, "blocked16 -> row_major", 16000, 800, 1}};
  const auto trace = nlohmann::json::parse(chrome_trace(steps, "model"));
  const auto& events = trace.at("traceEvents");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0].at("args").at("name"), "model");
  EXPECT_EQ(events[2].at("args").at("name"), "stream 1");
  EXPECT_EQ(events[3].at("name"), "a \"quoted\"\n");
  EXPECT_EQ(events[3].at("ph"), "X");
  EXPECT_EQ(events[3].at("ts"), 1.5);
  EXPECT_EQ(events[3].at("dur"), 2.25);
  EXPECT_EQ(events[4].at("tid"), 1);
  EXPECT_EQ(events[4].at("args").at("kernel"), "reference");
  EXPECT_EQ(events[4].at("args").at("layout"), "blocked16 -> row_major");
  EXPECT_EQ(events[4].at("args").at("gflops"), 2);
  EXPECT_EQ(events[4].at("args").at("gb_per_s"), 0.1);
  EXPECT_FALSE(events[3].at("args").contains("gflops"));
}

}  // namespace
}  // namespace autograph
