// Whole files, in and out.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace autograph::io {

/// The content of a regular file; throws IoError when it cannot be read, FormatError when it has more than `max_bytes`.
std::string read_file(const std::string& path, int64_t max_bytes);

/// Writes the parts, one after the other, so that readers see the old content or the new, never a part: a temporary
/// file beside it, flushed to disk, then renamed. Throws IoError and leaves nothing behind.
void write_file(const std::string& path, std::span<const std::string_view> parts);
/// As above, for content that is in one piece.
void write_file(const std::string& path, std::string_view content);

}  // namespace autograph::io
