#include "io/npy/numpy_text.h"

#include <algorithm>

#include "base/check.h"

namespace autograph::io {
namespace {

constexpr size_t kCharacterBytes = 4;
constexpr uint32_t kLastCharacter = 0x10FFFF;

bool is_surrogate(uint32_t c) { return c >= 0xD800 && c <= 0xDFFF; }

uint32_t read_character(std::string_view bytes, size_t at) {
  uint32_t c = 0;
  for (size_t i = 0; i < kCharacterBytes; ++i)
    c |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[at + i])) << (8 * i);
  return c;
}

void append_utf8(uint32_t c, std::string& out) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
    return;
  }
  const int followers = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr uint32_t kLeads[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(kLeads[followers] | c >> (6 * followers)));
  for (int i = followers; i-- > 0;) out.push_back(static_cast<char>(0x80 | (c >> (6 * i) & 0x3F)));
}

// The characters of a UTF-8 text.
std::u32string decode(const std::string& text) {
  std::u32string characters;
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[i])); };
  for (size_t at = 0; at < text.size();) {
    const uint32_t lead = byte(at);
    const size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    bool valid = size > 0 && size <= text.size() - at;
    uint32_t c = size == 1 ? lead : lead & (0x7FU >> size);
    for (size_t i = 1; valid && i < size; ++i) {
      valid = byte(at + i) >> 6 == 2;
      c = c << 6 | (byte(at + i) & 0x3F);
    }
    constexpr uint32_t kFirst[] = {0, 0, 0x80, 0x800, 0x10000};  // shorter forms exist for what lies below
    valid = valid && c >= kFirst[size] && c <= kLastCharacter && !is_surrogate(c);
    AG_CHECK_USER(valid, ValueError, "[npy] text '{}': expected UTF-8, byte {} is not", text, at);
    characters.push_back(c);
    at += size;
  }
  return characters;
}

}  // namespace

Tensor read_utf32(Dims dims, std::string_view bytes, int64_t width) {
  Tensor texts = Tensor::empty(DType::string, std::move(dims));
  auto* text = texts.mutable_data<std::string>();
  const size_t step = static_cast<size_t>(width) * kCharacterBytes;
  for (size_t begin = 0; begin < bytes.size(); begin += step, ++text) {
    size_t end = begin + step;
    while (end > begin && read_character(bytes, end - kCharacterBytes) == 0) end -= kCharacterBytes;
    for (size_t at = begin; at < end; at += kCharacterBytes) {
      const uint32_t c = read_character(bytes, at);
      AG_CHECK_USER(c <= kLastCharacter && !is_surrogate(c), FormatError, "[npy] data: {:#x} is not a character", c);
      append_utf8(c, *text);
    }
  }
  return texts;
}

Tensor read_bytes(Dims dims, std::string_view bytes, int64_t width) {
  Tensor texts = Tensor::empty(DType::string, std::move(dims));
  auto* text = texts.mutable_data<std::string>();
  for (size_t begin = 0; begin < bytes.size(); begin += static_cast<size_t>(width), ++text) {
    const std::string_view element = bytes.substr(begin, static_cast<size_t>(width));
    *text = element.substr(0, element.find_last_not_of('\0') + 1);
  }
  return texts;
}

int64_t longest_text(const Tensor& texts) {
  size_t longest = 1;
  for (const std::string& text : texts.elements<std::string>()) longest = std::max(longest, decode(text).size());
  return static_cast<int64_t>(longest);
}

std::string write_utf32(const Tensor& texts, int64_t width) {
  std::string bytes;
  for (const std::string& text : texts.elements<std::string>()) {
    std::u32string characters = decode(text);
    characters.resize(static_cast<size_t>(width));
    for (const char32_t c : characters) {
      for (size_t i = 0; i < kCharacterBytes; ++i) bytes.push_back(static_cast<char>(c >> (8 * i)));
    }
  }
  return bytes;
}

}  // namespace autograph::io
