// Finds the known name nearest to what a user typed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace autograph {

/// Number of single-character edits (insert, delete, replace, swap of neighbours) between `a` and `b`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `typed`, or "" when none is near enough to be a plausible typo.
std::string nearest_name(std::string_view typed, const std::vector<std::string>& candidates);

/// " (did you mean 'x'?)", the name as printable() shows it, or "".
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& candidates);

/// The same; where no name is near, all of them, if they are few: " (there are: x, mask)".
std::string nearest_or_all(std::string_view typed, const std::vector<std::string>& candidates);

}  // namespace autograph
