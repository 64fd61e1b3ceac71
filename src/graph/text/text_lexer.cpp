#include "graph/text/text_lexer.h"

#include <algorithm>
#include <charconv>

#include "base/check.h"

namespace autograph {
namespace {

bool is_word_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_word_start(c) || is_digit(c) || c == '.'; }
bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

Token TextLexer::take() {
  Token token = std::move(next_);
  advance();
  return token;
}

bool TextLexer::accept(std::string_view symbol_or_word) {
  if (!at(symbol_or_word)) return false;
  advance();
  return true;
}

void TextLexer::expect(std::string_view symbol_or_word) {
  if (!accept(symbol_or_word)) fail(fmt::format("expected '{}'", symbol_or_word));
}

std::string TextLexer::expect(TokenKind kind, std::string_view what) {
  if (next_.kind != kind) fail(fmt::format("expected {}", what));
  return take().text;
}

int64_t TextLexer::expect_integer(std::string_view what) {
  int64_t value = 0;
  const char* end = next_.text.data() + next_.text.size();
  const auto [stop, error] = std::from_chars(next_.text.data(), end, value);
  if (next_.kind != TokenKind::number || error != std::errc() || stop != end) {
    fail(fmt::format("expected {}", what));
  }
  advance();
  return value;
}

void TextLexer::fail(const std::string& message) const {
  const std::string_view before = text_.substr(0, std::min(next_.position, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  std::string found = next_.kind == TokenKind::end ? "end of text" : "'" + next_.text.substr(0, 40) + "'";
  throw FormatError(
      fmt::format("[text] line {}, column {}: {}, got {}", line, before.size() - line_start + 1, message, found));
}

void TextLexer::advance() {
  while (position_ < text_.size()) {
    if (is_space(text_[position_])) {
      ++position_;
    } else if (text_[position_] == '#') {  // comment to the end of the line
      while (position_ < text_.size() && text_[position_] != '\n') ++position_;
    } else {
      break;
    }
  }
  next_ = {TokenKind::end, "", position_};
  if (position_ >= text_.size()) return;
  const char c = text_[position_];
  const size_t start = position_;
  const bool sign = c == '-' || c == '+';
  if (c == '"') return lex_string();
  if (is_word_start(c)) {
    while (position_ < text_.size() && is_word(text_[position_])) ++position_;
    next_.kind = TokenKind::word;
  } else if (is_digit(c) || (sign && position_ + 1 < text_.size() && is_word(text_[position_ + 1]))) {
    ++position_;
    while (position_ < text_.size()) {
      const char d = text_[position_];
      const bool exponent_sign = (d == '-' || d == '+') && text_[position_ - 1] == 'e';
      if (!is_word(d) && !exponent_sign) break;
      ++position_;
    }
    next_.kind = TokenKind::number;
  } else {
    position_ += text_.substr(position_).starts_with("...") ? 3 : 1;
    next_.kind = TokenKind::symbol;
  }
  next_.text = std::string(text_.substr(start, position_ - start));
}

void TextLexer::lex_string() {
  next_.kind = TokenKind::string;
  for (++position_; position_ < text_.size(); ++position_) {
    const char c = text_[position_];
    if (c == '"') {
      ++position_;
      return;
    }
    if (c != '\\') {
      next_.text.push_back(c);
      continue;
    }
    const std::string_view escape = text_.substr(position_ + 1, 3);
    if (!escape.empty() && (escape[0] == '"' || escape[0] == '\\')) {
      next_.text.push_back(escape[0]);
      ++position_;
    } else if (escape.size() == 3 && escape[0] == 'x' && hex_digit(escape[1]) >= 0 && hex_digit(escape[2]) >= 0) {
      next_.text.push_back(static_cast<char>(hex_digit(escape[1]) * 16 + hex_digit(escape[2])));
      position_ += 3;
    } else {
      fail("unknown escape in string");
    }
  }
  fail("string without end");
}

}  // namespace autograph
