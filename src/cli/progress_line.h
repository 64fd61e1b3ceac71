// The line that tells on a terminal how far a verb is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace autograph::cli {

/// "what  25 %"; `fraction` < 0: not known, "what".
std::string progress_text(std::string_view what, double fraction);

/// "what  25 % [#####---------------]" in less than `columns`: the bar takes the room that is left, what does not fit
/// is cut off, so that the line can be written over.
std::string progress_line(std::string_view what, double fraction, size_t columns);

/// Columns of the terminal behind the descriptor; 80 where it does not say.
size_t terminal_columns(int descriptor);

}  // namespace autograph::cli
