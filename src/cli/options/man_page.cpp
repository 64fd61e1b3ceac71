// The manual page as roff (man macros), made from the option table.
#include <fmt/format.h>

#include "base/join.h"
#include "cli/options/help.h"

namespace autograph::cli {
namespace {

// Backslashes, dashes and leading dots mean something to roff.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += std::string("\\&") + c;
    } else {
      result += c;
    }
  }
  return result;
}

void append_option(std::string& page, const Option& option) {
  std::string left = "\\fB" + escaped(join(spellings(option), ", ")) + "\\fR";
  if (!option.value_name.empty()) left += " \\fI" + escaped(option.value_name) + "\\fR";
  page += ".TP\n" + left + "\n" + escaped(option.doc) + "\n";
  if (!option.env.empty()) page += "Environment: \\fB" + escaped(option.env) + "\\fR.\n";
}

void append_command(std::string& page, const std::string& path, const Command& command) {
  page += fmt::format(".SS \"{}\"\n{}.\n", escaped(path), escaped(command.doc));
  if (!command.details.empty()) page += ".PP\n" + escaped(command.details) + "\n";
  for (const Option& option : command.options) {
    if (!option.common) append_option(page, option);
  }
  for (const Example& example : command.examples) {
    page += ".PP\n.B " + escaped(example.command) + "\n.RS\n" + escaped(example.doc) + "\n.RE\n";
  }
  for (const Command& nested : command.commands) append_command(page, path + " " + nested.name, nested);
}

constexpr const char* kExitStatus = R"(.SH "EXIT STATUS"
.TS
tab(:);
r l.
0:done
1:the run failed
2:usage
3:malformed model or file
4:unsupported operator, opset or dtype
5:out of a budget (memory, time, nodes)
6:numbers differ
7:device not available
8:timeout
9:a distributed peer was lost
70:a bug in AutoGraph
130:interrupted
.TE
)";

}  // namespace

std::string man_page(const Command& program, const std::string& version) {
  std::string page = "'\\\" t\n" + fmt::format(".TH AUTOGRAPH 1 \"\" \"AutoGraph {}\" \"User Commands\"\n", version);
  page += ".SH NAME\nautograph \\- " + escaped(program.doc) + "\n.SH SYNOPSIS\n.B autograph\n.I VERB\n[options]\n";
  page += ".SH DESCRIPTION\n" + escaped(program.details) + "\n.SH VERBS\n";
  for (const Command& verb : program.commands) append_command(page, verb.name, verb);
  page += ".SH \"OPTIONS OF EVERY VERB\"\n";
  for (const Option& option : program.options) append_option(page, option);
  return page + kExitStatus;
}

}  // namespace autograph::cli
