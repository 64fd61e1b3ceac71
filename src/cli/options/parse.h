// Turns an argument vector into filled-in options. CLI11 does the splitting and converting; what is wrong is reported
// in our words, with the nearest right spelling.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options/command.h"

namespace autograph::cli {

/// The value of an option that has an environment variable, and where it came from.
struct Setting {
  std::string name;    ///< Long name of the option.
  std::string value;   ///< As text.
  std::string origin;  ///< "flag --threads", "env AUTOGRAPH_NUM_THREADS" or "default".
};

/// What was asked for.
struct Invocation {
  std::vector<const Command*> path;  ///< The program, the verb, a nested verb.
  std::vector<Setting> settings;     ///< Of the options of the last command that have an environment variable.
};

/// Fills in the targets of `root` and its commands: from the environment first, then from the arguments. Throws
/// UserError for what does not parse. Missing arguments are no error when
/// `only_informs()` says, after parsing, that --help or the like was given.
Invocation parse(const Command& root, const std::vector<std::string>& arguments,
                 const std::function<bool()>& only_informs);

}  // namespace autograph::cli
