// What a fuzz target implements. The driver calls it and allows UserError and UnsupportedError to come out, nothing
// else: an InternalError or a crash is a finding.
#pragma once

#include <string_view>

namespace autograph::fuzz {

/// Handles one input.
void run(std::string_view bytes);

}  // namespace autograph::fuzz
