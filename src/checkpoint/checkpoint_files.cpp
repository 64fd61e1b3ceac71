#include "checkpoint/checkpoint_files.h"

#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/hash_stream.h"
#include "base/printable.h"
#include "io/safetensors/format_safetensors.h"

namespace autograph {
namespace {

// Tensors in their order, cut into files of at most `shard_bytes`.
std::vector<SafeTensors> cut_into_shards(const NamedTensors& tensors, int64_t shard_bytes) {
  std::vector<SafeTensors> shards;
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) {
    const auto size = static_cast<int64_t>(tensor.size_bytes());
    if (shards.empty() || size > shard_bytes - bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    shards.back().tensors.emplace_back(name, tensor);
    bytes += size;
  }
  return shards;
}

void write_flushed(Checkpoints::FileSystem& files, const std::string& path, std::string_view bytes) {
  const auto file = files.create(path);
  file->write(bytes);
  file->sync();
  file->close();
}

ShardEntry write_shard(Checkpoints::FileSystem& files, const std::string& folder, std::string name,
                       const SafeTensors& shard) {
  const auto file = files.create(folder + "/" + name);
  ShardEntry entry{.name = std::move(name)};
  HashStream hash;
  const auto append = [&](std::string_view bytes) {
    file->write(bytes);
    hash.add(bytes);
    entry.bytes += static_cast<int64_t>(bytes.size());
  };
  append(io::format_safetensors_header(shard));
  for (const auto& [tensor_name, tensor] : shard.tensors) {
    if (tensor.size_bytes() > 0) append({static_cast<const char*>(tensor.raw()), tensor.size_bytes()});
  }
  file->sync();
  file->close();
  entry.hash = hash.finish();
  return entry;
}

}  // namespace

void check_content(const Checkpoint& checkpoint) {
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : checkpoint.tensors) {
    AG_CHECK_USER(tensor.is_present() && tensor.dtype() != DType::string, TypeError,
                  "[checkpoint] tensor '{}': expected numbers, got {}", printable(name), to_string(tensor.type()));
    AG_CHECK_USER(tensor.is_on_host(), TypeError, "[checkpoint] tensor '{}': expected a copy on the host (to_host())",
                  printable(name));
    AG_CHECK_USER(names.insert(name).second, ValueError, "[checkpoint] tensor '{}': the name is taken",
                  printable(name));
    AG_CHECK_USER(is_utf8(name), ValueError, "[checkpoint] tensor '{}': expected a name in UTF-8", printable(name));
  }
  io::format_safetensors_header({.tensors = checkpoint.tensors, .metadata = {}});
  Manifest manifest;
  manifest.content = {.step = checkpoint.step,
                      .data = checkpoint.data,
                      .random = checkpoint.random,
                      .config = checkpoint.config,
                      .metric = checkpoint.metric};
  format_manifest(manifest);
}

void write_checkpoint_files(Checkpoints::FileSystem& files, const std::string& folder, const Checkpoint& checkpoint,
                            int64_t shard_bytes) {
  const std::vector<SafeTensors> shards = cut_into_shards(checkpoint.tensors, shard_bytes);
  Manifest manifest;
  manifest.content = checkpoint;
  for (size_t i = 0; i < shards.size(); ++i) {
    manifest.shards.push_back(write_shard(files, folder, shard_name(i, shards.size()), shards[i]));
  }
  write_flushed(files, folder + "/" + kManifestName, format_manifest(manifest));
  files.sync_folder(folder);
}

Manifest read_manifest(Checkpoints::FileSystem& files, const std::string& folder) {
  return parse_manifest(files.read(folder + "/" + kManifestName, kMaxManifestBytes));
}

Checkpoint read_checkpoint_files(Checkpoints::FileSystem& files, const std::string& folder) {
  Manifest manifest = read_manifest(files, folder);
  std::set<std::string> names;
  for (const ShardEntry& shard : manifest.shards) {
    const std::string content = files.read(folder + "/" + shard.name, shard.bytes);
    AG_CHECK_USER(static_cast<int64_t>(content.size()) == shard.bytes, FormatError,
                  "[checkpoint] '{}': expected {} bytes, got {}", shard.name, shard.bytes, content.size());
    const Hash128 hash = hash_bytes(content.data(), content.size());
    AG_CHECK_USER(hash == shard.hash, FormatError, "[checkpoint] '{}': hash: expected {}, got {}", shard.name,
                  to_string(shard.hash), to_string(hash));
    for (auto& [name, tensor] : parse_safetensors(content).tensors) {
      AG_CHECK_USER(names.insert(name).second, FormatError, "[checkpoint] '{}': tensor '{}' stands in two files",
                    shard.name, printable(name));
      manifest.content.tensors.emplace_back(name, std::move(tensor));
    }
  }
  return std::move(manifest.content);
}

}  // namespace autograph
