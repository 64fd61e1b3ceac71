// Names: patterns with * and ?, and names that are free.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace autograph {

/// Does `name` fit one of `patterns`, which commas separate? * stands for anything, ? for a character; "all" fits.
bool fits(std::string_view patterns, std::string_view name);

/// `wanted`, or "wanted_2", "wanted_3"... where that is among `taken`, to which the name is added.
std::string take_name(std::set<std::string>& taken, const std::string& wanted);

}  // namespace autograph
