#include "data/text/words.h"

#include <algorithm>
#include <cstdint>

namespace autograph {
namespace {

enum class Kind : uint8_t { letter, digit, space, other };

// Of ASCII alone: the same in every locale.
Kind kind_of(char c) {
  const auto byte = static_cast<uint8_t>(c);
  if (byte >= 128 || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z')) return Kind::letter;
  if (byte >= '0' && byte <= '9') return Kind::digit;
  return byte == ' ' || (byte >= '\t' && byte <= '\r') ? Kind::space : Kind::other;
}

}  // namespace

std::string_view first_word(std::string_view text) {
  const size_t most = std::min(text.size(), kMaxWordBytes);
  size_t end = text[0] == ' ' && most > 1 && kind_of(text[1]) != Kind::space ? 1 : 0;
  const Kind kind = kind_of(text[end]);
  while (end < most && kind_of(text[end]) == kind) ++end;
  // The last of several spaces goes to the word behind them.
  const bool leads =
      kind == Kind::space && end > 1 && end < text.size() && text[end - 1] == ' ' && kind_of(text[end]) != Kind::space;
  return text.substr(0, leads ? end - 1 : end);
}

}  // namespace autograph
