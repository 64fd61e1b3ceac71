// Files that are read: whole ones, and ranges of one that stays open.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <memory>
#include <string>

namespace autograph::io {

/// The content of a regular file; throws IoError when it cannot be read, FormatError when it has more than `max_bytes`.
std::string read_file(const std::string& path, int64_t max_bytes);

/// A regular file that stays open, so that parts of it can be read later. Files are read, not mapped, unless the user
/// says so: one that is truncated under a mapping kills the process, here it is an error. Renaming another file over it
/// changes nothing, the open one stays as it was. Any thread may read.
class InputFile {
 public:
  /// Throws IoError unless `path` is a regular file that can be read.
  explicit InputFile(const std::string& path);
  /// Takes over the open descriptor of a regular file; `name` names it in messages.
  InputFile(int fd, std::string name);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }
  int64_t size_bytes() const { return status_.st_size; }
  nlink_t num_links() const { return status_.st_nlink; }
  bool is_regular() const { return S_ISREG(status_.st_mode); }
  /// Reads up to `size` bytes from `offset`; returns their number, less than `size` only at the end of the file.
  size_t read_some(int64_t offset, void* to, size_t size) const;
  /// Reads exactly `size` bytes; throws IoError when they are not there or the file was written to since it was opened.
  void read(int64_t offset, void* to, size_t size) const;
  /// The same bytes in memory that becomes theirs when it is touched, and a copy when it is written to; `spare` bytes
  /// behind them can be read as well. Null when the file ends too early for that, or the system has no mapping left.
  std::shared_ptr<void> map(int64_t offset, size_t size, size_t spare) const;

 private:
  void check_unchanged() const;
  int fd_;
  std::string name_;
  struct stat status_ {};
};

}  // namespace autograph::io
