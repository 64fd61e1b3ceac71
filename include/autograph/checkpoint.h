// Checkpoints: what a training run needs to go on as if it had never been stopped, kept so that no crash, full disk or
// damaged file costs more than the steps since the last one.
//
//     Checkpoints checkpoints("run1");
//     if (const auto found = checkpoints.load_latest()) {
//       found->restore(program.states());
//       loader.seek(found->data);
//       step = found->step;
//     }
//     ...
//     Checkpoint now{.step = step, .data = loader.position(), .metric = accuracy};
//     now.capture(program.states());
//     checkpoints.save(std::move(now));  // returns at once
//     ...
//     checkpoints.wait();
//
// A checkpoint is a folder `checkpoint-NUMBER-step-STEP` of safetensors files and `checkpoint.json`, which has
// everything else and the size and hash of each file. It is written under another name, each file flushed, then the
// folder, then renamed, then the parent flushed: under its own name it is whole, or was damaged later. Older ones are
// removed after that only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograph/data.h"
#include "autograph/random.h"
#include "autograph/state_store.h"
#include "autograph/tensor_io.h"

namespace autograph {

/// What is kept of a run at one step.
struct Checkpoint {
  int64_t step = 0;                                ///< Steps done, 0 or more.
  NamedTensors tensors = {};                       ///< Parameters, moments, counters; names appear once. No strings.
  DataPosition data = {};                          ///< DataLoader::position().
  std::map<std::string, std::string> random = {};  ///< Generators by name, as random_state() writes them.
  std::string config = "{}";                       ///< Whatever else the program needs: a JSON document.
  std::optional<double> metric = {};               ///< By which the best one is kept; none: never the best.

  /// Adds copies of all states, as they are between two runs: one that updates has ended or not begun.
  void capture(const StateStore& states);
  /// Overwrites all states of `states` with the tensors of their names; others stay unused. Throws ValueError,
  /// TypeError or ShapeError naming the state that is missing or differs, and has changed nothing then.
  void restore(StateStore& states) const;
};

/// The state of a generator as text, for Checkpoint::random.
std::string random_state(const Random& random);
/// A generator that goes on from there; FormatError for other texts.
Random random_from_state(const std::string& text);

/// Which metric is better.
enum class BetterMetric {
  larger,   ///< An accuracy.
  smaller,  ///< A loss.
};

/// How checkpoints are kept.
struct CheckpointOptions {
  int keep = 3;                                ///< The newest ones, 1 or more.
  bool keep_best = true;                       ///< And the best one by its metric.
  BetterMetric better = BetterMetric::larger;  ///< NaN is worse than any number.
  int64_t shard_bytes = int64_t{1} << 30;      ///< Tensors go into further files beyond that; a larger one has its own.
  /// save() returns when it has taken over the content, and a thread writes it; at most one more waits. False: it
  /// returns when all is on disk.
  bool asynchronous = true;
};

/// One that could not be used.
struct DamagedCheckpoint {
  std::string path;     ///< Its folder.
  std::string problem;  ///< The message of what was thrown.
};

/// A folder of checkpoints. One writes at a time: others, in this process or another, get an IoError from save(). All
/// calls from one thread at a time; what an asynchronous save throws, the next save(), wait() or load throws.
class Checkpoints {
 public:
  /// The folder is made by the first save(). ValueError where options make no sense.
  explicit Checkpoints(std::string folder, CheckpointOptions options = {});
  /// Implementation, for tests: with other files than the system's.
  class FileSystem;
  Checkpoints(std::string folder, CheckpointOptions options, std::shared_ptr<FileSystem> files);
  Checkpoints(Checkpoints&&) noexcept;
  Checkpoints& operator=(Checkpoints&&) noexcept;
  /// Waits for what is being written. An error has nobody to go to: call wait() before.
  ~Checkpoints();

  /// Keeps `checkpoint`. Saves are written in their order, each after the one before is on disk or has failed. The
  /// tensors must not be written to until wait() returns: give copies, as Checkpoint::capture() makes them. What it
  /// throws - of this save, or with the context "an earlier save" of that one - leaves all checkpoints that were there,
  /// and `checkpoint` is not saved; only where the very last flush, of the folder, fails may it be there as well.
  /// IoError: the system refused. ValueError, TypeError, UnsupportedError: the content cannot be written.
  void save(Checkpoint checkpoint);
  /// Until everything is on disk; throws what a save threw.
  void wait();

  /// The newest one that is whole: hashes of all files are checked, and damaged ones skipped for the one before (see
  /// damaged()). Nothing when there is none, or no folder. IoError where all that are there are damaged: to begin again
  /// would lose a run.
  std::optional<Checkpoint> load_latest();
  /// As load_latest(), the one with the best metric.
  std::optional<Checkpoint> load_best();
  /// Those that the last load skipped, newest first, to be said to the user.
  const std::vector<DamagedCheckpoint>& damaged() const;
  /// Folders of all checkpoints, damaged ones, too, newest first.
  std::vector<std::string> list() const;
  const std::string& folder() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace autograph
