// Completion scripts for bash, zsh and fish. Verbs and flags are written into the script; names that depend on the
// build or the machine (operators, models, strategies, devices) are asked for when Tab is pressed, through
// `autograph completion --values KIND`.
#include <fmt/format.h>

#include <functional>

#include "base/join.h"
#include "cli/options/help.h"
#include "cli/options/names.h"

namespace autograph::cli {
namespace {

using Visit = std::function<void(const std::string& path, const Command&)>;

void walk(const std::string& path, const Command& command, const Visit& visit) {
  visit(path, command);
  for (const Command& nested : command.commands) walk(path + " " + nested.name, nested, visit);
}

// Words that may follow `command`: nested verbs and flags.
std::vector<std::string> words_of(const Command& command) {
  std::vector<std::string> words;
  for (const Command& nested : command.commands) words.push_back(nested.name);
  for (const Option& option : command.options) {
    if (option.is_positional()) continue;
    const auto all = spellings(option);
    words.insert(words.end(), all.begin(), all.end());
  }
  return words;
}

const Option* first_positional(const Command& command) {
  for (const Option& option : command.options) {
    if (option.is_positional()) return &option;
  }
  return nullptr;
}

// Shell code for the values of an option: a call of the script's helper.
std::string bash_values(const Option& option) {
  if (!option.choices.empty()) return fmt::format("_autograph_words \"{}\"", join(option.choices, " "));
  const std::string_view kind = dynamic_kind(option.kind);
  if (!kind.empty()) return fmt::format("_autograph_values {}", kind);
  if (option.kind == ValueKind::directory) return "_autograph_files -d";
  if (option.kind == ValueKind::file) return "_autograph_files -f";
  return "COMPREPLY=()";
}

constexpr const char* kBashHead = R"sh(# bash completion for autograph; load with: source <(autograph completion bash)
_autograph_words() { COMPREPLY=($(compgen -W "$1" -- "$cur")); }
# A line for each name: names may have blanks in them.
_autograph_files() { mapfile -t COMPREPLY < <(compgen "$1" -- "$cur"); }
_autograph_values() {
  local names words
  names="$(autograph completion --values "$1" 2>/dev/null)"
  # bash splits words at colons: after "zoo:" only the part behind it is completed.
  if [[ "$before" == zoo: ]]; then names="${names//zoo:/}"; fi
  words=($(compgen -W "$names" -- "$cur"))
  if [[ "$1" == task || "$1" == model && "$before" != zoo: ]]; then _autograph_files -f; fi
  COMPREPLY=("${words[@]}" "${COMPREPLY[@]}")
}
_autograph() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" before="" path=autograph i
  COMPREPLY=()
  if [[ "$cur" == ":" ]]; then
    before="$prev:"; prev="${COMP_WORDS[COMP_CWORD-2]}"; cur=""
  elif [[ "$prev" == ":" && COMP_CWORD -ge 3 ]]; then
    before="${COMP_WORDS[COMP_CWORD-2]}:"; prev="${COMP_WORDS[COMP_CWORD-3]}"
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path ${COMP_WORDS[i]}" in
)sh";

std::string bash_script(const Command& program) {
  std::string paths;
  std::string values;
  std::string words;
  walk(program.name, program, [&](const std::string& path, const Command& command) {
    if (path != program.name) paths += fmt::format("{}\"{}\"", paths.empty() ? "      " : " | ", path);
    for (const Option& option : command.options) {
      if (option.is_positional() || option.is_flag()) continue;
      for (const std::string& name : spellings(option)) {
        values += fmt::format("    \"{}:{}\") {}; return ;;\n", path, name, bash_values(option));
      }
    }
    const Option* positional = first_positional(command);
    const std::string list = join(words_of(command), " ");
    words += positional
                 ? fmt::format("    \"{}\") if [[ \"$cur\" == -* ]]; then _autograph_words \"{}\"; else {}; fi ;;\n",
                               path, list, bash_values(*positional))
                 : fmt::format("    \"{}\") _autograph_words \"{}\" ;;\n", path, list);
  });
  return kBashHead + paths + ") path=\"$path ${COMP_WORDS[i]}\" ;;\n    esac\n  done\n  case \"$path:$prev\" in\n" +
         values + "  esac\n  case \"$path\" in\n" + words +
         "  esac\n}\ncomplete -o filenames -F _autograph autograph\n";
}

// ---- zsh -------------------------------------------------------------------------------------------------------

// Text inside single quotes of a zsh _arguments specification.
std::string zsh_escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result;
}

