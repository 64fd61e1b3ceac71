// Tokenizers of both kinds, and their files: {"format": "autograph.tokenizer", "version": 1, "kind": "characters",
// "characters": [code points]} or {..., "kind": "byte_pairs", "merges": [[a, b], ...]}.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "autograph/data.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "base/printable.h"
#include "data/text/byte_pairs.h"
#include "io/file.h"

namespace autograph {

class Tokenizer::Impl {
 public:
  virtual ~Impl() = default;
  virtual int64_t size() const = 0;
  virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Of a token that is known.
  virtual std::string_view text(int32_t token) const = 0;
  virtual const char* kind() const = 0;
  virtual nlohmann::ordered_json to_json() const = 0;
};

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "autograph.tokenizer";
constexpr const char* kCharacters = "characters";
constexpr const char* kBytePairs = "byte_pairs";
constexpr int64_t kMaxFileBytes = 64 << 20;
constexpr unsigned kMaxCodePoint = 0x10FFFF;

// The character at `at`, as bytes.
std::string_view character_at(std::string_view text, size_t at) {
  const size_t length = utf8_length(text.substr(at));
  AG_CHECK_USER(length > 0, FormatError, "[tokens] text: expected UTF-8, got byte {:#04x} at offset {}",
                static_cast<uint8_t>(text[at]), at);
  return text.substr(at, length);
}

std::string to_utf8(unsigned code) {
  const auto tail = [code](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xC0 | (code >> 6)), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xE0 | (code >> 12)), tail(6), tail(0)};
  return {static_cast<char>(0xF0 | (code >> 18)), tail(12), tail(6), tail(0)};
}

class Characters : public Tokenizer::Impl {
 public:
  /// Sorted code points.
  explicit Characters(std::vector<unsigned> codes) : codes_(std::move(codes)) {
    for (const unsigned code : codes_) texts_.push_back(to_utf8(code));
  }

  int64_t size() const override { return static_cast<int64_t>(codes_.size()); }
  std::vector<int32_t> encode(std::string_view text) const override {
    std::vector<int32_t> tokens;
    for (size_t at = 0; at < text.size();) {
      const std::string_view character = character_at(text, at);
      const auto found = std::lower_bound(codes_.begin(), codes_.end(), code_point(character));
      AG_CHECK_USER(found != codes_.end() && *found == code_point(character), ValueError,
                    "[tokens] text: character '{}' at offset {} is unknown", printable(character), at);
      tokens.push_back(static_cast<int32_t>(found - codes_.begin()));
      at += character.size();
    }
    return tokens;
  }
  std::string_view text(int32_t token) const override { return texts_[static_cast<size_t>(token)]; }
  const char* kind() const override { return kCharacters; }
  Json to_json() const override { return {{"kind", kCharacters}, {"characters", codes_}}; }

 private:
  std::vector<unsigned> codes_;
  std::vector<std::string> texts_;
};

class Pairs : public Tokenizer::Impl {
 public:
  explicit Pairs(std::vector<TokenPair> merges) : pairs_(std::move(merges)) {}

  int64_t size() const override { return pairs_.size(); }
  std::vector<int32_t> encode(std::string_view text) const override { return pairs_.encode(text); }
  std::string_view text(int32_t token) const override { return pairs_.text(token); }
  const char* kind() const override { return kBytePairs; }
  Json to_json() const override {
    Json merges = Json::array();
    for (const auto& [a, b] : pairs_.merges()) merges.push_back({a, b});
    return {{"kind", kBytePairs}, {"merges", merges}};
  }

 private:
  BytePairs pairs_;
};

int64_t to_integer(const Json& value, const char* what, int64_t most) {
  AG_CHECK_USER(value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= most, FormatError,
                "[tokens] {}: expected 0 to {}, got {}", what, most, value.dump());
  return value.get<int64_t>();
}

const Json& list_of(const Json& file, const char* key) {
  AG_CHECK_USER(file.contains(key) && file[key].is_array(), FormatError, "[tokens] {}: expected a list", key);
  return file[key];
}

