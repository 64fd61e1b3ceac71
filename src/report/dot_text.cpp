#include "report/dot_text.h"

namespace autograph {

std::string dot_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      result += '?';
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string shortened_name(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  const size_t begin = text.size() - limit + 3;
  const size_t slash = text.find('/', begin);
  return "..." + text.substr(slash == std::string::npos ? begin : slash);
}

}  // namespace autograph
