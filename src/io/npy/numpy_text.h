// NumPy's arrays of texts: elements of one width, filled up with zeros. '<U5' is five UTF-32 characters, '|S5' five
// bytes.
#pragma once

#include <string>
#include <string_view>

#include "autograph/tensor.h"

namespace autograph::io {

/// Elements from `bytes`, `width` characters each; `bytes` has as many as `dims` needs. Throws FormatError when a
/// character is none of Unicode.
Tensor read_utf32(Dims dims, std::string_view bytes, int64_t width);

/// As above, one byte for each character, taken as they are.
Tensor read_bytes(Dims dims, std::string_view bytes, int64_t width);

/// Characters of the longest element, at least 1. Throws ValueError when an element is not valid UTF-8.
int64_t longest_text(const Tensor& texts);

/// All elements as UTF-32 of `width` characters.
std::string write_utf32(const Tensor& texts, int64_t width);

}  // namespace autograph::io
