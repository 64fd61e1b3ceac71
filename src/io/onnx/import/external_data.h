// Reads weights that a model keeps in files of their own, without ever leaving the model's directory.
//
// A location is a relative path below that directory: no "..", no absolute path, a regular file with one name (unless
// hard links are allowed). Symbolic links must stay below it, or below the directory that holds the model's file itself
// where the model's path is a link: caches of downloads keep all files of a model in one folder under other names.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "autograph/model_io.h"
#include "io/file.h"

namespace autograph::io {

/// Where the bytes of one tensor lie.
struct ExternalRange {
  std::string location;
  int64_t offset = 0;
  int64_t length = -1;  ///< -1: to the end of the file.
};

/// Checks the keys of an external_data list and reads their values; throws FormatError.
ExternalRange parse_external_range(const std::map<std::string, std::string>& entries, const std::string& tensor);

/// A range of an open file, inside its size.
struct ExternalBytes {
  std::shared_ptr<const InputFile> file;
  int64_t offset = 0;
};

/// The files below one directory.
class ExternalFiles {
 public:
  /// `directory` "" means that there are none; `model` is the path of the model's file, "" where it has none.
  ExternalFiles(std::string directory, std::string model, bool allow_hard_links);
  ~ExternalFiles();
  ExternalFiles(const ExternalFiles&) = delete;
  ExternalFiles& operator=(const ExternalFiles&) = delete;

  /// The bytes of `range`, exactly `expected` of them. Throws FormatError (escapes, too short, not a file) or IoError.
  ExternalBytes find(const ExternalRange& range, int64_t expected, const std::string& tensor);

 private:
  std::shared_ptr<const InputFile> open(const std::string& location, const std::string& tensor);
  // Follows symbolic links where they may lead; less than 0 where they do not.
  int open_linked(const std::string& location) const;
  std::string directory_, model_;
  bool allow_hard_links_;
  int directory_fd_ = -1;
  std::string location_;                   // of last_
  std::shared_ptr<const InputFile> last_;  // models keep neighbours in one file
};

}  // namespace autograph::io
