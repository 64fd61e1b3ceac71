// Calls the graphviz program `dot`.
#pragma once

#include <string>

namespace autograph::cli {

/// Lays out `dot_text` and returns the picture in `format` ("svg"). Throws IoError when the program is missing or
/// fails, and Error with ExitCode::timeout when it takes longer than `timeout_seconds`.
std::string run_graphviz(const std::string& dot_text, const std::string& format, double timeout_seconds);

}  // namespace autograph::cli
