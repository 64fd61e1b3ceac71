#include "cli/options/parse.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>
#include <type_traits>

#include "autograph/devices.h"
#include "autograph/error.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "cli/options/names.h"

namespace autograph::cli {
namespace {

using AppMap = std::map<const Command*, CLI::App*>;
using OptionMap = std::map<const Option*, CLI::Option*>;

std::string assign_text(const Target& target, const std::string& text) {
  const bool converted = std::visit(
      [&]<class T>(T* value) {
        if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          *value = {text};
          return true;
        } else {
          return CLI::detail::lexical_cast(text, *value);
        }
      },
      target);
  return converted ? "" : "does not convert";
}

std::string value_text(const Target& target) {
  return std::visit(
      []<class T>(T* value) -> std::string {
        if constexpr (std::is_same_v<T, bool>) {
          return *value ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          return join(*value);
        } else {
          return fmt::format("{}", *value);
        }
      },
      target);
}

// Options take their value from the environment before the arguments are looked at, so that arguments win.
void apply_environment(const Command& command) {
  for (const Option& option : command.options) {
    const char* text = option.env.empty() ? nullptr : std::getenv(option.env.c_str());
    if (!text || !*text) continue;
    AG_CHECK_USER(assign_text(option.target, text).empty(), ValueError, "[cli] {}: expected a value for {}, got '{}'",
                  option.env, long_name(option), text);
  }
  for (const Command& nested : command.commands) apply_environment(nested);
}

// "" where `text` is a T.
template <class T>
std::string fault_of(const std::string& text) {
  T value{};
  if (CLI::detail::lexical_cast(text, value)) return "";
  return fmt::format("expected {}, got '{}'", std::is_integral_v<T> ? "an integer" : "a number", text);
}

CLI::Option* add_option(CLI::App& app, const Option& option) {
  return std::visit(
      [&]<class T>(T* value) -> CLI::Option* {
        if constexpr (std::is_same_v<T, bool>) {
          return app.add_flag(option.names, *value, option.doc);
        } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
          CLI::Option* added = app.add_option(option.names, *value, option.doc);
          return option.is_positional() ? added : added->allow_extra_args(false);
        } else {
          CLI::Option* added =
              app.add_option(option.names, *value, option.doc)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
          if constexpr (std::is_arithmetic_v<T>) added->check(fault_of<T>);
          return added;
        }
      },
      option.target);
}

void build(CLI::App& app, const Command& command, AppMap& apps, OptionMap& options) {
  apps[&command] = &app;
  // Nothing is required and extras are allowed: what is missing or too much is reported below, in our words.
  app.set_help_flag("");
  app.allow_extras();
  app.require_subcommand(0, 1);
  for (const Option& option : command.options) options[&option] = add_option(app, option);
  for (const Command& nested : command.commands)
    build(*app.add_subcommand(nested.name, nested.doc), nested, apps, options);
}

[[noreturn]] void fail_unknown(const std::vector<const Command*>& path, const std::string& word) {
  const Command& command = *path.back();
  std::vector<std::string> names;
  if (!word.empty() && word[0] == '-') {
    for (const Command* level : path) {
      for (const Option& option : level->options) {
        const auto all = spellings(option);
        if (!option.is_positional()) names.insert(names.end(), all.begin(), all.end());
      }
    }
    const std::string flag = word.substr(0, word.find('='));
    throw UserError(
        fmt::format("[cli] flag: '{}' does not know '{}'{}", command.name, flag, did_you_mean(flag, names)));
  }
  for (const Command& nested : command.commands) names.push_back(nested.name);
  if (names.empty()) throw UserError(fmt::format("[cli] argument: '{}' takes no '{}'", command.name, word));
  throw UserError(
      fmt::format("[cli] verb: expected one of {}, got '{}'{}", join(names, " "), word, did_you_mean(word, names)));
}

