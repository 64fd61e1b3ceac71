// The cache as a file: what comes out goes in again, newer measurements win, and nothing else is taken for one.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <filesystem>
#include <fstream>

#include "autograph/error.h"
#include "autograph/measurements.h"
#include "cost/measurement_cache.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

class MeasurementFileTest : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_ / name; }

  // Measurements of `folder` were made so many seconds ago.
  static void make_older(const std::string& folder, int seconds) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open((folder + "/measurements.sqlite").c_str(), &connection), SQLITE_OK);
    const std::string sql = "UPDATE measurement SET at = at - " + std::to_string(seconds);
    EXPECT_EQ(sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(connection);
  }

  TestFolder folder_;
};

TEST_F(MeasurementFileTest, CarriesEverythingToAnotherCache) {
  {
    MeasurementCache cache(at("here"));
    cache.store("gpu one; build 7", "conv", 12.5);
    cache.store("gpu two", "conv", 2);
    cache.store_sample("gpu one; build 7", "graph", {10, 5, 9});
    cache.store_verdict("gpu one; build 7", "right", {"a | b", ""});
    cache.store_verdict("gpu one; build 7", "wrong", {"a | c", "differs"});
  }
  const MeasurementCounts written = export_measurements(at("file"), "gpu one", at("here"));
  EXPECT_EQ(written.times, 1);
  EXPECT_EQ(written.samples, 1);
  EXPECT_EQ(written.verdicts, 2);
  const MeasurementCounts read = import_measurements(at("file"), at("there"));
  EXPECT_EQ(read.times, 1);
  MeasurementCache there(at("there"));
  EXPECT_EQ(there.find("gpu one; build 7", "conv"), 12.5);
  EXPECT_FALSE(there.find("gpu two", "conv"));
  EXPECT_EQ(there.samples("gpu one; build 7").at(0).latency_us, 9);
  EXPECT_EQ(there.num_trusted("gpu one; build 7"), 1);
  EXPECT_TRUE(there.may_have_faults()) << "kernels that were refused elsewhere are looked for here";
  EXPECT_EQ(there.faults("gpu one; build 7").at("wrong").fault, "differs");
}

TEST_F(MeasurementFileTest, TheNewerMeasurementCounts) {
  {
    MeasurementCache old(at("old"));
    old.store("gpu", "conv", 1);
    old.store_verdict("gpu", "kernel", {"what", ""});
    MeasurementCache fresh(at("fresh"));
    fresh.store("gpu", "conv", 2);
    fresh.store_verdict("gpu", "kernel", {"what", "differs"});
  }
  make_older(at("old"), 100);
  export_measurements(at("old.file"), "", at("old"));
  export_measurements(at("fresh.file"), "", at("fresh"));
  import_measurements(at("old.file"), at("fresh"));
  import_measurements(at("fresh.file"), at("old"));
  for (const char* name : {"old", "fresh"}) {
    MeasurementCache cache(at(name));
    EXPECT_EQ(cache.find("gpu", "conv"), 2) << name;
    EXPECT_EQ(cache.faults("gpu").size(), 1U) << name << ": what was found wrong stays wrong";
  }
}

TEST_F(MeasurementFileTest, ReplacesWhatIsThereOrLeavesIt) {
  std::ofstream(at("file")) << "an older text";
  EXPECT_EQ(export_measurements(at("file"), "", at("empty")).times, 0);
  EXPECT_EQ(import_measurements(at("file"), at("empty")).times, 0);
  EXPECT_NE(message_of<IoError>([&] { export_measurements(at("no/such/folder"), "", at("empty")); }), "");
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    files += entry.is_regular_file() ? 1 : 0;
  EXPECT_EQ(files, 1U) << "a part of a file was left";
}

TEST_F(MeasurementFileTest, TakesNothingElse) {
  EXPECT_NE(message_of<IoError>([&] { import_measurements(at("none"), at("cache")); }), "");
  std::ofstream(at("text")) << std::string(4000, 'x');
  EXPECT_NE(message_of<FormatError>([&] { import_measurements(at("text"), at("cache")); }), "");
  std::ofstream(at("empty")).flush();
  const std::string message = message_of<FormatError>([&] { import_measurements(at("empty"), at("cache")); });
  EXPECT_NE(message.find("expected measurements of version"), std::string::npos) << message;
}

}  // namespace
}  // namespace autograph
