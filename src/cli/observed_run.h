// Looking at the nodes of `autograph run` while they run: --watch, --break and --hashes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograph/graph.h"
#include "autograph/run_hashes.h"
#include "autograph/watch.h"
#include "cli/options/command.h"
#include "cli/session.h"

namespace autograph::cli {

/// At most one of them is given.
struct ObserveOptions {
  std::string watch;        ///< Pattern; "": none.
  std::string breakpoints;  ///< Pattern; "": none.
  std::string hashes;       ///< File to write; "": none.
  std::string advice;       ///< Of the verb, behind the warning that no node fits: where those of the model run.
  bool is_any() const { return !watch.empty() || !breakpoints.empty() || !hashes.empty(); }
};

/// As an option table.
std::vector<Option> observe_option_table(ObserveOptions& options);

/// Throws UserError when more than one is given, IoError when the file cannot be written.
void check_observe_options(const ObserveOptions& options);

/// Names by which nodes of `graph` may be watched: of nodes, ops and outputs, those of nested graphs too.
std::vector<std::string> watchable_names(const Graph& graph);

/// Looks at all runs of this thread while it lives.
class ObservedRun {
 public:
  /// `names`: the watchable_names() of the graph before the passes, for messages about patterns that no node fits.
  ObservedRun(Session& session, const ObserveOptions& options, std::vector<std::string> names);
  /// What the file says of the run besides its nodes.
  void describe(const std::string& model, const std::string& device, int threads);
  RunHasher* hasher() { return hasher_ ? &*hasher_ : nullptr; }
  /// Behind a run: warns, once, where no node fitted the pattern.
  void warn_where_none_fits();
  /// Behind all runs: writes the file, where one was asked for; warns as above.
  void finish();
  /// Was the run ended at a breakpoint?
  bool was_stopped() const { return watch_ && watch_->has_stopped(); }
  /// The nodes that --watch has shown, as a list; null without --watch.
  Json watched() { return options_.watch.empty() ? Json() : Json(std::move(watched_)); }

 private:
  WatchNext show(const NodeRun& run);
  WatchNext ask(const NodeRun& run);

  Session& session_;
  const ObserveOptions options_;
  RunHashes hashes_;
  Json::Array watched_;
  std::vector<std::string> names_;
  bool has_warned_ = false;
  std::optional<RunHasher> hasher_;
  std::optional<NodeWatch> watch_;
};

}  // namespace autograph::cli
