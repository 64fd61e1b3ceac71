// Transformer blocks and stacks of them against PyTorch; caches against whole sequences.
#include <gtest/gtest.h>

#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/nn/transformer.h"
#include "autograph/ops/shape.h"
#include "nn/module_check.h"
#include "nn/torch_numbers.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

const Tensor kX = input_by_formula({2, 3, 8});
const Tensor kMemory = input_by_formula({2, 4, 8}, 0.5);

TEST(Transformer, EncoderLayersAreTorchs) {
  const auto run = [](TransformerEncoderLayer& layer, bool is_causal) {
    fill_by_formula(layer);
    return evaluate({kX}, [&](const std::vector<Var>& in) {
      return std::vector<Var>{layer.forward(in[0], {.is_causal = is_causal})};
    })[0];
  };
  TransformerSettings settings{.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0};
  TransformerEncoderLayer after(settings);
  expect_torchs(run(after, false), {{-0.672749, -0.205607, 0.337474, 0.103846}, -0.469051, -1.518416});
  expect_torchs(run(after, true), {{-0.702068, -0.191943, 0.339473, 0.115695}, -0.485523, -1.468585});
  settings.norm_first = settings.gelu = true;
  TransformerEncoderLayer before(settings);
  expect_torchs(run(before, false), {{2.720898, 0.757533, -1.503474, -0.767659}, -3.654883, -4.180698});
  expect_torchs(run(before, true), {{2.371735, 0.114797, -2.166421, -1.104442}, -4.548578, -6.269503});
  EXPECT_EQ(before.state_dict()[2].first, "self_attn.out_proj.weight");
}

TEST(Transformer, DecoderLayersAreTorchs) {
  TransformerDecoderLayer layer({.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0});
  fill_by_formula(layer);
  const Tensor y = evaluate(
      {kX, kMemory}, [&](const std::vector<Var>& in) { return std::vector<Var>{layer.forward(in[0], in[1])}; })[0];
  expect_torchs(y, {{0.254152, -0.192553, 0.080011, 0.280976}, 4.951766, -0.309416});
}

TEST(Transformer, EncodersNameTheirLayers) {
  TransformerEncoder encoder({.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0}, 2, true);
  EXPECT_EQ(encoder.state_dict()[12].first, "layers.1.self_attn.in_proj_weight");
  EXPECT_EQ(encoder.state_dict().back().first, "norm.bias");
  EXPECT_EQ(evaluate(encoder, kX).dims(), kX.dims());
  EXPECT_EQ(slope_error(encoder, {kX}, [&](const auto& in) { return std::vector<Var>{encoder(in[0])}; }), "");
}

// The same of torch's modules, with the causal mask that a cache stands for.
TEST(Transformer, CachesOfTransformersGiveWhatWholeSequencesGive) {
  const Tensor x = drawn({2, 5, 16}, 4);
  for (const bool norm_first : {false, true}) {
    TransformerEncoder encoder({.width = 16, .heads = 4, .feed_forward = 24, .norm_first = norm_first}, 3, norm_first);
    encoder.eval();
    const std::vector<Tensor> out = evaluate({x}, [&](const std::vector<Var>& in) {
      std::vector<KeyValueCache> caches;
      std::vector<Var> pieces;
      for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 5}}) {
        pieces.push_back(encoder.forward(slice(in[0], {begin}, {end}, {1}), caches));
      }
      EXPECT_EQ(caches.size(), 3U);
      return std::vector<Var>{encoder.forward(in[0], {.is_causal = true}), concat(pieces, 1), caches[2].value};
    });
    EXPECT_EQ(difference(out[1], out[0]), "");
    EXPECT_EQ(out[2].dims(), (Dims{2, 4, 5, 4}));
  }
}

// Token by token as all at once; the memory is given with the first token alone.
TEST(Transformer, CachesOfDecodersGiveWhatWholeSequencesGive) {
  const Tensor x = drawn({2, 5, 16}, 5), memory = drawn({2, 7, 16}, 6);
  for (const bool norm_first : {false, true}) {
    TransformerDecoderLayer layer({.width = 16, .heads = 4, .feed_forward = 24, .norm_first = norm_first});
    layer.eval();
    const std::vector<Tensor> out = evaluate({x, memory}, [&](const std::vector<Var>& in) {
      DecoderCache cache;
      std::vector<Var> pieces;
      for (const auto& [begin, end] : {std::pair{0, 3}, {3, 4}, {4, 5}}) {
        const Var given = begin == 0 ? in[1] : Var();
        pieces.push_back(layer.forward(slice(in[0], {begin}, {end}, {1}), given, cache));
      }
      return std::vector<Var>{layer.forward(in[0], in[1]), concat(pieces, 1), cache.tokens.key, cache.memory.value};
    });
    EXPECT_EQ(difference(out[1], out[0]), "");
    EXPECT_EQ(out[2].dims(), (Dims{2, 4, 5, 4}));
    EXPECT_EQ(out[3].dims(), (Dims{2, 4, 7, 4}));
  }
}

