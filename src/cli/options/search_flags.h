// Flags of a search, and running one: progress, Ctrl-C, and what it found for people and as JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "autograph/search.h"
#include "cli/options/run_options.h"
#include "cli/session.h"
#include "cli/sources/model_source.h"

namespace autograph::cli {

/// --alpha, --gamma, --keep, --rounds, --max-streams, --candidates, --literal, --equality-graphs, --disable-rule,
/// --rules.
struct SearchFlags {
  SearchOptions options;
  std::string alpha = "auto";
  int64_t keep = SearchOptions().keep;
  int64_t rounds = SearchOptions().rounds;
  int64_t max_streams = 0;
  int64_t candidates = 0;
  std::string rules;  ///< A rules file; "": none.
};

/// They as an option table.
std::vector<Option> search_option_table(SearchFlags& flags);

/// The options of the library: these flags, and strategy, budget and seed of `run`.
SearchOptions search_options(const SearchFlags& flags, const RunOptions& run);

/// What the model gives, once, before anything is searched; of parts of it where that would take a larger share of the
/// budget, or Ctrl-C is pressed (in an InterruptScope).
std::shared_ptr<const Truth> find_truth(Session& session, const Graph& graph, const std::vector<Datum>& inputs,
                                        const CompileOptions& compile, const SearchOptions& options);

/// Searches with a progress line. A first Ctrl-C ends it with the best so far: see SearchReport::stop_reason. Extents
/// of the model that are symbols get numbers first.
Optimized search(Session& session, const LoadedModel& loaded, const CompileOptions& compile,
                 const SearchOptions& options);

/// Rewrites by name, most frequent first: rules_applied of the JSON document.
Json rules_json(const SearchReport& report);

/// The tables of --explain: each rewrite with where it was applied and what it gained, sums by rule, and trials.
std::string explain_text(const SearchReport& report, bool escapes);
/// The rewrites as JSON.
Json explain_json(const SearchReport& report);
/// The trials as JSON.
Json trials_json(const SearchReport& report);

/// The tables of --why: what the node became, the rewrites that made it, and what was tried there and lost.
std::string ledger_text(const SearchReport& report, bool escapes);
/// The entries of the ledger as JSON.
Json ledger_json(const NodeLedger& ledger);

}  // namespace autograph::cli
