// The AUTOGRAPH_* environment variables: which there are, and which are set but unknown.
#pragma once

#include <string>
#include <vector>

#include "cli/options/command.h"

namespace autograph::cli {

/// One text for every AUTOGRAPH_* variable that no option reads, with the nearest name that one does.
std::vector<std::string> environment_warnings(const Command& program);

}  // namespace autograph::cli
