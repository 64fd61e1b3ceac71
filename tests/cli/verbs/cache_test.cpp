// The verb cache: measured times go out as a file and come in again.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cli/run_program.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

TEST(CliCache, CarriesMeasurements) {
  const TestFolder folder;
  const std::string here = " --cache-dir " + (folder / "here"), there = " --cache-dir " + (folder / "there");
  const std::string file = folder / "file";
  ASSERT_EQ(run_program("bench zoo:mlp --tune --seconds 0.05" + here).exit_code, 0);
  const ProgramResult out = run_program("cache export " + file + " --device cpu --json" + here);
  ASSERT_EQ(out.exit_code, 0) << out.err;
  const int64_t times = out.json()["times"].get<int64_t>();
  EXPECT_GT(times, 0);
  EXPECT_EQ(run_program("cache import " + file + " --json" + there).json()["times"], times);
  EXPECT_EQ(run_program("cache export " + file + " --json" + there).json()["times"], times);
  EXPECT_EQ(run_program("cache export " + file + " --device reference --json" + here).json()["times"], 0);
}

TEST(CliCache, SaysWhatIsNoFileOfMeasurements) {
  const TestFolder folder;
  const ProgramResult none = run_program("cache import " + (folder / "none") + " --cache-dir " + (folder / "c"));
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_NE(none.err.find("[measurements]"), std::string::npos) << none.err;
  // A file would take the place of the pipe.
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const ProgramResult device = run_program("cache export " + (folder / "pipe") + " --cache-dir " + (folder / "c"));
  EXPECT_EQ(device.exit_code, 1);
  EXPECT_NE(device.err.find("expected a file, got a device or a pipe"), std::string::npos) << device.err;
  EXPECT_EQ(run_program("cache import " AG_PROGRAM " --cache-dir " + (folder / "c")).exit_code, 3);
}

}  // namespace
}  // namespace autograph
