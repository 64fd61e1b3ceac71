#include "io/onnx/import/external_data.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/check.h"
#include "base/text/read_number.h"

namespace autograph::io {
namespace {

int64_t parse_count(const std::string& key, const std::string& text, const std::string& tensor) {
  const auto value = read_number<int64_t>(text);
  AG_CHECK_USER(value && *value >= 0, FormatError,
                "[onnx] external_data of '{}': {}: expected an integer of 0 or more, got '{}'", tensor, key, text);
  return *value;
}

// The parts between slashes; throws on whatever could lead out of the directory.
std::vector<std::string> split_location(const std::string& location, const std::string& tensor) {
  AG_CHECK_USER(!location.empty() && location.front() != '/' && location.find('\0') == std::string::npos, FormatError,
                "[onnx] external_data of '{}': location: expected a relative path, got '{}'", tensor, location);
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= location.size();) {
    const size_t end = std::min(location.find('/', begin), location.size());
    const std::string part = location.substr(begin, end - begin);
    AG_CHECK_USER(part != "..", FormatError,
                  "[onnx] external_data of '{}': location '{}' leads out of the model's directory", tensor, location);
    if (!part.empty() && part != ".") parts.push_back(part);
    begin = end + 1;
  }
  AG_CHECK_USER(!parts.empty(), FormatError, "[onnx] external_data of '{}': location '{}' names no file", tensor,
                location);
  return parts;
}

// For kernels without openat2: opens one component after the other and follows no link.
int open_by_components(int directory, const std::vector<std::string>& parts) {
  int at = ::dup(directory);
  for (size_t i = 0; i < parts.size() && at >= 0; ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK;
    const int next = ::openat(at, parts[i].c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | kind);
    const int error = errno;
    ::close(at);
    errno = error;
    at = next;
  }
  return at;
}

int open_beneath(int directory, const std::vector<std::string>& parts) {
  std::string path;
  for (const std::string& part : parts) path += (path.empty() ? "" : "/") + part;
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long fd = ::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how);
  const bool available = fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL);
  return available ? static_cast<int>(fd) : open_by_components(directory, parts);
}

}  // namespace

ExternalRange parse_external_range(const std::map<std::string, std::string>& entries, const std::string& tensor) {
  ExternalRange range;
  for (const auto& [key, value] : entries) {
    if (key == "location") {
      range.location = value;
    } else if (key == "offset") {
      range.offset = parse_count(key, value, tensor);
    } else if (key == "length") {
      range.length = parse_count(key, value, tensor);
    } else {
      AG_CHECK_USER(key == "checksum" || key == "basepath", FormatError,
                    "[onnx] external_data of '{}': unknown key '{}'", tensor, key);
    }
  }
  AG_CHECK_USER(entries.count("location") == 1, FormatError, "[onnx] external_data of '{}': 'location' is missing",
                tensor);
  return range;
}

ExternalFiles::ExternalFiles(std::string directory, std::string model, bool allow_hard_links)
    : directory_(std::move(directory)), model_(std::move(model)), allow_hard_links_(allow_hard_links) {}

ExternalFiles::~ExternalFiles() {
  if (directory_fd_ >= 0) ::close(directory_fd_);
}

int ExternalFiles::open_linked(const std::string& location) const {
  namespace fs = std::filesystem;
  std::error_code failed;
  const fs::path target = fs::canonical(fs::path(directory_) / location, failed);
  if (failed) return -1;
  for (const fs::path& root : {fs::canonical(directory_, failed), fs::canonical(model_, failed).parent_path()}) {
    const fs::path below = target.lexically_relative(root);
    if (root.empty() || below.empty() || *below.begin() == "..") continue;
    const int directory = ::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int fd = directory < 0 ? -1 : open_beneath(directory, {below.begin(), below.end()});
    if (directory >= 0) ::close(directory);
    if (fd >= 0) return fd;
  }
  return -1;
}

std::shared_ptr<const InputFile> ExternalFiles::open(const std::string& location, const std::string& tensor) {
  AG_CHECK_USER(!directory_.empty(), FormatError,
                "[onnx] external_data of '{}': the model was not loaded from a file, so '{}' has no directory", tensor,
                location);
  const std::vector<std::string> parts = split_location(location, tensor);
  if (directory_fd_ < 0) directory_fd_ = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  AG_CHECK_USER(directory_fd_ >= 0, IoError, "[onnx] directory '{}': {}", directory_, std::strerror(errno));
  int fd = open_beneath(directory_fd_, parts);
  if (fd < 0 && (errno == ELOOP || errno == EXDEV)) {
    fd = open_linked(location);
    AG_CHECK_USER(fd >= 0, FormatError,
                  "[onnx] external_data of '{}': '{}' goes through a symbolic link that leads nowhere or out of the "
                  "model's directory",
                  tensor, location);
  }
  AG_CHECK_USER(fd >= 0 || (errno != ENOENT && errno != ENOTDIR), FormatError,
                "[onnx] external_data of '{}': no file '{}' in '{}' (the model is incomplete without it)", tensor,
                location, directory_);
  AG_CHECK_USER(fd >= 0, IoError, "[onnx] external_data of '{}': cannot open '{}': {}", tensor, location,
                std::strerror(errno));
  auto file = std::make_shared<const InputFile>(fd, location);
  AG_CHECK_USER(file->is_regular(), FormatError, "[onnx] external_data of '{}': '{}' is not a regular file", tensor,
                location);
  AG_CHECK_USER(allow_hard_links_ || file->num_links() == 1, FormatError,
                "[onnx] external_data of '{}': '{}' has {} hard links, expected 1; it may be a file from elsewhere "
                "(--allow-hard-links, or allow_hard_links, accepts it)",
                tensor, location, file->num_links());
  return file;
}

ExternalBytes ExternalFiles::find(const ExternalRange& range, int64_t expected, const std::string& tensor) {
  if (!last_ || location_ != range.location) {
    last_ = open(range.location, tensor);
    location_ = range.location;
  }
  const int64_t size = last_->size_bytes();
  AG_CHECK_USER(range.offset <= size, FormatError,
                "[onnx] external_data of '{}': offset {} is beyond the {} bytes of '{}'", tensor, range.offset, size,
                range.location);
  const int64_t length = range.length < 0 ? expected : range.length;
  AG_CHECK_USER(length == expected, FormatError, "[onnx] external_data of '{}': length: expected {} bytes, got {}",
                tensor, expected, length);
  AG_CHECK_USER(length <= size - range.offset, FormatError,
                "[onnx] external_data of '{}': {} bytes from offset {} reach beyond the {} bytes of '{}'", tensor,
                length, range.offset, size, range.location);
  return {last_, range.offset};
}

}  // namespace autograph::io
