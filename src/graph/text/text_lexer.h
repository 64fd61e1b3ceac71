// Tokens of the text form, with positions for error messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "autograph/error.h"

namespace autograph {

/// The kinds of token.
enum class TokenKind : uint8_t {
  word,    ///< Letters, digits, '_' and '.', starting with a letter or '_'.
  number,  ///< An integer or float literal, sign included.
  string,  ///< A quoted string; `text` is its contents.
  symbol,  ///< One character of punctuation, or "...".
  end,     ///< End of the text.
};

/// One token.
struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  size_t position = 0;  ///< Offset of its first character.
};

/// Splits text into tokens, one of look-ahead.
class TextLexer {
 public:
  explicit TextLexer(std::string_view text) : text_(text) { advance(); }

  /// The next token, not yet taken.
  const Token& peek() const { return next_; }
  /// Takes the next token.
  Token take();
  bool at(std::string_view symbol_or_word) const {
    return next_.text == symbol_or_word && (next_.kind == TokenKind::symbol || next_.kind == TokenKind::word);
  }
  /// Takes the next token when it is that word or punctuation.
  bool accept(std::string_view symbol_or_word);
  /// Takes that word or punctuation, or throws FormatError.
  void expect(std::string_view symbol_or_word);
  /// Takes a token of that kind, or throws FormatError saying that `what` was expected.
  std::string expect(TokenKind kind, std::string_view what);
  /// Takes an integer.
  int64_t expect_integer(std::string_view what);
  /// Throws FormatError "[text] line L, column C: message" at the next token.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  void advance();
  void lex_string();

  std::string_view text_;
  size_t position_ = 0;
  Token next_;
};

}  // namespace autograph
