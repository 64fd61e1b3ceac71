#include "base/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"

namespace autograph {
namespace {

// Closes a file descriptor at the end of the scope.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  /// Closes now; false when the system reports that data was lost.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

[[noreturn]] void throw_io(const std::string& path, const char* what) {
  throw IoError(fmt::format("[file] {} '{}': {}", what, path, std::strerror(errno)));
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io(path, "cannot write");
    content.remove_prefix(static_cast<size_t>(count));
  }
}

bool is_stream_name(const std::string& path) {
  return path.starts_with("/dev/std") || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

// At the end: /dev/stdout may be a file to which the program has printed.
void write_in_place(const std::string& path, std::span<const std::string_view> parts) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (fd.get() < 0) throw_io(path, "cannot open");
  for (const std::string_view part : parts) write_all(fd.get(), part, path);
  if (!fd.close()) throw_io(path, "cannot close");
}

}  // namespace

bool is_written_in_place(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode)) return false;
  return !S_ISREG(status.st_mode) || is_stream_name(path);
}

std::string target_of(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_symlink(path, code)) return path;
  const std::filesystem::path target = std::filesystem::canonical(path, code);
  return code ? path : target.string();
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, std::span<const std::string_view>(&content, 1));
}

void write_file(const std::string& path, std::span<const std::string_view> parts) {
  if (is_written_in_place(path)) return write_in_place(path, parts);
  const std::string target = target_of(path);
  std::string temporary = target + ".XXXXXX";
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) throw_io(path, "cannot create a temporary file beside");
  try {
    for (const std::string_view part : parts) write_all(fd.get(), part, path);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd.get(), 0666 & ~mask) != 0) throw_io(path, "cannot set the permissions of");
    if (::fsync(fd.get()) != 0) throw_io(path, "cannot flush");
    if (!fd.close()) throw_io(path, "cannot close");
    if (::rename(temporary.c_str(), target.c_str()) != 0) throw_io(path, "cannot replace");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace autograph
