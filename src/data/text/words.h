// The words that byte pairs stay in.
#pragma once

#include <string_view>

namespace autograph {

/// The first word of `text`, which is not empty: a run of letters (and bytes from 128), of digits or of other signs,
/// each with one space in front, or a run of white space, all of which but a space in front of another word. At most
/// kMaxWordBytes.
std::string_view first_word(std::string_view text);

/// Longer words are cut. No token is longer.
inline constexpr size_t kMaxWordBytes = 256;

}  // namespace autograph
