// Event files for TensorBoard: scalars by tag and step.
//
// A file is a row of TFRecords, each a length, its checksum, a message of tensorflow.Event in protobuf's wire format
// and its checksum. Of Event four fields are written: wall_time (1), step (2), file_version (3) and summary (5) with
// one Value (1) of tag (1) and simple_value (2). Checksums are CRC-32C, rotated and offset as TFRecord wants it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace autograph {

/// CRC-32C (Castagnoli).
uint32_t crc32c(std::string_view bytes);

/// Writes one event file, which readers may read meanwhile.
class EventFile {
 public:
  /// A new file in `folder`, which is made when missing; throws IoError.
  explicit EventFile(const std::string& folder);
  /// A scalar; in the file after flush().
  void add(std::string_view tag, double value, int64_t step);
  /// Throws IoError when the system has refused something.
  void flush();
  const std::string& path() const { return path_; }

 private:
  void write_record(const std::string& message);
  std::string path_;
  std::ofstream file_;
};

}  // namespace autograph
