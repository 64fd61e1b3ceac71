// The files of the system, by its calls.
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/files/descriptor.h"
#include "base/printable.h"
#include "checkpoint/file_system.h"
#include "io/file.h"

namespace autograph {
namespace {

[[noreturn]] void refuse(const char* what, const std::string& path, int error = errno) {
  throw IoError(fmt::format("[checkpoint] cannot {} '{}': {}", what, printable(path), std::strerror(error)));
}

class SystemFile : public Checkpoints::FileSystem::File {
 public:
  explicit SystemFile(std::string path)
      : path_(std::move(path)), fd_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
    if (fd_.get() < 0) refuse("create", path_);
  }
  void write(std::string_view bytes) override {
    if (!write_all(fd_.get(), bytes)) refuse("write", path_);
  }
  void sync() override {
    if (::fsync(fd_.get()) != 0) refuse("flush", path_);
  }
  void close() override {
    if (!fd_.close()) refuse("close", path_);
  }

 private:
  std::string path_;
  Descriptor fd_;
};

class SystemLock : public Checkpoints::FileSystem::Lock {
 public:
  explicit SystemLock(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_.get() < 0) refuse("open", path);
    if (::flock(fd_.get(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) refuse("lock", path);
    throw IoError(
        fmt::format("[checkpoint] '{}': another run writes checkpoints there (this lock is taken)", printable(path)));
  }

 private:
  Descriptor fd_;
};

class SystemFiles : public Checkpoints::FileSystem {
 public:
  bool is_folder(const std::string& path) override {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
  }
  void make_folder(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) != 0) refuse("make the folder", path);
  }
  void sync_folder(const std::string& path) override {
    const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd.get() < 0) refuse("open the folder", path);
    if (::fsync(fd.get()) != 0) refuse("flush the folder", path);
  }
  std::unique_ptr<File> create(const std::string& path) override { return std::make_unique<SystemFile>(path); }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) refuse("rename", from);
  }
  void remove(const std::string& path) override {
    if (std::remove(path.c_str()) != 0) refuse("remove", path);
  }
  std::vector<std::string> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (!folder) refuse("list", path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(folder.get())) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    if (errno != 0) refuse("list", path);
    std::sort(names.begin(), names.end());
    return names;
  }
  std::string read(const std::string& path, int64_t max_bytes) override {
    const io::InputFile file(path);
    AG_CHECK_USER(file.size_bytes() <= max_bytes, FormatError, "[checkpoint] '{}': expected at most {} bytes, got {}",
                  printable(path), max_bytes, file.size_bytes());
    std::string content(static_cast<size_t>(file.size_bytes()), '\0');
    file.read(0, content.data(), content.size());
    return content;
  }
  std::unique_ptr<Lock> lock(const std::string& path) override { return std::make_unique<SystemLock>(path); }
};

}  // namespace

std::shared_ptr<Checkpoints::FileSystem> system_files() { return std::make_shared<SystemFiles>(); }

}  // namespace autograph
