// What this program was built from: filled in by CMake.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace autograph::cli {

/// "0.1.0".
std::string version();
/// Compiler and its version, and the build type.
std::string compiler();
std::string build_type();
/// Libraries with the versions found when building.
std::vector<std::pair<std::string, std::string>> libraries();
/// Several lines for --version.
std::string version_text();

}  // namespace autograph::cli
