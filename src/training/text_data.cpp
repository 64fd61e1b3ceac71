// Texts as numbers: what is learned from, and what is held out.
#include <utility>
#include <vector>

#include "autograph/tasks.h"

namespace autograph {
namespace {

// Of a text or its tokens; the last tenth is held out.
size_t num_learned(size_t count) { return count - count / 10; }

Tokenizer tokenizer_of(const std::string& text, const TaskOptions& options) {
  if (options.tokenizer) return *options.tokenizer;
  if (options.byte_pairs == 0) return Tokenizer::characters(text);
  // Every byte is a token: nothing of what is held out has to be looked at.
  return Tokenizer::train_byte_pairs(std::string_view(text).substr(0, num_learned(text.size())), options.byte_pairs);
}

DatasetPtr no_pieces(int64_t length) {
  std::vector<int32_t> one(static_cast<size_t>(length) + 1);
  return slice_dataset(token_dataset(std::move(one), length), 0, 0);
}

}  // namespace

TextData open_text(const std::string& path, const TaskOptions& options, int64_t length) {
  if (path.empty() && options.tokenizer && options.use == TaskUse::predict) {
    return {*options.tokenizer, no_pieces(length), no_pieces(length)};
  }
  const std::string text = read_text(path);
  Tokenizer tokenizer = tokenizer_of(text, options);
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  const auto middle = tokens.begin() + static_cast<int64_t>(num_learned(tokens.size()));
  return {std::move(tokenizer), token_dataset(std::vector<int32_t>(tokens.begin(), middle), length),
          token_dataset(std::vector<int32_t>(middle, tokens.end()), length)};
}

}  // namespace autograph
