// Files that are written: whole or not at all, or into what stands there where that is no file.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace autograph {

/// Does `path` name something that takes what is written to it as it comes, so that no other file may take its place: a
/// device, a pipe, or a stream by its name in /dev, whatever that stands for (/dev/stdout, /dev/fd/3)?
bool is_written_in_place(const std::string& path);

/// Where the content of `path` lies: the file that it is a link to, else `path` itself.
std::string target_of(const std::string& path);

/// Writes the parts, one after the other, so that readers see the old content or the new, never a part: a temporary
/// file beside it, flushed to disk, then renamed. Links to files stay links; what is written in place gets the parts as
/// they come. Throws IoError and leaves nothing behind.
void write_file(const std::string& path, std::span<const std::string_view> parts);
/// As above, for content that is in one piece.
void write_file(const std::string& path, std::string_view content);

}  // namespace autograph
