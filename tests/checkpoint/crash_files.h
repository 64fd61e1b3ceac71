// Files in memory that fail or crash at a call that is chosen, and forget at a crash what was not flushed.
#pragma once

#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "checkpoint/file_system.h"

namespace autograph {

/// What a program sees when the machine stops: nothing catches it on purpose.
struct Crash : std::exception {
  const char* what() const noexcept override { return "crash"; }
};

/// A disk keeps of a file what sync() has seen and of a folder what sync_folder() has; of the rest a crash
/// keeps any part, drawn from a seed. Thread-safe.
class CrashFiles : public Checkpoints::FileSystem {
 public:
  /// What happens at the call of that number, counted from 0; reads are not counted.
  enum class Fault {
    none,
    error,       ///< It throws IoError and does nothing; later calls work.
    torn_error,  ///< As error, but half of what is written is there.
    crash,       ///< It and all later calls throw Crash.
    full,        ///< From it on writes do half and throw IoError: a disk without space. All else works.
  };
  void set_fault(Fault fault, int64_t call);
  /// Calls that change something, so far.
  int64_t calls() const;
  /// What each of them was.
  std::vector<std::string> log() const;
  /// The disk after the crash, as other files that work.
  std::shared_ptr<CrashFiles> after_crash(uint64_t seed) const;
  /// Changes a byte of a file.
  void damage(const std::string& path, size_t at);
  /// Paths of all files and folders.
  std::vector<std::string> all_paths() const;

  bool is_folder(const std::string& path) override;
  void make_folder(const std::string& path) override;
  void sync_folder(const std::string& path) override;
  std::unique_ptr<File> create(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  std::string read(const std::string& path, int64_t max_bytes) override;
  std::unique_ptr<Lock> lock(const std::string& path) override;

 private:
  class MemoryFile;
  class MemoryLock;
  struct Node;
  using NodePtr = std::shared_ptr<Node>;
  struct Node {
    bool is_folder = false;
    bool is_locked = false;
    std::string content, synced_content;
    std::map<std::string, NodePtr> names, synced_names;
  };

  void count(const std::string& what);  // a call; throws where it is to fail
  bool count_write(const std::string& what);
  bool is_full() const;
  NodePtr find(const std::string& path) const;
  NodePtr get(const std::string& path) const;
  static NodePtr survivor(const NodePtr& node, std::mt19937_64& random);

  mutable std::recursive_mutex mutex_;  // guards everything
  NodePtr root_ = [] {
    auto node = std::make_shared<Node>();
    node->is_folder = true;
    return node;
  }();
  Fault fault_ = Fault::none;
  int64_t fault_call_ = -1;
  bool crashed_ = false;
  std::vector<std::string> log_;
};

}  // namespace autograph
