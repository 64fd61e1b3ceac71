// Tokens of texts: --tokens, and those that stand beside weights.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "autograph/data.h"
#include "autograph/tasks.h"
#include "cli/options/command.h"

namespace autograph::cli {

/// --tokens.
Option tokens_option(std::string& tokens);

/// Makes a task on text take what --tokens asks for; where it asks for nothing those that are kept beside its weights,
/// if there are any. Throws UserError, and what Tokenizer::load() throws.
void choose_tokens(TaskOptions& task, const std::string& tokens, const std::optional<Tokenizer>& kept);

/// Tokens as they stand in a checkpoint, a file .safetensors or a model .onnx; nothing without any.
std::map<std::string, std::string> tokens_to_keep(const std::optional<Tokenizer>& tokenizer);
/// Those that stand there.
std::optional<Tokenizer> tokens_kept(const std::map<std::string, std::string>& beside_weights);
/// Those in a file .safetensors; "": none.
std::optional<Tokenizer> tokens_of_file(const std::string& safetensors);

/// "1024 byte_pairs (hash 0123456789abcdef)"
std::string tokens_text(const Tokenizer& tokenizer);

}  // namespace autograph::cli
