#include "report/picture/dot_text.h"

#include "base/printable.h"

namespace autograph {

std::string dot_quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : printable_lines(text)) {
    if (c == '\n') {
      result += "\\n";
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + "\"";
}

std::string shortened_name(std::string_view name, size_t limit) {
  const std::string text = printable(name);
  if (text.size() <= limit) return text;
  size_t begin = text.size() - limit + 3;
  while (begin < text.size() && (text[begin] & 0xC0) == 0x80) ++begin;  // a character stays whole
  const size_t slash = text.find('/', begin);
  return "..." + text.substr(slash == std::string::npos ? begin : slash);
}

}  // namespace autograph
