// Small language models: [batch, length] tokens to [batch, length, words] scores of the next one.
#pragma once

#include <cstdint>
#include <memory>

#include "autograph/nn/module.h"

namespace autograph {

/// How large they are.
struct TextModelSizes {
  int64_t words = 0;
  int64_t length = 64;
  int64_t width = 128;
  int64_t layers = 2;
  int64_t heads = 4;  ///< Of transformers.
  double dropout = 0.1;
};

/// A decoder-only transformer with learned positions, norms first.
std::unique_ptr<nn::Module> text_transformer(const TextModelSizes& sizes);

/// Simple recurrent units, one above the other.
std::unique_ptr<nn::Module> text_sru(const TextModelSizes& sizes);

}  // namespace autograph
