#include "cli/environment.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>

#include "base/did_you_mean.h"

namespace autograph::cli {
namespace {

void collect(const Command& command, std::vector<std::string>& names) {
  for (const Option& option : command.options) {
    if (!option.env.empty()) names.push_back(option.env);
  }
  for (const Command& nested : command.commands) collect(nested, names);
}

}  // namespace

std::vector<std::string> environment_warnings(const Command& program) {
  std::vector<std::string> known{"AUTOGRAPH_CUDA_PATH"};  // read where libraries of NVIDIA's are looked for
  collect(program, known);
  std::vector<std::string> warnings;
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    if (!name.starts_with("AUTOGRAPH_") || std::find(known.begin(), known.end(), name) != known.end()) continue;
    warnings.push_back(fmt::format("environment variable {} is not known{}", name, did_you_mean(name, known)));
  }
  return warnings;
}

}  // namespace autograph::cli
