#include "cost/measurement_cache.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "support/test_folder.h"

namespace autograph {
namespace {

class MeasurementCacheTest : public testing::Test {
 private:
  TestFolder parent_;

 protected:
  // Not there yet: a cache makes it.
  std::string folder_ = parent_ / "cache";
};

TEST_F(MeasurementCacheTest, KeepsMeasurementsFromOneRunToTheNext) {
  {
    MeasurementCache cache(folder_);
    EXPECT_EQ(cache.note(), "");
    EXPECT_FALSE(cache.find("machine", "conv"));
    cache.store("machine", "conv", 12.5);
    cache.store("machine", "conv", 11.5);
  }
  MeasurementCache cache(folder_);
  EXPECT_EQ(cache.find("machine", "conv"), 11.5);
  EXPECT_FALSE(cache.find("another machine", "conv"));
  EXPECT_EQ(cache.size(), 1);
}

// Statements stay prepared: none holds on to what was there when it was run before.
TEST_F(MeasurementCacheTest, SeesWhatOthersHaveStoredSince) {
  MeasurementCache cache(folder_);
  MeasurementCache other(folder_);
  cache.store_verdict("machine", "conv", {"conv", ""});
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(other.find_verdict("machine", "conv")->what, n == 0 ? "conv" : std::to_string(n - 1));
    EXPECT_FALSE(other.find_verdict("machine", std::to_string(n)));
    cache.store_verdict("machine", "conv", {std::to_string(n), ""});
    other.store("machine", "conv", n);
    EXPECT_EQ(cache.find("machine", "conv"), n);
  }
}

TEST_F(MeasurementCacheTest, KeepsOneSampleOfAGraph) {
  {
    MeasurementCache cache(folder_);
    cache.store_sample("machine", "a", {10, 5, 9});
    cache.store_sample("machine", "a", {10, 5, 8});
    cache.store_sample("machine", "b", {20, 5, 19});
    cache.store_sample("another machine", "a", {1, 1, 1});
  }
  MeasurementCache cache(folder_);
  const std::vector<LatencySample> samples = cache.samples("machine");
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].latency_us, 8);
  EXPECT_EQ(samples[1].sum_us, 20);
  EXPECT_EQ(cache.samples("a third one").size(), 0u);
}

TEST_F(MeasurementCacheTest, TellsWithoutOpeningWhetherAKernelWasRefused) {
  const auto may_have_faults = [&] { return MeasurementCache(folder_).may_have_faults(); };
  EXPECT_FALSE(may_have_faults());
  EXPECT_FALSE(std::filesystem::exists(folder_));
  MeasurementCache(folder_).store_verdict("machine", "right", {"kernel | call", ""});
  EXPECT_FALSE(may_have_faults());
  MeasurementCache(folder_).store_verdict("machine", "wrong", {"kernel | call", "1 instead of 2"});
  EXPECT_TRUE(may_have_faults());
  // A database from another machine, alone: the first who opens it finds out.
  for (const auto& file : std::filesystem::directory_iterator(folder_)) {
    if (file.path().extension() != ".sqlite") std::filesystem::remove(file.path());
  }
  EXPECT_FALSE(may_have_faults());
  EXPECT_EQ(MeasurementCache(folder_).num_trusted("machine"), 1);
  EXPECT_TRUE(may_have_faults());
  EXPECT_EQ(MeasurementCache(folder_).faults("machine").size(), 1u);
}

TEST_F(MeasurementCacheTest, MakesItsFolderForTheUserAlone) {
  MeasurementCache cache(folder_);
  EXPECT_FALSE(std::filesystem::exists(folder_)) << "not asked yet";
  EXPECT_EQ(cache.size(), 0);
  EXPECT_EQ(std::filesystem::status(folder_).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(MeasurementCacheTest, WorksInMemoryWhereTheFileCannotBe) {
  std::ofstream(folder_) << "a file where the folder should be";
  MeasurementCache cache(folder_);
  cache.store("machine", "conv", 3.0);
  EXPECT_NE(cache.note(), "");
  EXPECT_EQ(cache.find("machine", "conv"), 3.0);
}

TEST_F(MeasurementCacheTest, SurvivesADamagedFile) {
  std::filesystem::create_directories(folder_);
  std::ofstream(folder_ + "/measurements.sqlite") << std::string(4096, 'x');
  MeasurementCache cache(folder_);
  cache.store("machine", "conv", 3.0);
  EXPECT_NE(cache.note(), "");
  EXPECT_EQ(cache.find("machine", "conv"), 3.0);
}

}  // namespace
}  // namespace autograph
