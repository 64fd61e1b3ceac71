// Attention against PyTorch; caches against whole sequences.
#include <gtest/gtest.h>

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

TEST(Attention, SaysWhatDoesNotFit) {
  MultiheadAttention dropping(8, 2, 0.5);
  const std::string refusal = message_of<UnsupportedError>([&] {
    evaluate({kX}, [&](const std::vector<Var>& in) {
      KeyValueCache cache;
      return std::vector<Var>{dropping.forward(in[0], cache)};
    });
  });
  EXPECT_NE(refusal.find("call eval()"), std::string::npos) << refusal;
  EXPECT_EQ(message_of<ValueError>([] { MultiheadAttention(8, 3); }),
            "[nn] attention: expected heads that divide the width 8, got 3");
  EXPECT_EQ(message_of<ValueError>([] { GroupedQueryAttention(12, {.heads = 4, .kv_heads = 3}); }),
            "[nn] attention: expected kv_heads that divide 4 heads, got 3");
}

}  // namespace
}  // namespace autograph::nn