std::string zsh_action(const Option& option) {
  if (!option.choices.empty()) return "(" + join(option.choices, " ") + ")";
  const std::string_view kind = dynamic_kind(option.kind);
  if (!kind.empty()) return fmt::format("_autograph_values {}", kind);
  if (option.kind == ValueKind::directory) return "_files -/";
  return option.kind == ValueKind::file ? "_files" : " ";
}

std::string zsh_function(const std::string& path) {
  std::string name = "_" + path;
  for (char& c : name) {
    if (c == ' ') c = '_';
  }
  return name;
}

std::string zsh_arguments(const Command& command) {
  std::string text;
  for (const Option& option : command.options) {
    if (option.is_positional()) {
      text += fmt::format(" \\\n    '{}:{}:{}'", option.required ? "" : ":", option.names, zsh_action(option));
      continue;
    }
    for (const std::string& name : spellings(option)) {
      text += fmt::format(" \\\n    '{}[{}]", name, zsh_escaped(option.doc));
      text += option.is_flag() ? "'" : fmt::format(":{}:{}'", zsh_escaped(option.value_name), zsh_action(option));
    }
  }
  return text;
}

std::string zsh_script(const Command& program) {
  std::string text = R"sh(#compdef autograph
# zsh completion for autograph; put it into a folder of $fpath as _autograph.
_autograph_values() {
  local -a names
  names=(${(f)"$(autograph completion --values $1 2>/dev/null)"})
  compadd -a names
  [[ $1 == model || $1 == task ]] && _files
}
)sh";
  walk(program.name, program, [&](const std::string& path, const Command& command) {
    text += fmt::format("{}() {{\n", zsh_function(path));
    if (command.commands.empty()) {
      text += "  _arguments" + zsh_arguments(command) + "\n}\n";
      return;
    }
    text += "  local curcontext=$curcontext state line\n  _arguments -C" + zsh_arguments(command) +
            " \\\n    '1: :->verb' '*:: :->rest'\n  case $state in\n    verb)\n      local -a verbs=(";
    for (const Command& nested : command.commands)
      text += fmt::format(" '{}:{}'", nested.name, zsh_escaped(nested.doc));
    text += ")\n      _describe verb verbs ;;\n    rest)\n      case $line[1] in\n";
    for (const Command& nested : command.commands) {
      text += fmt::format("        {}) {} ;;\n", nested.name, zsh_function(path + " " + nested.name));
    }
    text += "      esac ;;\n  esac\n}\n";
  });
  return text + "_autograph \"$@\"\n";
}

// ---- fish ------------------------------------------------------------------------------------------------------

std::string fish_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_values(const Option& option) {
  if (!option.choices.empty()) return " -x -a " + fish_quoted(join(option.choices, " "));
  const std::string_view kind = dynamic_kind(option.kind);
  const bool also_files = option.kind == ValueKind::model || option.kind == ValueKind::task;
  if (!kind.empty())
    return fmt::format(" {} -a '(autograph completion --values {} 2>/dev/null)'", also_files ? "-r -F" : "-x", kind);
  if (option.kind == ValueKind::directory) return " -x -a '(__fish_complete_directories)'";
  return option.kind == ValueKind::file ? " -r -F" : " -x";
}

std::string fish_script(const Command& program) {
  std::string text = "# fish completion for autograph; load with: autograph completion fish | source\n";
  walk(program.name, program, [&](const std::string& path, const Command& command) {
    std::string condition;
    std::vector<std::string> nested_names;
    for (const Command& nested : command.commands) nested_names.push_back(nested.name);
    const std::string unseen = fmt::format("not __fish_seen_subcommand_from {}", join(nested_names, " "));
    if (path == program.name) {
      condition = "__fish_use_subcommand";
    } else {
      condition = "__fish_seen_subcommand_from " + command.name + (nested_names.empty() ? "" : "; and " + unseen);
    }
    const std::string head = "complete -c autograph -n " + fish_quoted(condition);
    for (const Command& nested : command.commands) {
      text += fmt::format("{} -f -a {} -d {}\n", head, nested.name, fish_quoted(nested.doc));
    }
    for (const Option& option : command.options) {
      if (option.is_positional()) {
        if (option.kind != ValueKind::text) text += head + fish_values(option) + "\n";
        continue;
      }
      std::string names;
      for (const std::string& name : spellings(option)) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      text += head + names + (option.is_flag() ? "" : fish_values(option)) + " -d " + fish_quoted(option.doc) + "\n";
    }
  });
  return text;
}

}  // namespace

std::string completion_script(const Command& program, const std::string& shell) {
  if (shell == "bash") return bash_script(program);
  return shell == "zsh" ? zsh_script(program) : fish_script(program);
}

}  // namespace autograph::cli
