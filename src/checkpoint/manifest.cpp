// The file is {"hash": H, "content": {...}} where H is the hash of the content as it is printed without white space.
// Metrics are texts, because JSON has neither NaN nor infinities.
#include "checkpoint/manifest.h"

#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/text/read_number.h"

namespace autograph {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "autograph.checkpoint";
constexpr int kMaxDepth = 256;
constexpr int64_t kMaxShards = 99999;

// As Json::parse, of bounded depth: printing and destroying recurse.
Json parse_bounded(std::string_view text) {
  const auto callback = [](int depth, Json::parse_event_t, Json&) {
    AG_CHECK_USER(depth <= kMaxDepth, FormatError, "[checkpoint] JSON: nested deeper than {}", kMaxDepth);
    return true;
  };
  return Json::parse(text, callback);
}

Json parse_config(const std::string& config) {
  try {
    return parse_bounded(config);
  } catch (const Json::exception& error) {
    throw ValueError(fmt::format("[checkpoint] config: expected a JSON document, got: {}", printable(error.what())));
  } catch (const FormatError& error) {
    throw ValueError(error.what());
  }
}

// Members of the file, each with its type checked.
class Reader {
 public:
  explicit Reader(const Json& object) : object_(object) {
    AG_CHECK_USER(object.is_object(), FormatError, "[checkpoint] manifest: expected an object");
  }
  const Json& member(const char* key) const {
    const auto found = object_.find(key);
    AG_CHECK_USER(found != object_.end(), FormatError, "[checkpoint] manifest: '{}' is missing", key);
    return *found;
  }
  int64_t integer(const char* key) const {
    const Json& value = member(key);
    AG_CHECK_USER(value.is_number_integer() && value.get<int64_t>() >= 0, FormatError,
                  "[checkpoint] manifest: '{}': expected 0 or more, got {}", key, value.dump());
    return value.get<int64_t>();
  }
  std::string text(const char* key) const {
    const Json& value = member(key);
    AG_CHECK_USER(value.is_string(), FormatError, "[checkpoint] manifest: '{}': expected a text, got {}", key,
                  value.dump());
    return value.get<std::string>();
  }

 private:
  const Json& object_;
};

Hash128 to_hash(const std::string& text) {
  const auto hash = read_hash(text);
  AG_CHECK_USER(hash, FormatError, "[checkpoint] manifest: expected a hash of 32 digits, got '{}'", printable(text));
  return *hash;
}

double parse_metric(const std::string& text) {
  const auto value = read_number<double>(text);
  AG_CHECK_USER(value, FormatError, "[checkpoint] manifest: 'metric': expected a number, got '{}'", printable(text));
  return *value;
}

Manifest read_content(const Json& json) {
  const Reader reader(json);
  const std::string format = reader.text("format");
  AG_CHECK_USER(format == kFormat && reader.integer("version") == 1, FormatError,
                "[checkpoint] manifest: expected format '{}', version 1, got '{}'", kFormat, printable(format));
  Manifest manifest;
  Checkpoint& content = manifest.content;
  content.step = reader.integer("step");
  content.data = {reader.integer("epoch"), reader.integer("sample")};
  if (json.contains("metric")) content.metric = parse_metric(reader.text("metric"));
  const Json& random = reader.member("random");
  AG_CHECK_USER(random.is_object(), FormatError, "[checkpoint] manifest: 'random': expected an object");
  for (const auto& [name, value] : random.items()) content.random[name] = Reader(random).text(name.c_str());
  content.config = reader.member("config").dump();
  const Json& files = reader.member("files");
  AG_CHECK_USER(files.is_array() && static_cast<int64_t>(files.size()) <= kMaxShards, FormatError,
                "[checkpoint] manifest: 'files': expected a list");
  for (size_t i = 0; i < files.size(); ++i) {
    const Reader file(files[i]);
    manifest.shards.push_back({file.text("name"), file.integer("bytes"), to_hash(file.text("hash"))});
    // Nothing else: a name from a file must not lead out of the folder.
    AG_CHECK_USER(manifest.shards[i].name == shard_name(i, files.size()), FormatError,
                  "[checkpoint] manifest: expected file '{}', got '{}'", shard_name(i, files.size()),
                  printable(manifest.shards[i].name));
  }
  return manifest;
}

std::string hash_of(const Json& content) {
  const std::string text = content.dump();
  return to_string(hash_bytes(text.data(), text.size()));
}

}  // namespace

std::string shard_name(size_t index, size_t count) {
  return fmt::format("tensors-{:05}-of-{:05}.safetensors", index + 1, count);
}

std::string format_manifest(const Manifest& manifest) {
  const Checkpoint& content = manifest.content;
  AG_CHECK_USER(content.step >= 0, ValueError, "[checkpoint] step: expected 0 or more, got {}", content.step);
  AG_CHECK_USER(content.data.epoch >= 0 && content.data.sample >= 0, ValueError,
                "[checkpoint] data: expected 0 or more, got epoch {}, sample {}", content.data.epoch,
                content.data.sample);
  AG_CHECK_USER(static_cast<int64_t>(manifest.shards.size()) <= kMaxShards, ValueError,
                "[checkpoint] shard_bytes: expected at most {} files, got {}", kMaxShards, manifest.shards.size());
  Json json = {{"format", kFormat},
               {"version", 1},
               {"step", content.step},
               {"epoch", content.data.epoch},
               {"sample", content.data.sample},
               {"random", Json::object()},
               {"config", parse_config(content.config)},
               {"files", Json::array()}};
  if (content.metric) json["metric"] = fmt::format("{}", *content.metric);
  for (const auto& [name, state] : content.random) json["random"][name] = state;
  for (const ShardEntry& shard : manifest.shards) {
    json["files"].push_back({{"name", shard.name}, {"bytes", shard.bytes}, {"hash", to_string(shard.hash)}});
  }
  try {
    return Json{{"hash", hash_of(json)}, {"content", json}}.dump(1) + "\n";
  } catch (const Json::exception& error) {
    throw ValueError(fmt::format("[checkpoint] random: expected texts in UTF-8, got: {}", printable(error.what())));
  }
}

Manifest parse_manifest(std::string_view text) {
  Json file;
  try {
    file = parse_bounded(text);
  } catch (const Json::exception& error) {
    throw FormatError(fmt::format("[checkpoint] manifest: {}", printable(error.what())));
  }
  const Reader reader(file);
  const Json& content = reader.member("content");
  const std::string expected = reader.text("hash"), got = hash_of(content);
  AG_CHECK_USER(expected == got, FormatError, "[checkpoint] manifest: hash: expected {}, got {}", printable(expected),
                got);
  return read_content(content);
}

}  // namespace autograph
