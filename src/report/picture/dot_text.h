// Texts in graphviz's language.
#pragma once

#include <string>
#include <string_view>

namespace autograph {

/// Text inside a quoted string of the dot language, quotes included; line feeds break lines. Names in it must be
/// printable() already where they share it with line feeds.
std::string dot_quoted(std::string_view text);

/// The end of a name as printable() shows it, which tells neighbours apart; cut at a scope where there is one.
std::string shortened_name(std::string_view name, size_t limit);

}  // namespace autograph
