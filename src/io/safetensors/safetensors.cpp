// The safetensors format: u64 length of a JSON header, the header, then one buffer that the tensors tile without gap or
// overlap. Header: {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"k": "v"}}.
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "base/files/output_file.h"
#include "base/printable.h"
#include "base/rethrow.h"
#include "io/file.h"
#include "io/safetensors/format_safetensors.h"

namespace autograph {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxFileBytes = int64_t{1} << 40;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int kMaxJsonDepth = 4;
constexpr size_t kLengthBytes = 8;
constexpr const char* kMetadata = "__metadata__";

struct Name {
  std::string_view text;
  DType dtype;
};

constexpr Name kNames[] = {
    {"F32", DType::f32},      {"F64", DType::f64},          {"F16", DType::f16},        {"BF16", DType::bf16},
    {"I8", DType::i8},        {"I16", DType::i16},          {"I32", DType::i32},        {"I64", DType::i64},
    {"U8", DType::u8},        {"U16", DType::u16},          {"U32", DType::u32},        {"U64", DType::u64},
    {"BOOL", DType::boolean}, {"F8_E4M3", DType::f8e4m3fn}, {"F8_E5M2", DType::f8e5m2}, {"F8_E8M0", DType::f8e8m0},
    {"C64", DType::c64},
};

struct Entry {
  std::string name;
  DType dtype = DType::undefined;
  Dims dims = {};
  uint64_t begin = 0;
  uint64_t end = 0;
};

Json parse_header(std::string_view text) {
  AG_CHECK_USER(!text.empty() && text.front() == '{', FormatError,
                "[safetensors] header: expected it to begin with '{{'");
  std::set<std::string> names;
  const auto callback = [&names](int depth, Json::parse_event_t event, Json& parsed) {
    AG_CHECK_USER(depth <= kMaxJsonDepth, FormatError, "[safetensors] header: nested deeper than {}", kMaxJsonDepth);
    if (event == Json::parse_event_t::key && depth == 1) {
      const auto& name = parsed.get_ref<const std::string&>();
      AG_CHECK_USER(names.insert(name).second, FormatError, "[safetensors] tensor '{}': appears twice", name);
    }
    return true;
  };
  try {
    Json header = Json::parse(text, callback);
    AG_CHECK_USER(header.is_object(), FormatError, "[safetensors] header: expected an object");
    return header;
  } catch (const Json::exception& error) {
    throw FormatError(fmt::format("[safetensors] header: {}", error.what()));
  }
}

uint64_t read_unsigned(const Json& value, const std::string& name, const char* what) {
  AG_CHECK_USER(value.is_number_unsigned(), FormatError,
                "[safetensors] tensor '{}': {}: expected integers of 0 or more", name, what);
  return value.get<uint64_t>();
}

Entry read_entry(const std::string& name, const Json& json) {
  const auto is_list = [&json](const char* key) { return json.contains(key) && json[key].is_array(); };
  const bool complete = json.is_object() && json.size() == 3 && json.contains("dtype") && json["dtype"].is_string() &&
                        is_list("shape") && is_list("data_offsets") && json["data_offsets"].size() == 2;
  AG_CHECK_USER(complete, FormatError, "[safetensors] tensor '{}': expected dtype, shape and two data_offsets", name);
  Entry entry{.name = name};
  const auto& dtype = json["dtype"].get_ref<const std::string&>();
  for (const Name& known : kNames) {
    if (known.text == dtype) entry.dtype = known.dtype;
  }
  AG_CHECK_USER(entry.dtype != DType::undefined, UnsupportedError, "[safetensors] tensor '{}': dtype '{}' is unknown",
                name, dtype);
  int64_t bytes = static_cast<int64_t>(element_size(entry.dtype));
  for (const Json& extent : json["shape"]) {
    const uint64_t value = read_unsigned(extent, name, "shape");
    AG_CHECK_USER(value <= static_cast<uint64_t>(INT64_MAX), FormatError,
                  "[safetensors] tensor '{}': shape: {} is too large", name, value);
    entry.dims.push_back(static_cast<int64_t>(value));
    const auto product = find_product(bytes, entry.dims.back());
    AG_CHECK_USER(product, FormatError, "[safetensors] tensor '{}': its size overflows 64 bits", name);
    bytes = *product;
  }
  entry.begin = read_unsigned(json["data_offsets"][0], name, "data_offsets");
  entry.end = read_unsigned(json["data_offsets"][1], name, "data_offsets");
  AG_CHECK_USER(entry.begin <= entry.end && entry.end - entry.begin == static_cast<uint64_t>(bytes), FormatError,
                "[safetensors] tensor '{}': data_offsets: expected {} bytes for {}{}, got {}..{}", name, bytes,
                to_string(entry.dtype), to_string(entry.dims), entry.begin, entry.end);
  return entry;
}

void check_tiling(std::vector<Entry> entries, uint64_t size) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    AG_CHECK_USER(entry.begin == at, FormatError, "[safetensors] tensor '{}': begins at {}, expected {}", entry.name,
                  entry.begin, at);
    at = entry.end;
  }
  AG_CHECK_USER(at == size, FormatError, "[safetensors] buffer: the tensors take {} bytes, the file has {}", at, size);
}

