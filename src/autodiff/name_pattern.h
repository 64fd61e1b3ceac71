// Names with * and ?.
#pragma once

#include <string_view>

namespace autograph {

/// Does `name` fit one of `patterns`, which commas separate? * stands for anything, ? for a character; "all" fits.
bool fits(std::string_view patterns, std::string_view name);

}  // namespace autograph
