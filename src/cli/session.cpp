#include "cli/session.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "autograph/error.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/files/output_file.h"
#include "base/join.h"
#include "base/printable.h"
#include "cli/progress_line.h"

namespace autograph::cli {
namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value && *value;
}

// --color wins; then NO_COLOR; then CLICOLOR_FORCE (any value but 0); then whether it is a terminal that knows escapes.
bool wants_escapes(const std::string& when, bool is_terminal) {
  if (when != "auto") return when == "always";
  if (is_set("NO_COLOR")) return false;
  if (is_set("CLICOLOR_FORCE") && std::strcmp(std::getenv("CLICOLOR_FORCE"), "0") != 0) return true;
  const char* term = std::getenv("TERM");
  return is_terminal && !(term && std::strcmp(term, "dumb") == 0);
}

void write_all(std::FILE* stream, std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stream) == text.size() && std::fflush(stream) == 0;
  AG_CHECK_USER(written, IoError, "[cli] stdout: cannot write ({})", std::strerror(errno));
}

}  // namespace

const std::vector<std::string>& log_topics() {
  static const std::vector<std::string> topics = {"load", "compile", "search", "kernels", "plan", "time"};
  return topics;
}

std::vector<Option> global_option_table(GlobalOptions& options) {
  return {
      {.names = "-h,--help", .doc = "Show help and exit.", .target = &options.help},
      {.names = "--version", .doc = "Show version, compiler and libraries and exit.", .target = &options.version},
      {.names = "--json", .doc = "Print one JSON document on stdout instead of tables.", .target = &options.json},
      {.names = "-q,--quiet", .doc = "No warnings and no progress.", .target = &options.quiet},
      {.names = "-v,--verbose", .doc = "Log what happens (topics load, compile, time).", .target = &options.verbose},
      {.names = "--log",
       .value_name = "TOPICS",
       .doc = "Topics to log, for example +kernels,-time; one of " + join(log_topics(), " ") + ".",
       .target = &options.log,
       .env = "AUTOGRAPH_LOG"},
      {.names = "--color",
       .value_name = "WHEN",
       .doc = "Escapes for colours: auto, always or never; NO_COLOR and CLICOLOR_FORCE are respected.",
       .target = &options.color,
       .kind = ValueKind::choice,
       .choices = {"auto", "always", "never"}},
      {.names = "--progress",
       .value_name = "HOW",
       .doc = "Progress on stderr: auto (a terminal only), plain (lines) or none.",
       .target = &options.progress,
       .kind = ValueKind::choice,
       .choices = {"auto", "plain", "none"}},
  };
}

Session::Session(const GlobalOptions& options) : options_(options) {
  stderr_is_terminal_ = isatty(STDERR_FILENO) != 0;
  stdout_escapes_ = wants_escapes(options.color, isatty(STDOUT_FILENO) != 0);
  stderr_escapes_ = wants_escapes(options.color, stderr_is_terminal_);
  if (options.verbose) topics_ = {"load", "compile", "time"};
  parse_topics(options.log);
}

void Session::parse_topics(std::string_view list) {
  while (!list.empty()) {
    const std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(item.size() + 1, list.size()));
    const bool off = item.starts_with('-');
    const std::string topic(item.substr(off || item.starts_with('+') ? 1 : 0));
    if (topic.empty()) continue;
    const auto& known = log_topics();
    AG_CHECK_USER(std::find(known.begin(), known.end(), topic) != known.end(), UserError,
                  "[cli] log: expected a topic of {}, got '{}'{}", join(known, " "), topic, did_you_mean(topic, known));
    std::erase(topics_, topic);
    if (!off) topics_.push_back(topic);
  }
}

void Session::print(Json::Object document, std::string_view text) {
  if (!options_.json) return print_text(text);
  document.insert(document.begin(), {"schema", Json(1)});
  print_text(Json::object(std::move(document)).dump() + "\n");
}

void Session::print_text(std::string_view text) {
  end_progress();
  has_printed_ = true;
  write_all(stdout, text);
}

bool Session::is_given(std::string_view name) const {
  return std::any_of(settings.begin(), settings.end(),
                     [&](const Setting& setting) { return setting.name == name && setting.origin != "default"; });
}

void Session::warn(std::string_view message) const {
  if (options_.quiet) return;
  fmt::print(stderr, "{}warning:{} {}\n", stderr_escapes_ ? "\033[33m" : "", stderr_escapes_ ? "\033[0m" : "",
             printable(message));
}

void Session::error(std::string_view message) const {
  fmt::print(stderr, "{}error:{} {}\n", stderr_escapes_ ? "\033[31m" : "", stderr_escapes_ ? "\033[0m" : "",
             printable_lines(message));
}

void Session::print_note() const {
  if (!note_.empty()) fmt::print(stderr, "note: {}\n", printable(note_));
}

bool Session::logs(std::string_view topic) const {
  return std::find(topics_.begin(), topics_.end(), topic) != topics_.end();
}

void Session::log(std::string_view topic, std::string_view message) const {
  if (logs(topic)) fmt::print(stderr, "[{}] {}\n", topic, printable(message));
}

void Session::progress(std::string_view what, double fraction) {
  const bool plain = options_.progress == "plain";
  if (options_.quiet || options_.progress == "none" || (!plain && !stderr_is_terminal_)) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_progress_ < std::chrono::milliseconds(plain ? 1000 : 100)) return;
  last_progress_ = now;
  const std::string text =
      plain ? progress_text(what, fraction) : progress_line(what, fraction, terminal_columns(STDERR_FILENO));
  fmt::print(stderr, "{}{}{}", plain ? "" : "\r", text, plain ? "\n" : "\033[K");
  std::fflush(stderr);
  progress_shown_ = !plain;
}

void Session::end_progress() {
  if (progress_shown_) fmt::print(stderr, "\r\033[K");
  progress_shown_ = false;
}

// ---- Output files ----------------------------------------------------------------------------------------------

void require_writable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (is_written_in_place(path)) {
    AG_CHECK_USER(access(path.c_str(), W_OK) == 0, IoError, "[cli] output: cannot write '{}' ({})", path,
                  std::strerror(errno));
    return;
  }
  const fs::path parent = fs::path(target_of(path)).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  AG_CHECK_USER(!fs::is_directory(path, code), IoError, "[cli] output: expected a file, got the folder '{}'", path);
  AG_CHECK_USER(fs::is_directory(folder, code), IoError, "[cli] output: no folder '{}' for '{}'", folder, path);
  const bool replaces = fs::exists(path, code);
  AG_CHECK_USER(access(folder.c_str(), W_OK | X_OK) == 0 && (!replaces || access(path.c_str(), W_OK) == 0), IoError,
                "[cli] output: cannot write '{}' ({})", path, std::strerror(errno));
}

void require_writable_directory(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  const std::error_code made = code;
  AG_CHECK_USER(std::filesystem::is_directory(path, code), IoError, "[cli] output: cannot make the folder '{}' ({})",
                path, made.message());
  AG_CHECK_USER(access(path.c_str(), W_OK | X_OK) == 0, IoError, "[cli] output: cannot write into '{}' ({})", path,
                std::strerror(errno));
}

}  // namespace autograph::cli
