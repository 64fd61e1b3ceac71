// Attention and transformer blocks against PyTorch; caches against whole sequences.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/nn/attention.h"
#include "autograph/ops/shape.h"
#include "nn/module_check.h"
#include "nn/torch_numbers.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

const Tensor kX = input_by_formula({2, 3, 8});
const Tensor kMemory = input_by_formula({2, 4, 8}, 0.5);

TEST(Attention, MultiheadIsTorchs) {
  MultiheadAttention attention(8, 2);
  fill_by_formula(attention);
  expect_torchs(evaluate(attention, kX), {{-0.818719, -0.438776, 0.146697, 0.672953}, 6.086294, -3.851189});
  const auto with = [&](const std::vector<Tensor>& inputs, const AttentionMask& mask) {
    return evaluate(inputs, [&](const std::vector<Var>& in) {
      return std::vector<Var>{attention.forward(in[0], in.back(), in.back(), mask)};
    })[0];
  };
  expect_torchs(with({kX}, {.is_causal = true}), {{-0.564557, -0.131987, 0.368406, 0.710063}, 6.899356, -3.608461});
  expect_torchs(with({kX, kMemory}, {}), {{-0.789687, -0.413926, 0.156212, 0.662861}, 6.047125, -3.606317});
}

// With dropout the products are written out; where nearly nothing is dropped they give what the op gives.
TEST(Attention, WrittenOutForDropoutItIsTheSame) {
  const auto run = [](double ratio, bool is_causal) {
    MultiheadAttention attention(8, 2, ratio);
    fill_by_formula(attention);
    return evaluate({kX}, [&](const std::vector<Var>& in) {
      return std::vector<Var>{attention.forward(in[0], in[0], in[0], {.is_causal = is_causal})};
    })[0];
  };
  for (const bool is_causal : {false, true}) {
    EXPECT_EQ(difference(run(1e-9, is_causal), run(0, is_causal)), "");
    EXPECT_NE(difference(run(0.5, is_causal), run(0, is_causal)), "");
  }
}

TEST(Attention, EncoderLayersAreTorchs) {
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

TEST(Attention, DecoderLayersAreTorchs) {
  TransformerDecoderLayer layer({.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0});
  fill_by_formula(layer);
  const Tensor y = evaluate(
      {kX, kMemory}, [&](const std::vector<Var>& in) { return std::vector<Var>{layer.forward(in[0], in[1])}; })[0];
  expect_torchs(y, {{0.254152, -0.192553, 0.080011, 0.280976}, 4.951766, -0.309416});
}

TEST(Attention, EncodersNameTheirLayers) {
  TransformerEncoder encoder({.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0}, 2, true);
  EXPECT_EQ(encoder.state_dict()[12].first, "layers.1.self_attn.in_proj_weight");
  EXPECT_EQ(encoder.state_dict().back().first, "norm.bias");
  EXPECT_EQ(evaluate(encoder, kX).dims(), kX.dims());
  EXPECT_EQ(slope_error(encoder, {kX}, [&](const auto& in) { return std::vector<Var>{encoder(in[0])}; }), "");
}

// Token by token behind a cache as all at once.
TEST(Attention, CachesGiveWhatWholeSequencesGive) {
  GroupedQueryAttention attention(16, {.heads = 4, .kv_heads = 2});
  EXPECT_EQ(attention.tensor("k_proj.weight").dims(), (Dims{8, 16}));
  const Tensor x = drawn({2, 5, 16}, 3);
  const std::vector<Tensor> out = evaluate({x}, [&](const std::vector<Var>& in) {
    KeyValueCache cache;
    std::vector<Var> pieces;
    for (const auto& [begin, end] : {std::pair{0, 2}, {2, 3}, {3, 5}}) {
      pieces.push_back(attention.forward(slice(in[0], {begin}, {end}, {1}), cache));
    }
    return std::vector<Var>{attention(in[0]), concat(pieces, 1), cache.key};
  });
  EXPECT_EQ(difference(out[1], out[0]), "");
  EXPECT_EQ(out[2].dims(), (Dims{2, 2, 5, 4}));
  // What comes later changes nothing before it.
  Tensor other = x.clone();
  other.mutable_data<float>()[4 * 16] += 1;
  const Tensor y = evaluate(attention, other);
  EXPECT_EQ(difference(Tensor::wrap(DType::f32, {4, 16}, const_cast<void*>(y.raw()), nullptr),
                       Tensor::wrap(DType::f32, {4, 16}, const_cast<void*>(out[0].raw()), nullptr)),
            "");
  EXPECT_NE(difference(y, out[0]), "");
  EXPECT_EQ(slope_error(attention, {x}, [&](const auto& in) { return std::vector<Var>{attention(in[0])}; }), "");
}

// The same of torch's modules, with the causal mask that a cache stands for.
TEST(Attention, CachesOfTransformersGiveWhatWholeSequencesGive) {
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
TEST(Attention, CachesOfDecodersGiveWhatWholeSequencesGive) {
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
TEST(Attention, CachesOfDecodersHoldEagerValues) {
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

TEST(Attention, SaysWhatDoesNotFit) {
  MultiheadAttention dropping(8, 2, 0.5);
  const std::string refusal = message_of<UnsupportedError>([&] {
    evaluate({kX}, [&](const std::vector<Var>& in) {
      KeyValueCache cache;
      return std::vector<Var>{dropping.forward(in[0], cache)};
    });
  });
  EXPECT_NE(refusal.find("call eval()"), std::string::npos) << refusal;
  EXPECT_EQ(message_of<ValueError>([] {
              TransformerDecoderLayer layer({.width = 8, .heads = 2, .feed_forward = 16});
              DecoderCache cache;
              layer.forward(eager(kX), Var(), cache);
            }),
            "[nn] transformer: expected a memory with the first tokens, got none");
  EXPECT_EQ(message_of<ValueError>([] { MultiheadAttention(8, 3); }),
            "[nn] attention: expected heads that divide the width 8, got 3");
  EXPECT_EQ(message_of<ValueError>([] { GroupedQueryAttention(12, {.heads = 4, .kv_heads = 3}); }),
            "[nn] attention: expected kv_heads that divide 4 heads, got 3");
}

}  // namespace
}  // namespace autograph::nn
