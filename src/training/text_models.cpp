#include "training/text_models.h"

#include "autograph/nn/layers.h"
#include "autograph/nn/recurrent.h"
#include "autograph/nn/transformer.h"
#include "autograph/ops/shape.h"

namespace autograph {
namespace {

class TextTransformer : public nn::Module {
 public:
  explicit TextTransformer(const TextModelSizes& sizes)
      : tokens_(add<nn::Embedding>("tokens", sizes.words, sizes.width)),
        positions_(add_parameter("positions", {sizes.length, sizes.width}, nn::Init::normal(0, 0.02))),
        encoder_(add<nn::TransformerEncoder>("transformer",
                                             nn::TransformerSettings{.width = sizes.width,
                                                                     .heads = sizes.heads,
                                                                     .feed_forward = 4 * sizes.width,
                                                                     .dropout = sizes.dropout,
                                                                     .gelu = true,
                                                                     .norm_first = true},
                                             sizes.layers, true)),
        head_(add<nn::Linear>("head", sizes.width, sizes.words)) {}

  Var forward(const Var& x) override {
    return head_(encoder_.forward(tokens_(x) + positions_.beside(x), {.is_causal = true}));
  }

 private:
  nn::Embedding& tokens_;
  nn::Parameter& positions_;
  nn::TransformerEncoder& encoder_;
  nn::Linear& head_;
};

class TextSru : public nn::Module {
 public:
  explicit TextSru(const TextModelSizes& sizes)
      : tokens_(add<nn::Embedding>("tokens", sizes.words, sizes.width)),
        dropout_(add<nn::Dropout>("dropout", sizes.dropout)),
        head_(add<nn::Linear>("head", sizes.width, sizes.words)) {
    for (int64_t layer = 0; layer < sizes.layers; ++layer) layers_.push<nn::Sru>(sizes.width);
  }

  Var forward(const Var& x) override {
    Var y = transpose(tokens_(x), {1, 0, 2});
    for (nn::Module* layer : layers_.children()) y = dropout_((*layer)(y));
    return head_(transpose(y, {1, 0, 2}));
  }

 private:
  nn::Embedding& tokens_;
  nn::Sequential& layers_ = add<nn::Sequential>("layers");
  nn::Dropout& dropout_;
  nn::Linear& head_;
};

}  // namespace

std::unique_ptr<nn::Module> text_transformer(const TextModelSizes& sizes) {
  return std::make_unique<TextTransformer>(sizes);
}

std::unique_ptr<nn::Module> text_sru(const TextModelSizes& sizes) { return std::make_unique<TextSru>(sizes); }

}  // namespace autograph
