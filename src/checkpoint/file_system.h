// What checkpoints need of the system's files, as an interface: tests put one in its place that fails, or that forgets
// what was not flushed, at any call.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/checkpoint.h"

namespace autograph {

/// Functions throw IoError where the system refuses.
class Checkpoints::FileSystem {
 public:
  /// A file that is being written.
  class File {
   public:
    File() = default;
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    /// Closes it, if close() did not.
    virtual ~File() = default;
    /// Appends all of `bytes`.
    virtual void write(std::string_view bytes) = 0;
    /// Returns when what was written is on disk. The name of the file need not be.
    virtual void sync() = 0;
    virtual void close() = 0;
  };

  /// Held by whoever writes into a folder.
  class Lock {
   public:
    Lock() = default;
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    virtual ~Lock() = default;
  };

  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  /// Is there a folder of that name?
  virtual bool is_folder(const std::string& path) = 0;
  /// A folder in one that is there.
  virtual void make_folder(const std::string& path) = 0;
  /// Returns when all names in the folder are on disk as they are now.
  virtual void sync_folder(const std::string& path) = 0;
  /// A new, empty file; one of that name must not be there.
  virtual std::unique_ptr<File> create(const std::string& path) = 0;
  /// A file or folder gets a name that nothing has. At once: readers see either.
  virtual void rename(const std::string& from, const std::string& to) = 0;
  /// A file or an empty folder.
  virtual void remove(const std::string& path) = 0;
  /// Names in a folder, sorted, without "." and "..".
  virtual std::vector<std::string> list(const std::string& path) = 0;
  /// The whole of a file; FormatError where it is larger than `max_bytes`.
  virtual std::string read(const std::string& path, int64_t max_bytes) = 0;
  /// Takes the lock on a file, which is made where it is missing; throws where another has it.
  virtual std::unique_ptr<Lock> lock(const std::string& path) = 0;
};

/// The files of the system.
std::shared_ptr<Checkpoints::FileSystem> system_files();

}  // namespace autograph
