// Names come from files: what stands in them must neither steer a terminal nor break a document. Here is what is shown
// instead, the same everywhere.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace autograph {

/// Length of the well-formed UTF-8 sequence at the start of `text`; 0 when its first byte begins none.
size_t utf8_length(std::string_view text);

/// Is all of `text` well-formed UTF-8?
bool is_utf8(std::string_view text);

/// The number of one character, a well-formed UTF-8 sequence.
unsigned code_point(std::string_view character);

/// Is this one character (a well-formed UTF-8 sequence) a control character, a line separator or one that turns the
/// direction of what follows?
bool is_control(std::string_view character);

/// `text` as it may be shown: control characters as \n, \t, \r, \x1b or \u202e, bytes that are no UTF-8 as \xff. A
/// backslash stays, so that a text that was made printable stays as it is.
std::string printable(std::string_view text);

/// As printable(), in double quotes; quotes and backslashes in it have a backslash, so that where it ends is plain.
std::string quoted(std::string_view text);

/// As printable(), but line feeds stay: for messages of several lines, whose names have been made printable.
std::string printable_lines(std::string_view text);

}  // namespace autograph
