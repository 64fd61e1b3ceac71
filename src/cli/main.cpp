// The command line: parses, runs one verb, turns exceptions into exit codes. A client of the public API that converts
// and prints; what a verb knows about graphs it gets from the library and from report/.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <new>

#include "autograph/error.h"
#include "base/text/read_number.h"
#include "cli/build_info.h"
#include "cli/environment.h"
#include "cli/interrupt.h"
#include "cli/options/help.h"
#include "cli/options/parse.h"
#include "cli/progress_line.h"
#include "cli/session.h"
#include "cli/verbs.h"

namespace autograph::cli {
namespace {

std::string kind_of(ExitCode code) {
  switch (code) {
    case ExitCode::usage: return "usage";
    case ExitCode::malformed: return "malformed";
    case ExitCode::unsupported: return "unsupported";
    case ExitCode::over_budget: return "over_budget";
    case ExitCode::mismatch: return "mismatch";
    case ExitCode::device_unavailable: return "device_unavailable";
    case ExitCode::timeout: return "timeout";
    case ExitCode::peer_lost: return "peer_lost";
    case ExitCode::internal: return "internal";
    case ExitCode::interrupted: return "interrupted";
    case ExitCode::done:
    case ExitCode::failed: break;
  }
  return "failed";
}

// With --json stdout carries exactly one document, also when the verb fails.
int report(Session& session, ExitCode code, const std::string& message) {
  session.end_progress();
  session.error(message);
  if (code == ExitCode::usage) session.print_note();
  if (session.json() && !session.has_printed()) {
    Json error = Json::object();
    error.add("code", static_cast<int>(code)).add("kind", kind_of(code)).add("message", message);
    session.print({{"error", std::move(error)}}, "");
  }
  return static_cast<int>(code);
}

int guarded(Session& session, const std::function<int()>& body) {
  try {
    return body();
  } catch (const Error& error) {
    return report(session, error.exit_code(), error.what());
  } catch (const std::bad_alloc&) {
    return report(session, ExitCode::over_budget, "[cli] memory: the system has no more (a smaller batch needs less)");
  } catch (const std::exception& error) {
    return report(session, ExitCode::internal, fmt::format("[cli] unexpected: {} (a bug in AutoGraph)", error.what()));
  }
}

// Of help: as wide as is good to read, or as wide as the terminal.
size_t help_columns() {
  constexpr size_t kNarrowest = 40, kWidest = 100;
  size_t columns = isatty(STDOUT_FILENO) != 0 ? terminal_columns(STDOUT_FILENO) : kWidest;
  if (const char* text = std::getenv("COLUMNS")) columns = read_number<size_t>(text).value_or(columns);
  return std::clamp(columns, kNarrowest, kWidest);
}

int run(int argc, char** argv) {
  GlobalOptions globals;
  const Command program = make_program(global_option_table(globals));
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (!arguments.empty() && arguments.front() == "help") {  // `help VERB`, as others have it
    std::rotate(arguments.begin(), arguments.begin() + 1, arguments.end());
    arguments.back() = "--help";
  }
  Invocation invocation;
  // Errors of parsing itself are printed as the flags ask that could be seen without parsing.
  GlobalOptions early;
  early.json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  Session early_session(early);
  const int parsed = guarded(early_session, [&] {
    if (arguments.empty()) throw UserError("[cli] verb: expected one, got none (autograph --help lists them)");
    invocation = parse(program, arguments, [&] { return globals.help || globals.version; });
    return 0;
  });
  if (parsed != 0) return parsed;
  return guarded(early_session, [&] {
    Session session(globals);
    return guarded(session, [&] {
      session.program = &program;
      session.settings = invocation.settings;
      if (globals.version) return session.print_text(version_text()), 0;
      if (globals.help) return session.print_text(help_text(invocation.path, help_columns())), 0;
      for (const std::string& warning : environment_warnings(program)) session.warn(warning);
      return invocation.path.back()->run(session);
    });
  });
}

}  // namespace
}  // namespace autograph::cli

int main(int argc, char** argv) {
  autograph::cli::install_interrupt_handler();
  return autograph::cli::run(argc, argv);
}
