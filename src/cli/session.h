// What every verb has at hand: the global flags, and the only ways to print. Results go to stdout (one JSON document
// with --json), everything else to stderr; escapes only where a terminal or CLICOLOR_FORCE asks for them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command.h"
#include "cli/options/parse.h"
#include "report/json.h"

namespace autograph::cli {

/// Flags that every verb takes.
struct GlobalOptions {
  bool help = false;
  bool version = false;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  std::string log;                ///< "+topic,-topic"
  std::string color = "auto";     ///< auto, always, never
  std::string progress = "auto";  ///< auto, plain, none
};

/// The global flags as options of a command.
std::vector<Option> global_option_table(GlobalOptions& options);

/// Topics of --log.
const std::vector<std::string>& log_topics();

/// One run of the program.
class Session {
 public:
  /// Reads the environment for colours and progress; throws UserError for an unknown topic in --log.
  explicit Session(const GlobalOptions& options);

  const GlobalOptions& options() const { return options_; }
  bool json() const { return options_.json; }
  /// May results for people contain escapes?
  bool stdout_escapes() const { return stdout_escapes_; }

  /// Prints the result: `document` (with "schema": 1 in front) with --json, else `text`.
  void print(Json::Object document, std::string_view text);
  /// Prints `text` on stdout as it is: for verbs whose result is a text.
  void print_text(std::string_view text);
  /// Was something printed on stdout?
  bool has_printed() const { return has_printed_; }

  /// "warning: ..." unless --quiet.
  void warn(std::string_view message) const;
  /// "error: ...".
  void error(std::string_view message) const;
  /// Something that explains a mistake of the user's, should one come to light later.
  void note_on_failure(std::string note) { note_ = std::move(note); }
  /// "note: ...", when there is one.
  void print_note() const;
  /// A line of a topic, when that topic is on.
  void log(std::string_view topic, std::string_view message) const;
  bool logs(std::string_view topic) const;
  /// Shows how far a verb is, on one line that is overwritten on a terminal or on lines of their own; at most ten a
  /// second. `fraction` < 0: not known.
  void progress(std::string_view what, double fraction);
  /// Removes the progress line.
  void end_progress();

  /// All arguments of the verb with their origins; see parse().
  std::vector<Setting> settings;
  /// Did the user give the option with this long name, by a flag or the environment? Only of options with a variable.
  bool is_given(std::string_view name) const;
  /// The whole option table; see command.h.
  const Command* program = nullptr;

 private:
  void parse_topics(std::string_view list);
  GlobalOptions options_;
  std::vector<std::string> topics_;
  std::string note_;
  bool stdout_escapes_ = false;
  bool stderr_escapes_ = false;
  bool stderr_is_terminal_ = false;
  bool has_printed_ = false;
  bool progress_shown_ = false;
  std::chrono::steady_clock::time_point last_progress_{};
};

/// Throws IoError unless a file at `path` can be made or written over: called before work whose result goes there.
void require_writable(const std::string& path);
/// Makes the folder when it is missing; throws IoError unless files can be made in it.
void require_writable_directory(const std::string& path);

}  // namespace autograph::cli
