// A folder of checkpoints: which there are, which one is next, which ones go.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograph/checkpoint.h"
#include "base/function_ref.h"
#include "checkpoint/file_system.h"

namespace autograph {

/// Not thread-safe: Checkpoints sees to it that one thread at a time is here.
class CheckpointFolder {
 public:
  CheckpointFolder(std::string path, CheckpointOptions options, std::shared_ptr<Checkpoints::FileSystem> files);

  const std::string& path() const { return path_; }
  const CheckpointOptions& options() const { return options_; }
  /// Makes the folder where it is missing and takes its lock; nothing when that is done.
  void open_for_writing();
  /// Writes one, so that it is under its own name when it is on disk, and removes those that are no longer kept. What
  /// it throws leaves all that were there.
  void write(const Checkpoint& checkpoint);
  /// Names of all, newest first.
  std::vector<std::string> names() const;
  /// The newest one that is whole, or the best one; those that are not go to `damaged`.
  std::optional<Checkpoint> read_first(bool by_metric, std::vector<DamagedCheckpoint>& damaged);

 private:
  // What is known of one without reading its tensors.
  struct Summary {
    bool readable = false;
    std::optional<double> metric;
  };

  std::string full(const std::string& name) const { return path_ + "/" + name; }
  void make_folders(const std::string& path);
  // Told of a checkpoint whose manifest cannot be read, and why.
  using Note = FunctionRef<void(const std::string& name, const char* problem)>;
  Summary summary_of(const std::string& name, const Note& note) const;
  bool is_better(const std::optional<double>& a, const std::optional<double>& b) const;
  void order_by_metric(std::vector<std::string>& names, const Note& note) const;
  void prune();
  void clear_leftovers();
  void remove_folder(const std::string& name);

  std::string path_;
  CheckpointOptions options_;
  std::shared_ptr<Checkpoints::FileSystem> files_;
  std::unique_ptr<Checkpoints::FileSystem::Lock> lock_;
  // Of those that this program has written, which need not be read again, and of those that a load found damaged, whose
  // manifests may look whole.
  std::map<std::string, Summary> known_;
};

}  // namespace autograph