// The same line by line, where a cache is kept from call to call.
TEST(Transformer, CachesOfDecodersHoldEagerValues) {
  TransformerDecoderLayer layer({.width = 8, .heads = 2, .feed_forward = 16});
  layer.eval();
  const NoGrad off;
  const Var x = eager(kX), memory = eager(kMemory);
  DecoderCache cache;
  std::vector<Var> pieces;
  for (int64_t t = 0; t < x.dim(1); ++t) {
    pieces.push_back(layer.forward(slice(x, {t}, {t + 1}, {1}), t == 0 ? memory : Var(), cache));
  }
  EXPECT_EQ(difference(elements(concat(pieces, 1)), elements(layer.forward(x, memory))), "");
}

// Both settings of a stack, with what hides other tokens and the end of the memory.
TEST(Transformer, DecodersAreTorchs) {
  TransformerSettings settings{.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0};
  TransformerDecoder after(settings, 2);
  settings.norm_first = settings.gelu = true;
  TransformerDecoder before(settings, 2, true);
  const Tensor is_seen = Tensor::of<bool>({1, 4}, {true, true, true, false});
  const auto outputs_of = [&](TransformerDecoder& decoder) {
    fill_by_formula(decoder);
    return evaluate({kX, kMemory, is_seen}, [&](const std::vector<Var>& in) {
      return std::vector<Var>{decoder.forward(in[0], in[1]), decoder.forward(in[0], in[1], {.tokens = {}}),
                              decoder.forward(in[0], in[1], {.memory = {.mask = in[2]}})};
    });
  };
  const std::vector<Tensor> first = outputs_of(after), second = outputs_of(before);
  expect_torchs(first[0], {{-0.368743, -0.643932, -0.066465, 0.529033}, 6.780620, -1.420920});
  expect_torchs(first[1], {{-0.367359, -0.646798, -0.071967, 0.526864}, 6.762421, -1.427448});
  expect_torchs(first[2], {{-0.367821, -0.643485, -0.069712, 0.527970}, 6.771034, -1.419640});
  expect_torchs(second[0], {{0.126795, 0.336860, 0.342129, 0.341776}, 10.786908, -0.115655});
  expect_torchs(second[1], {{0.116458, 0.336854, 0.319495, 0.308824}, 10.588690, -0.167421});
  expect_torchs(second[2], {{0.121411, 0.336863, 0.339474, 0.335372}, 10.749892, -0.101911});
  EXPECT_EQ(before.state_dict().size(), 38U);
  EXPECT_EQ(before.state_dict()[18].first, "layers.1.self_attn.in_proj_weight");
  EXPECT_EQ(before.state_dict().back().first, "norm.bias");
}

// One token at a time as all at once, line by line; a part of the memory is hidden from all.
TEST(Transformer, StackedDecodersTakeOneTokenAtATime) {
  TransformerDecoder decoder({.width = 8, .heads = 2, .feed_forward = 16, .norm_first = true}, 3, true);
  decoder.eval();
  const NoGrad off;
  const Var x = eager(kX), memory = eager(kMemory);
  const AttentionMask memory_mask{.mask = eager(Tensor::of<bool>({1, 4}, {true, false, true, false}))};
  std::vector<DecoderCache> caches;
  std::vector<Var> pieces;
  for (int64_t t = 0; t < x.dim(1); ++t) {
    const Var given = t == 0 ? memory : Var();
    pieces.push_back(decoder.forward(slice(x, {t}, {t + 1}, {1}), given, caches, memory_mask));
  }
  ASSERT_EQ(caches.size(), 3U);
  EXPECT_EQ(caches[2].tokens.key.dim(2), 3);
  const Tensor together = elements(decoder.forward(x, memory, {.memory = memory_mask}));
  EXPECT_EQ(difference(elements(concat(pieces, 1)), together), "");
  EXPECT_NE(difference(elements(decoder.forward(x, memory)), together), "");
}

TEST(Transformer, StackedDecodersLearn) {
  TransformerDecoder decoder({.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0}, 2, true);
  const auto run = [&](const std::vector<Var>& in) { return std::vector<Var>{decoder.forward(in[0], in[1])}; };
  EXPECT_EQ(slope_error(decoder, {kX, kMemory}, run), "");
}

TEST(Transformer, SaysWhatDoesNotFit) {
  EXPECT_EQ(message_of<ValueError>([] {
              TransformerDecoderLayer layer({.width = 8, .heads = 2, .feed_forward = 16});
              DecoderCache cache;
              layer.forward(eager(kX), Var(), cache);
            }),
            "[nn] transformer: expected a memory with the first tokens, got none");
  EXPECT_EQ(message_of<ValueError>([] {
              TransformerDecoder decoder({.width = 8, .heads = 2, .feed_forward = 16}, 2);
              std::vector<DecoderCache> caches(3);
              decoder.forward(eager(kX), eager(kMemory), caches);
            }),
            "[nn] transformer: expected no caches or one for each of 2 blocks, got 3");
}

}  // namespace
}  // namespace autograph::nn
