#include "base/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files/descriptor.h"

namespace autograph {
namespace {

bool is_stream_name(const std::string& path) {
  return path.starts_with("/dev/std") || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

void write_parts(const Descriptor& fd, std::span<const std::string_view> parts, const std::string& path) {
  for (const std::string_view part : parts) {
    if (!write_all(fd.get(), part)) throw_file_error(path, "cannot write");
  }
}

// At the end: /dev/stdout may be a file to which the program has printed.
void write_in_place(const std::string& path, std::span<const std::string_view> parts) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (fd.get() < 0) throw_file_error(path, "cannot open");
  write_parts(fd, parts, path);
  if (!fd.close()) throw_file_error(path, "cannot close");
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
  Descriptor fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (fd.get() < 0) throw_file_error(path, "cannot create a temporary file beside");
  try {
    write_parts(fd, parts, path);
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd.get(), 0666 & ~mask) != 0) throw_file_error(path, "cannot set the permissions of");
    if (::fsync(fd.get()) != 0) throw_file_error(path, "cannot flush");
    if (!fd.close()) throw_file_error(path, "cannot close");
    if (::rename(temporary.c_str(), target.c_str()) != 0) throw_file_error(path, "cannot replace");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace autograph
