// Texts in graphviz's language.
#pragma once

#include <string>
#include <string_view>

namespace autograph {

/// Text inside a quoted string of the dot language, quotes included.
std::string dot_quoted(std::string_view text);

/// The end of a name, which tells neighbours apart; cut at a scope where there is one.
std::string shortened_name(const std::string& text, size_t limit);

}  // namespace autograph
