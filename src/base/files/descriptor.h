// Open files of the system: what all that call it themselves share.
#pragma once

#include <string>
#include <string_view>

namespace autograph {

/// Closes a file descriptor at the end of the scope.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Closes now; false, with errno, when the system reports that data was lost.
  bool close();

 private:
  int fd_;
};

/// Writes all of `content`; false, with errno, where the system takes no more.
bool write_all(int fd, std::string_view content);

/// Throws IoError: "[file] cannot open 'a.npy': ..", with what errno says.
[[noreturn]] void throw_file_error(const std::string& path, const char* what);

}  // namespace autograph
