#include "base/files/output_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "autograph/error.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

TEST(OutputFile, ReplacesAFileAndLeavesNothingElse) {
  const TestFolder folder;
  const std::string path = folder.write("out.txt", "old");
  write_file(path, "new");
  EXPECT_EQ(folder.read("out.txt"), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
  EXPECT_THROW(write_file(folder / "no/such/out.txt", "new"), IoError);
}

TEST(OutputFile, KeepsALinkAndWritesTheFileBehindIt) {
  const TestFolder folder;
  folder.write("runs/7.txt", "old");
  std::filesystem::create_symlink("runs/7.txt", folder / "latest.txt");
  write_file(folder / "latest.txt", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "latest.txt"));
  EXPECT_EQ(folder.read("runs/7.txt"), "new");
  EXPECT_EQ(std::filesystem::path(target_of(folder / "latest.txt")).filename(), "7.txt");
  EXPECT_EQ(target_of(folder / "runs/7.txt"), folder / "runs/7.txt");
  // One that leads nowhere makes way.
  std::filesystem::create_symlink("nowhere", folder / "broken.txt");
  write_file(folder / "broken.txt", "new");
  EXPECT_EQ(folder.read("broken.txt"), "new");
}

TEST(OutputFile, WritesIntoPipesAndDevicesInsteadOfReplacingThem) {
  const TestFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_TRUE(is_written_in_place(pipe));
  std::string received;
  std::thread reader([&] { received = folder.read("pipe"); });
  const std::string_view parts[] = {"one ", "and another"};
  write_file(pipe, parts);
  reader.join();
  EXPECT_EQ(received, "one and another");
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));

  EXPECT_TRUE(is_written_in_place("/dev/null"));
  EXPECT_FALSE(is_written_in_place(folder.path()));
  EXPECT_FALSE(is_written_in_place(folder / "not there"));
}

TEST(OutputFile, AppendsToTheFileThatStdoutIs) {
  const TestFolder folder;
  const std::string path = folder.write("out.txt", "printed before, ");
  const int old = ::dup(STDOUT_FILENO);
  ASSERT_NE(std::freopen(path.c_str(), "a", stdout), nullptr);
  write_file("/dev/stdout", "written");
  std::fflush(stdout);
  ::dup2(old, STDOUT_FILENO);
  ::close(old);
  EXPECT_EQ(folder.read("out.txt"), "printed before, written");
}

}  // namespace
}  // namespace autograph
