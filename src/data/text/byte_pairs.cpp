#include "data/text/byte_pairs.h"

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "data/text/words.h"

namespace autograph {
namespace {

std::vector<int32_t> bytes_of(std::string_view word) {
  std::vector<int32_t> tokens;
  for (const char c : word) tokens.push_back(static_cast<uint8_t>(c));
  return tokens;
}

// Every `pair` in `tokens` becomes `token`, from the left.
void merge(std::vector<int32_t>& tokens, TokenPair pair, int32_t token) {
  size_t to = 0;
  for (size_t from = 0; from < tokens.size(); ++to) {
    const bool found = from + 1 < tokens.size() && tokens[from] == pair.first && tokens[from + 1] == pair.second;
    tokens[to] = found ? token : tokens[from];
    from += found ? 2 : 1;
  }
  tokens.resize(to);
}

// Counts pairs over the different words of a text, and keeps the counts as pairs are merged.
class PairCounts {
 public:
  explicit PairCounts(std::string_view text) {
    std::map<std::string_view, int64_t> counts;
    while (!text.empty()) {
      const std::string_view word = first_word(text);
      ++counts[word];
      text.remove_prefix(word.size());
    }
    for (const auto& [word, count] : counts) words_.push_back({bytes_of(word), count});
    for (size_t i = 0; i < words_.size(); ++i) add(i, 1);
    for (const auto& [pair, found] : pairs_) queue_.push({found.count, pair});
  }

  /// Makes the most frequent pair a token; false when none comes twice.
  bool merge_best(int32_t token, TokenPair& best) {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      if (pairs_[top.pair].count != top.count) continue;  // counted anew since
      if (top.count < 2) return false;
      best = top.pair;
      replace(best, token);
      return true;
    }
    return false;
  }

 private:
  struct Word {
    std::vector<int32_t> tokens;
    int64_t count;
  };
  struct Found {
    int64_t count = 0;
    std::set<size_t> words;  // that have it, or had it once
  };
  struct Candidate {
    int64_t count;
    TokenPair pair;
    // The most frequent first, then the smaller numbers.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void add(size_t word, int64_t sign) {
    const std::vector<int32_t>& tokens = words_[word].tokens;
    for (size_t k = 0; k + 1 < tokens.size(); ++k) {
      const TokenPair pair{tokens[k], tokens[k + 1]};
      Found& found = pairs_[pair];
      found.count += sign * words_[word].count;
      if (sign > 0) found.words.insert(word);
      changed_.insert(pair);
    }
  }
  void replace(TokenPair pair, int32_t token) {
    changed_.clear();
    const std::set<size_t> words = std::move(pairs_[pair].words);
    for (const size_t word : words) {
      add(word, -1);
      merge(words_[word].tokens, pair, token);
      add(word, 1);
    }
    for (const TokenPair& other : changed_) {
      if (const int64_t count = pairs_[other].count; count > 0) queue_.push({count, other});
    }
  }

  std::vector<Word> words_;
  std::map<TokenPair, Found> pairs_;
  std::set<TokenPair> changed_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

std::vector<TokenPair> train_byte_pairs(std::string_view text, int64_t size) {
  std::vector<TokenPair> merges;
  PairCounts counts(text);
  TokenPair best;
  while (kNumBytes + static_cast<int64_t>(merges.size()) < size &&
         counts.merge_best(kNumBytes + static_cast<int32_t>(merges.size()), best)) {
    merges.push_back(best);
  }
  return merges;
}

BytePairs::BytePairs(std::vector<TokenPair> merges) : merges_(std::move(merges)) {
  for (int32_t byte = 0; byte < kNumBytes; ++byte) texts_.emplace_back(1, static_cast<char>(byte));
  for (size_t i = 0; i < merges_.size(); ++i) {
    const auto token = static_cast<int32_t>(texts_.size());
    const auto [a, b] = merges_[i];
    const bool known = a >= 0 && a < token && b >= 0 && b < token;
    AG_CHECK_USER(known, FormatError, "[tokens] pair {}: expected tokens 0 to {}, got {} and {}", i, token - 1, a, b);
    texts_.push_back(text(a) + text(b));
    AG_CHECK_USER(texts_.back().size() <= kMaxWordBytes, FormatError,
                  "[tokens] pair {}: expected a token of at most {} bytes, got {}", i, kMaxWordBytes,
                  texts_.back().size());
    AG_CHECK_USER(tokens_.emplace(merges_[i], token).second, FormatError, "[tokens] pair {}: {} and {} come twice", i,
                  a, b);
  }
}

std::vector<int32_t> BytePairs::encode_word(std::string_view word) const {
  std::vector<int32_t> tokens = bytes_of(word);
  for (;;) {
    int32_t first = static_cast<int32_t>(texts_.size());  // the pair that was learned first is merged first
    for (size_t k = 0; k + 1 < tokens.size(); ++k) {
      const auto found = tokens_.find({tokens[k], tokens[k + 1]});
      if (found != tokens_.end()) first = std::min(first, found->second);
    }
    if (first == static_cast<int32_t>(texts_.size())) return tokens;
    merge(tokens, merges_[static_cast<size_t>(first - kNumBytes)], first);
  }
}

std::vector<int32_t> BytePairs::encode(std::string_view text) const {
  std::unordered_map<std::string_view, std::vector<int32_t>> known;
  std::vector<int32_t> tokens;
  while (!text.empty()) {
    const std::string_view word = first_word(text);
    auto found = known.find(word);
    if (found == known.end()) found = known.emplace(word, encode_word(word)).first;
    tokens.insert(tokens.end(), found->second.begin(), found->second.end());
    text.remove_prefix(word.size());
  }
  return tokens;
}

}  // namespace autograph
