// --loss: every verb that differentiates takes the same losses.
#pragma once

#include <string>

#include "cli/options/command.h"

namespace autograph::cli {

/// The flag; what it may be stands between `before` and `after`, which says what it is when not given.
Option loss_option(std::string& target, const std::string& before, const std::string& after);

}  // namespace autograph::cli
