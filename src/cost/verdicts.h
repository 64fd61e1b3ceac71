// What attestation found on this machine, remembered: kernels that may be trusted, and those that gave wrong numbers.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "autograph/run_report.h"
#include "cost/measurement_cache.h"

namespace autograph {

/// Of one device. Thread-safe.
class Verdicts {
 public:
  /// Those of the measurement cache in `folder` ("": of this process alone). `device` names the machine, its libraries
  /// and this build: verdicts hold for equal names alone. The same object for equal arguments, so that the file is read
  /// once; it is made when something is kept.
  static Verdicts& of(const std::string& folder, const std::string& device);
  Verdicts(const std::string& folder, std::string device);

  /// Has any kernel been refused?
  bool has_faults();
  /// "" where the kernel may be trusted, its fault where not, nothing where it has not been attested.
  std::optional<std::string> find(const std::string& key);
  /// Its fault where it was refused, else "". Asks no file.
  std::string fault(const std::string& key);
  /// Keeps a verdict. `what`: kernel and call in the words of messages.
  void keep(const std::string& key, const std::string& what, const std::string& fault);
  /// All that were refused.
  std::vector<RefusedKernel> refused();
  /// How many are trusted.
  int64_t num_trusted();

 private:
  void load();
  const std::string device_;
  MeasurementCache cache_;
  const bool is_kept_;  // on disk
  std::mutex mutex_;    // guards what follows
  bool is_loaded_ = false;
  std::map<std::string, RefusedKernel> faults_;  // by key
  std::map<std::string, bool> trusted_;          // by key: those found or made by this process
};

/// A text that differs between builds of this library from different sources or by different compilers.
std::string build_hash();

}  // namespace autograph
