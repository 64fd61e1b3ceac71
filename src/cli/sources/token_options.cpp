#include "cli/sources/token_options.h"

#include <fmt/core.h>

#include <charconv>
#include <string_view>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/hash_stream.h"
#include "base/printable.h"

namespace autograph::cli {
namespace {

constexpr const char* kName = "autograph.tokens";
constexpr std::string_view kBytePairs = "bpe";
constexpr int64_t kUsualBytePairs = 1024;

// Of "bpe" and "bpe:N".
int64_t number_of_byte_pairs(const std::string& tokens) {
  if (tokens == kBytePairs) return kUsualBytePairs;
  std::string_view rest = tokens;
  int64_t number = 0;
  if (rest.starts_with(kBytePairs) && rest.substr(kBytePairs.size()).starts_with(':')) {
    rest.remove_prefix(kBytePairs.size() + 1);
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || end != rest.data() + rest.size()) number = 0;
  }
  AG_CHECK_USER(number > 0, UserError, "[cli] --tokens: expected characters, bpe, bpe:N or a file .json, got '{}'",
                printable(tokens));
  return number;
}

}  // namespace

Option tokens_option(std::string& tokens) {
  return {.names = "--tokens",
          .value_name = "KIND",
          .doc =
              "Of text and sru: characters; bpe or bpe:N, byte pairs that are learned from what is not held out, N "
              "tokens in all, 256 of them bytes (1024 when not said); or a FILE.json of Tokenizer::save. They are "
              "kept beside the weights. When not given those beside the weights of --from, else characters.",
          .target = &tokens,
          .kind = ValueKind::file};
}

void choose_tokens(TaskOptions& task, const std::string& tokens, const std::optional<Tokenizer>& kept) {
  if (tokens.empty()) {
    task.tokenizer = kept;
  } else if (tokens.ends_with(".json")) {
    task.tokenizer = Tokenizer::load(tokens);
  } else if (tokens != "characters") {
    task.byte_pairs = number_of_byte_pairs(tokens);
  }
}

std::map<std::string, std::string> tokens_to_keep(const std::optional<Tokenizer>& tokenizer) {
  if (!tokenizer) return {};
  return {{kName, tokenizer->to_json()}};
}

std::optional<Tokenizer> tokens_kept(const std::map<std::string, std::string>& beside_weights) {
  const auto found = beside_weights.find(kName);
  if (found == beside_weights.end()) return std::nullopt;
  return Tokenizer::from_json(found->second);
}

std::optional<Tokenizer> tokens_of_file(const std::string& safetensors) {
  if (safetensors.empty()) return std::nullopt;
  return tokens_kept(read_safetensors(safetensors).metadata);
}

std::string tokens_text(const Tokenizer& tokenizer) {
  HashStream hash;
  hash.add(tokenizer.to_json());
  return fmt::format("{} {} (hash {})", tokenizer.size(), tokenizer.kind(), to_string(hash.finish()).substr(0, 16));
}

}  // namespace autograph::cli
