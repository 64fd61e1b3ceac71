// The bytes of a file, gzipped or not, one piece after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "io/file.h"

namespace autograph {

/// Never takes more memory than the pieces that are asked for.
class ByteSource {
 public:
  /// `format` begins messages: "[idx] 'PATH': ...". Throws IoError where the file cannot be opened.
  ByteSource(std::string format, const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Exactly `size` bytes; FormatError, naming `what`, when the file ends earlier or its checksum is wrong.
  void read(void* to, size_t size, const char* what);
  /// FormatError unless everything has been read.
  void expect_end();
  /// Could there be so many bytes behind what has been read? Asked before memory is taken for them.
  bool may_have(int64_t size) const;
  /// Bytes read so far, of the content.
  int64_t offset() const { return offset_; }
  /// "[idx] 'PATH'".
  std::string where() const;

 private:
  struct Inflater;
  size_t read_some(void* to, size_t size);
  size_t inflate_some(void* to, size_t size);

  std::string format_;
  io::InputFile file_;
  int64_t file_at_ = 0;
  int64_t offset_ = 0;
  std::unique_ptr<Inflater> inflater_;  // null: not gzipped
};

}  // namespace autograph
