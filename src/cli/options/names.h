// Lists of names that options take: for completion and for did-you-mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command.h"

namespace autograph::cli {

/// Names to offer for an option of this kind; empty where anything goes.
std::vector<std::string> names_of(ValueKind kind);

/// Names outside of which a value is a mistake; empty where the library itself checks or anything goes.
std::vector<std::string> closed_names(ValueKind kind);

/// "model", "zoo_model", "task", "op", "strategy", "device": kinds whose names completion asks the program for; "" for
/// others.
std::string_view dynamic_kind(ValueKind kind);

}  // namespace autograph::cli