Tensor read_elements(const Entry& entry, std::string_view buffer) {
  Tensor tensor = Tensor::empty(entry.dtype, entry.dims);
  const size_t size = entry.end - entry.begin;
  if (size > 0) std::memcpy(tensor.mutable_raw(), buffer.data() + entry.begin, size);
  if (entry.dtype == DType::boolean) {
    auto* flags = static_cast<uint8_t*>(tensor.mutable_raw());
    for (size_t i = 0; i < size; ++i) flags[i] = flags[i] != 0;
  }
  return tensor;
}

std::string_view name_of(DType dtype) {
  for (const Name& known : kNames) {
    if (known.dtype == dtype) return known.text;
  }
  throw UnsupportedError(fmt::format("[safetensors] dtype {} cannot be written", to_string(dtype)));
}

// Bytes of the header, by the eight in front of it.
uint64_t header_length(std::string_view front, uint64_t file_bytes) {
  AG_CHECK_USER(file_bytes >= kLengthBytes, FormatError, "[safetensors] file: {} bytes are too few", file_bytes);
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<uint64_t>(static_cast<uint8_t>(front[i])) << (8 * i);
  AG_CHECK_USER(length <= kMaxHeaderBytes && length <= file_bytes - kLengthBytes, FormatError,
                "[safetensors] header: {} bytes do not fit into a file of {}", length, file_bytes);
  return length;
}

std::map<std::string, std::string> metadata_of(const Json& header) {
  std::map<std::string, std::string> metadata;
  const auto found = header.find(kMetadata);
  if (found == header.end()) return metadata;
  AG_CHECK_USER(found->is_object(), FormatError, "[safetensors] __metadata__: expected an object");
  for (const auto& [key, text] : found->items()) {
    AG_CHECK_USER(text.is_string(), FormatError, "[safetensors] __metadata__ '{}': expected a text", key);
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

SafeTensors parse_content(std::string_view bytes) {
  const uint64_t length = header_length(bytes, bytes.size());
  const Json header = parse_header(bytes.substr(kLengthBytes, length));
  const std::string_view buffer = bytes.substr(kLengthBytes + length);
  SafeTensors content{.tensors = {}, .metadata = metadata_of(header)};
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name != kMetadata) entries.push_back(read_entry(name, value));
  }
  check_tiling(entries, buffer.size());
  for (const Entry& entry : entries) content.tensors.emplace_back(entry.name, read_elements(entry, buffer));
  return content;
}

std::map<std::string, std::string> read_metadata(const std::string& path) {
  const io::InputFile file(path);
  std::string front(kLengthBytes, '\0');
  file.read_some(0, front.data(), front.size());
  std::string header(header_length(front, static_cast<uint64_t>(file.size_bytes())), '\0');
  file.read(kLengthBytes, header.data(), header.size());
  return metadata_of(parse_header(header));
}

}  // namespace

SafeTensors parse_safetensors(std::string_view bytes) {
  return with_printable_messages([&] { return parse_content(bytes); });
}

std::map<std::string, std::string> read_safetensors_metadata(const std::string& path) {
  return with_printable_messages([&] { return read_metadata(path); });
}

SafeTensors read_safetensors(const std::string& path) { return parse_safetensors(io::read_file(path, kMaxFileBytes)); }

std::string io::format_safetensors_header(const SafeTensors& content) {
  Json header = Json::object();
  for (const auto& [key, value] : content.metadata) {
    AG_CHECK_USER(is_utf8(key) && is_utf8(value), ValueError, "[safetensors] metadata '{}': expected UTF-8, got '{}'",
                  printable(key), printable(value));
  }
  if (!content.metadata.empty()) header[kMetadata] = content.metadata;
  uint64_t at = 0;
  for (const auto& [name, tensor] : content.tensors) {
    AG_CHECK_USER(name != kMetadata && !header.contains(name), ValueError,
                  "[safetensors] tensor '{}': the name is taken", printable(name));
    AG_CHECK_USER(is_utf8(name), ValueError, "[safetensors] tensor '{}': expected a name in UTF-8", printable(name));
    const uint64_t end = at + tensor.size_bytes();
    header[name] = {{"dtype", name_of(tensor.dtype())}, {"shape", tensor.dims()}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // aligns the buffer
  std::string bytes;
  for (size_t i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(text.size() >> (8 * i)));
  return bytes + text;
}

void write_safetensors(const std::string& path, const SafeTensors& content) {
  const std::string header = io::format_safetensors_header(content);
  std::vector<std::string_view> parts{header};
  for (const auto& [name, tensor] : content.tensors)
    parts.emplace_back(static_cast<const char*>(tensor.raw()), tensor.size_bytes());
  write_file(path, parts);
}

}  // namespace autograph
