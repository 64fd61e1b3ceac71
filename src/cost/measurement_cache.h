// Measured times on disk, so that nothing is measured twice: an SQLite file in the cache folder.
//
// A cache that cannot be opened, read or written is no reason to fail: it becomes one in memory, and `note()` says why.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace autograph {

/// What a graph took as a whole, beside what the costs of its nodes say.
struct LatencySample {
  double sum_us = 0;       ///< Of the costs of all nodes.
  double critical_us = 0;  ///< Of those on the longest path.
  double latency_us = 0;   ///< Measured.
};

/// What attestation of a kernel found.
struct Verdict {
  std::string what;   ///< "kernel | call".
  std::string fault;  ///< "" where the kernel is right.
};

/// Thread-safe; several processes may use one file.
class MeasurementCache {
 public:
  /// Of `folder`/measurements.sqlite, "": in memory. Opened when first asked, since who has all times from elsewhere
  /// need not wait for it; the folder (mode 0700) and the file are made then when they are not there.
  explicit MeasurementCache(std::string folder);
  ~MeasurementCache();
  MeasurementCache(const MeasurementCache&) = delete;
  MeasurementCache& operator=(const MeasurementCache&) = delete;

  /// Microseconds measured for `key` on `device`, if any.
  std::optional<double> find(const std::string& device, const std::string& key);
  /// Keeps a measurement; replaces an older one.
  void store(const std::string& device, const std::string& key, double us);
  /// Keeps what a whole graph took; replaces an older sample of the same `graph`.
  void store_sample(const std::string& device, const std::string& graph, const LatencySample& sample);
  /// The newest samples of a device.
  std::vector<LatencySample> samples(const std::string& device);
  /// Has the file been made, by this process or another?
  bool is_there() const;
  /// Can a kernel of any device have been refused? Looks for one file, and opens nothing.
  bool may_have_faults() const;
  /// What is known about a kernel on a device, if anything.
  std::optional<Verdict> find_verdict(const std::string& device, const std::string& key);
  /// Keeps a verdict; replaces an older one.
  void store_verdict(const std::string& device, const std::string& key, const Verdict& verdict);
  /// All kernels of a device that were refused, by key.
  std::map<std::string, Verdict> faults(const std::string& device);
  /// How many kernels of a device were found right.
  int64_t num_trusted(const std::string& device);
  /// Number of measurements in the file.
  int64_t size();
  /// Why the cache is not on disk, or what went wrong last; "" as long as nothing did.
  const std::string& note() const { return note_; }

 private:
  class Database;
  Database& database();
  void open();
  void mark_faults() const;
  // What a call of the database gives; on errors `otherwise`, and a note.
  template <class Result, class Call>
  Result try_to(Result otherwise, const Call& call);
  void prune_once(Database& database);
  const std::string folder_;
  std::mutex mutex_;                    // guards database_
  std::unique_ptr<Database> database_;  // null until it is asked
  bool is_pruned_ = false;              // before this process wrote its first row
  std::string note_;
};

}  // namespace autograph