std::shared_ptr<const Tokenizer::Impl> read_characters(const Json& file) {
  std::vector<unsigned> codes;
  for (const Json& value : list_of(file, "characters")) {
    const auto code = static_cast<unsigned>(to_integer(value, "characters", kMaxCodePoint));
    const bool sorted = codes.empty() || codes.back() < code;
    const bool surrogate = code >= 0xD800 && code < 0xE000;
    AG_CHECK_USER(sorted && !surrogate, FormatError, "[tokens] characters: expected sorted characters, got {} after {}",
                  code, codes.empty() ? 0 : codes.back());
    codes.push_back(code);
  }
  return std::make_shared<Characters>(std::move(codes));
}

std::shared_ptr<const Tokenizer::Impl> read_pairs(const Json& file) {
  std::vector<TokenPair> merges;
  const Json& list = list_of(file, "merges");
  AG_CHECK_USER(static_cast<int64_t>(list.size()) <= kMaxTokens - kNumBytes, FormatError,
                "[tokens] merges: expected at most {}, got {}", kMaxTokens - kNumBytes, list.size());
  for (const Json& pair : list) {
    AG_CHECK_USER(pair.is_array() && pair.size() == 2, FormatError, "[tokens] merges: expected pairs, got {}",
                  pair.dump());
    merges.emplace_back(to_integer(pair[0], "merges", kMaxTokens), to_integer(pair[1], "merges", kMaxTokens));
  }
  return std::make_shared<Pairs>(std::move(merges));
}

}  // namespace

Tokenizer::Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Tokenizer Tokenizer::characters(std::string_view text) {
  AG_CHECK_USER(!text.empty(), ValueError, "[tokens] text: expected characters, got none");
  std::set<unsigned> codes;
  for (size_t at = 0; at < text.size();) {
    const std::string_view character = character_at(text, at);
    codes.insert(code_point(character));
    at += character.size();
  }
  return Tokenizer(std::make_shared<Characters>(std::vector<unsigned>(codes.begin(), codes.end())));
}

Tokenizer Tokenizer::train_byte_pairs(std::string_view text, int64_t size) {
  AG_CHECK_USER(size >= kNumBytes && size <= kMaxTokens, ValueError, "[tokens] size: expected {} to {}, got {}",
                kNumBytes, kMaxTokens, size);
  return Tokenizer(std::make_shared<Pairs>(autograph::train_byte_pairs(text, size)));
}

Tokenizer Tokenizer::load(const std::string& path) {
  return parse(io::read_file(path, kMaxFileBytes), fmt::format("'{}'", printable(path)));
}

Tokenizer Tokenizer::from_json(std::string_view text) { return parse(text, "text"); }

// `where` it comes from.
Tokenizer Tokenizer::parse(std::string_view text, const std::string& where) {
  Json file;
  try {
    file = Json::parse(text);
  } catch (const Json::exception& error) {
    throw FormatError(fmt::format("[tokens] {}: {}", where, printable(error.what())));
  }
  const bool known = file.is_object() && file.contains("format") && file["format"] == kFormat &&
                     file.contains("version") && file["version"] == 1 && file.contains("kind");
  AG_CHECK_USER(known, FormatError, "[tokens] {}: expected a file of format '{}', version 1", where, kFormat);
  if (file["kind"] == kCharacters) return Tokenizer(read_characters(file));
  AG_CHECK_USER(file["kind"] == kBytePairs, FormatError, "[tokens] {}: kind: expected {} or {}, got {}", where,
                kCharacters, kBytePairs, file["kind"].dump());
  return Tokenizer(read_pairs(file));
}

std::string Tokenizer::to_json() const {
  Json file = {{"format", kFormat}, {"version", 1}};
  file.update(impl_->to_json());
  return file.dump();
}

void Tokenizer::save(const std::string& path) const { write_file(path, to_json() + "\n"); }

std::string Tokenizer::kind() const { return impl_->kind(); }

int64_t Tokenizer::size() const { return impl_->size(); }

std::vector<int32_t> Tokenizer::encode(std::string_view text) const { return impl_->encode(text); }

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (size_t i = 0; i < tokens.size(); ++i) {
    AG_CHECK_USER(tokens[i] >= 0 && tokens[i] < size(), ValueError, "[tokens] token {}: expected 0 to {}, got {}", i,
                  size() - 1, tokens[i]);
    text += impl_->text(tokens[i]);
  }
  return text;
}

}  // namespace autograph
