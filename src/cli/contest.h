// Several ways of running models, optimised one after the other and measured in turns: what compare and ablate share.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "cli/execute.h"
#include "cli/options/search_flags.h"

namespace autograph::cli {

/// "a,b,c" -> {"a", "b", "c"}; throws UserError for an empty part.
std::vector<std::string> split_list(const std::string& text, const char* what);
/// As split_list(), as whole numbers of at least 1.
std::vector<int64_t> split_numbers(const std::string& text, const char* what);

/// One way.
struct Entrant {
  std::string name;
  SearchOptions search;
  std::vector<std::string> without_passes = {};  ///< Passes that are left out, besides those that nobody has.
};

/// What came of it.
struct Result {
  std::string name;
  double latency_ms = 0;
  std::array<double, 2> halves_ms = {};  ///< The same of every other making of the plans: by chance each has its best.
  int streams = 1;
  Difference difference;  ///< From the model as it was.
  SearchReport report;
  std::string same_as;  ///< The first entrant that has the same plan; "" when that is this one.
};

/// Optimises `loaded` in each way and measures the results in turns on seeded inputs, `seconds` each. Equal plans are
/// measured once: on a busy machine two measurements of one plan differ by more than plans do. All are compiled three
/// times, since where memory lies matters, too. Every search begins with a copy of the cache as it is: the order of the
/// entrants tells nothing. On a simulated device latencies are those of its clock. Ctrl-C ends it:
/// throws Error with ExitCode::interrupted.
std::vector<Result> hold_contest(Session& session, LoadedModel loaded, const RunOptions& run,
                                 const std::vector<Entrant>& entrants, double seconds);

/// Is the device simulated? Then tells so in a sentence for people, else "".
std::string simulation_note(const std::string& device);

}  // namespace autograph::cli
