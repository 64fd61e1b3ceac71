#include "base/printable.h"

#include <fmt/format.h>

namespace autograph {
namespace {

unsigned byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

void append_escaped(std::string& out, std::string_view character) {
  const unsigned code = code_point(character);
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\t') {
    out += "\\t";
  } else if (code == '\r') {
    out += "\\r";
  } else {
    out += code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
  }
}

// `as_is`: a control character that is none here; `marked`: characters that get a backslash.
std::string escaped(std::string_view text, std::string_view as_is, std::string_view marked) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", byte_at(text, 0));
    } else if (is_control(character) && character != as_is) {
      append_escaped(out, character);
    } else {
      if (marked.find(character) != std::string_view::npos) out += '\\';
      out += character;
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const unsigned lead = text.empty() ? 0x80 : byte_at(text, 0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte_at(text, i) & 0xC0U) != 0x80) return 0;
  }
  // Overlong forms, surrogates and code points above U+10FFFF show in the second byte.
  const unsigned second = byte_at(text, 1);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

unsigned code_point(std::string_view character) {
  const unsigned lead = byte_at(character, 0);
  if (character.size() == 1) return lead;
  unsigned code = lead & (0x7FU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) code = (code << 6U) | (byte_at(character, i) & 0x3FU);
  return code;
}

bool is_control(std::string_view character) {
  const unsigned code = code_point(character);
  const auto within = [code](unsigned first, unsigned last) { return code >= first && code <= last; };
  const bool turns = within(0x200E, 0x200F) || within(0x202A, 0x202E) || within(0x2066, 0x2069) || code == 0x61C;
  return code < 0x20 || within(0x7F, 0x9F) || within(0x2028, 0x2029) || turns || code == 0xFEFF;
}

std::string printable(std::string_view text) { return escaped(text, "", ""); }

std::string quoted(std::string_view text) { return '"' + escaped(text, "", "\"\\") + '"'; }

std::string printable_lines(std::string_view text) { return escaped(text, "\n", ""); }

}  // namespace autograph
