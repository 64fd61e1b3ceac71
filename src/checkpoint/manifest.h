// checkpoint.json: everything of a checkpoint but the elements of its tensors, and what their files must be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/checkpoint.h"
#include "autograph/hash.h"

namespace autograph {

inline constexpr const char* kManifestName = "checkpoint.json";
inline constexpr int64_t kMaxManifestBytes = int64_t{256} << 20;

/// A file of tensors.
struct ShardEntry {
  std::string name;
  int64_t bytes = 0;
  Hash128 hash = {};
};

struct Manifest {
  Checkpoint content;  ///< Without tensors.
  std::vector<ShardEntry> shards;
};

/// "tensors-00001-of-00003.safetensors"; `index` counts from 0.
std::string shard_name(size_t index, size_t count);

/// The text of the file. Throws ValueError where the step is negative, or where config is no JSON or a text no UTF-8.
std::string format_manifest(const Manifest& manifest);
/// Throws FormatError where the text is no manifest or its hash is another.
Manifest parse_manifest(std::string_view text);

}  // namespace autograph
