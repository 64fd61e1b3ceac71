#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"

namespace autograph::io {
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

}  // namespace

std::string read_file(const std::string& path, int64_t max_bytes) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) throw_io(path, "cannot open");
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) throw_io(path, "cannot read");
  AG_CHECK_USER(S_ISREG(status.st_mode), IoError, "[file] cannot read '{}': not a regular file", path);
  AG_CHECK_USER(status.st_size <= max_bytes, FormatError, "[file] '{}': expected at most {} bytes, got {}", path,
                max_bytes, status.st_size);
  std::string content(static_cast<size_t>(status.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    const ssize_t count = ::read(fd.get(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io(path, "cannot read");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  content.resize(done);
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, std::span<const std::string_view>(&content, 1));
}

void write_file(const std::string& path, std::span<const std::string_view> parts) {
  std::string temporary = path + ".XXXXXX";
  Fd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) throw_io(path, "cannot create a temporary file beside");
  try {
    for (const std::string_view part : parts) write_all(fd.get(), part, path);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd.get(), 0666 & ~mask) != 0) throw_io(path, "cannot set the permissions of");
    if (::fsync(fd.get()) != 0) throw_io(path, "cannot flush");
    if (!fd.close()) throw_io(path, "cannot close");
    if (::rename(temporary.c_str(), path.c_str()) != 0) throw_io(path, "cannot replace");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace autograph::io
