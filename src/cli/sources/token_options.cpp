#include "cli/sources/token_options.h"

#include <fmt/core.h>

#include <string_view>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/hash_stream.h"
#include "base/printable.h"
#include "base/text/read_number.h"

namespace autograph::cli {
namespace {

constexpr const char* kName = "autograph.tokens";
constexpr std::string_view kBytePairs = "bpe";
constexpr std::string_view kNumbered = "bpe:";
constexpr int64_t kUsualBytePairs = 1024;

// Of "bpe" and "bpe:N".
int64_t number_of_byte_pairs(const std::string& tokens) {
  if (tokens == kBytePairs) return kUsualBytePairs;
  std::optional<int64_t> number;
  if (tokens.starts_with(kNumbered)) number = read_number<int64_t>(std::string_view(tokens).substr(kNumbered.size()));
  AG_CHECK_USER(number.value_or(0) > 0, UserError,
                "[cli] --tokens: expected characters, bpe, bpe:N or a file .json, got '{}'", printable(tokens));
  return *number;
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
  return tokens_kept(read_safetensors_metadata(safetensors));
}

std::string tokens_text(const Tokenizer& tokenizer) {
  HashStream hash;
  hash.add(tokenizer.to_json());
  return fmt::format("{} {} (hash {})", tokenizer.size(), tokenizer.kind(), to_string(hash.finish()).substr(0, 16));
}

}  // namespace autograph::cli
