// One checkpoint as files in a folder.
#pragma once

#include <string>

#include "autograph/checkpoint.h"
#include "checkpoint/file_system.h"
#include "checkpoint/manifest.h"

namespace autograph {

/// Throws ValueError, TypeError or UnsupportedError where `checkpoint` cannot be written; writes nothing.
void check_content(const Checkpoint& checkpoint);
/// Writes it into `folder`, which is there and empty, and flushes the files and the folder.
void write_checkpoint_files(Checkpoints::FileSystem& files, const std::string& folder, const Checkpoint& checkpoint,
                            int64_t shard_bytes);
/// The manifest in `folder`. Throws FormatError or IoError.
Manifest read_manifest(Checkpoints::FileSystem& files, const std::string& folder);
/// All of it; throws FormatError where a file is not what the manifest says, or IoError.
Checkpoint read_checkpoint_files(Checkpoints::FileSystem& files, const std::string& folder);

}  // namespace autograph
