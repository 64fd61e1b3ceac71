// Byte-pair tokens: which pairs become one, learned from a text, and texts cut by them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace autograph {

using TokenPair = std::pair<int32_t, int32_t>;

inline constexpr int32_t kNumBytes = 256;
inline constexpr int64_t kMaxTokens = 1 << 20;

/// The pairs that become tokens 256, 257, ..., until there are `size` tokens or no pair comes twice.
std::vector<TokenPair> train_byte_pairs(std::string_view text, int64_t size);

/// Cuts and joins texts by given pairs. Any thread may.
class BytePairs {
 public:
  /// Throws FormatError where a pair is of tokens behind it, comes twice or is longer than a word.
  explicit BytePairs(std::vector<TokenPair> merges);

  int64_t size() const { return static_cast<int64_t>(texts_.size()); }
  const std::vector<TokenPair>& merges() const { return merges_; }
  /// The bytes of a token.
  const std::string& text(int32_t token) const { return texts_[static_cast<size_t>(token)]; }
  std::vector<int32_t> encode(std::string_view text) const;

 private:
  std::vector<int32_t> encode_word(std::string_view word) const;

  std::vector<TokenPair> merges_;
  std::vector<std::string> texts_;
  std::map<TokenPair, int32_t> tokens_;
};

}  // namespace autograph