void check_extras(const std::vector<const Command*>& path, AppMap& apps) {
  for (const Command* level : path) {
    std::vector<std::string> extras = apps[level]->remaining();
    if (extras.empty()) continue;
    const auto flag = std::find_if(extras.begin(), extras.end(), [](const auto& word) { return word[0] == '-'; });
    const bool verb_is_missing = !level->commands.empty() && level == path.back();
    if (!verb_is_missing && flag != extras.end()) fail_unknown(path, *flag);
    // A word that stands before a verb, or that no argument takes.
    fail_unknown({level}, extras.front());
  }
}

void check_required(const Command& command, OptionMap& options) {
  if (!command.commands.empty()) {
    std::vector<std::string> names;
    for (const Command& nested : command.commands) names.push_back(nested.name);
    throw UserError(fmt::format("[cli] verb: expected one of {}, got none", join(names, " ")));
  }
  for (const Option& option : command.options) {
    if (!option.required || options[&option]->count() > 0) continue;
    throw UserError(fmt::format("[cli] {}: expected {}, got none (see autograph {} --help)", command.name,
                                option.is_positional() ? option.names : option.names + " " + option.value_name,
                                command.name));
  }
}

// Values out of a known list of names, with the nearest one for a typo.
void check_values(const Command& command) {
  for (const Option& option : command.options) {
    const auto* text = std::get_if<std::string*>(&option.target);
    if (!text || (*text)->empty()) continue;
    if (option.kind == ValueKind::device && is_device_name(**text)) continue;
    const std::vector<std::string> names =
        option.kind == ValueKind::choice ? option.choices : closed_names(option.kind);
    if (names.empty() || std::find(names.begin(), names.end(), **text) != names.end()) continue;
    const std::string hint = option.kind == ValueKind::device ? device_hint(**text) : did_you_mean(**text, names);
    throw UserError(
        fmt::format("[cli] {}: expected one of {}, got '{}'{}", long_name(option), join(names, " "), **text, hint));
  }
}

std::vector<Setting> settings_of(const Command& command, OptionMap& options) {
  std::vector<Setting> settings;
  for (const Option& option : command.options) {
    if (option.env.empty()) continue;
    const char* from_env = std::getenv(option.env.c_str());
    std::string origin = from_env && *from_env ? "env " + option.env : "default";
    if (options[&option]->count() > 0) origin = "flag " + spellings(option).back();
    settings.push_back({long_name(option), value_text(option.target), origin});
  }
  return settings;
}

}  // namespace

std::vector<std::string> spellings(const Option& option) {
  std::vector<std::string> all;
  for (size_t begin = 0; begin <= option.names.size();) {
    const size_t end = std::min(option.names.find(',', begin), option.names.size());
    all.push_back(option.names.substr(begin, end - begin));
    begin = end + 1;
  }
  return all;
}

std::string long_name(const Option& option) {
  const std::string last = spellings(option).back();
  return last.substr(std::min(last.find_first_not_of('-'), last.size()));
}

Invocation parse(const Command& root, const std::vector<std::string>& arguments,
                 const std::function<bool()>& only_informs) {
  apply_environment(root);
  CLI::App app(root.doc, root.name);
  AppMap apps;
  OptionMap options;
  build(app, root, apps, options);
  try {
    // CLI11 takes the arguments in reverse.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ValidationError& error) {
    throw UserError(fmt::format("[cli] {}", error.what()));
  } catch (const CLI::Error& error) {
    throw UserError(fmt::format("[cli] arguments: {}", error.what()));
  }
  Invocation invocation{.path = {&root}, .settings = {}};
  for (const Command* level = &root; level;) {
    const Command* next = nullptr;
    for (const Command& nested : level->commands) {
      if (apps[&nested]->parsed()) next = &nested;
    }
    if (next) invocation.path.push_back(next);
    level = next;
  }
  check_extras(invocation.path, apps);
  if (only_informs()) return invocation;
  check_required(*invocation.path.back(), options);
  check_values(*invocation.path.back());
  check_values(root);
  invocation.settings = settings_of(*invocation.path.back(), options);
  return invocation;
}

}  // namespace autograph::cli
