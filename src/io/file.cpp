#include "io/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/files/descriptor.h"

namespace autograph::io {

InputFile::InputFile(const std::string& path) : InputFile(::open(path.c_str(), O_RDONLY | O_CLOEXEC), path) {
  AG_CHECK_USER(is_regular(), IoError, "[file] cannot read '{}': not a regular file", path);
}

InputFile::InputFile(int fd, std::string name) : fd_(fd), name_(std::move(name)) {
  if (fd_ < 0) throw_file_error(name_, "cannot open");
  if (::fstat(fd_, &status_) == 0) return;
  const int error = errno;
  ::close(fd_);
  errno = error;
  throw_file_error(name_, "cannot read");
}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

size_t InputFile::read_some(int64_t offset, void* to, size_t size) const {
  size_t done = 0;
  while (done < size) {
    const ssize_t count = ::pread(fd_, static_cast<char*>(to) + done, size - done, offset + static_cast<int64_t>(done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_file_error(name_, "cannot read");
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  return done;
}

void InputFile::read(int64_t offset, void* to, size_t size) const {
  check_unchanged();
  const size_t count = read_some(offset, to, size);
  AG_CHECK_USER(count == size, IoError, "[file] '{}': expected {} bytes from offset {}, got {}", name_, size, offset,
                count);
}

std::shared_ptr<void> InputFile::map(int64_t offset, size_t size, size_t spare) const {
  check_unchanged();
  const int64_t page = ::sysconf(_SC_PAGESIZE);
  const int64_t end = offset + static_cast<int64_t>(size);
  const int64_t pages_end = (size_bytes() + page - 1) / page * page;
  if (offset < 0 || end > size_bytes() || end + static_cast<int64_t>(spare) > pages_end) return nullptr;
  const int64_t begin = offset / page * page;
  const size_t length = static_cast<size_t>(end - begin) + spare;
  void* memory = ::mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd_, begin);
  if (memory == MAP_FAILED) return nullptr;
  const std::shared_ptr<void> owner(memory, [length](void* p) { ::munmap(p, length); });
  return {owner, static_cast<char*>(memory) + (offset - begin)};
}

void InputFile::check_unchanged() const {
  struct stat now {};
  if (::fstat(fd_, &now) != 0) throw_file_error(name_, "cannot read");
  const bool same = now.st_size == status_.st_size && now.st_mtim.tv_sec == status_.st_mtim.tv_sec &&
                    now.st_mtim.tv_nsec == status_.st_mtim.tv_nsec;
  AG_CHECK_USER(same, IoError, "[file] '{}': it was written to after it was opened", name_);
}

std::string read_file(const std::string& path, int64_t max_bytes) {
  const InputFile file(path);
  AG_CHECK_USER(file.size_bytes() <= max_bytes, FormatError, "[file] '{}': expected at most {} bytes, got {}", path,
                max_bytes, file.size_bytes());
  std::string content(static_cast<size_t>(file.size_bytes()), '\0');
  content.resize(file.read_some(0, content.data(), content.size()));
  return content;
}

}  // namespace autograph::io
