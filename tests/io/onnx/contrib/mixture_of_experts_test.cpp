// Contrib mixtures of experts against their formulas in double.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "autograph/error.h"
#include "autograph/random.h"
#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

using Numbers = std::vector<double>;

constexpr size_t kTokens = 5, kExperts = 4, kWidth = 16, kInner = 8;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// What experts compute, in double.
struct Layer {
  Numbers w, bias;  // [experts, rows, depth], [experts, rows]
  size_t rows, depth;

  Numbers apply(size_t expert, const Numbers& x) const {
    Numbers y;
    for (size_t r = 0; r < rows; ++r) {
      const double* row = w.data() + (expert * rows + r) * depth;
      const double start = bias.empty() ? 0 : bias[expert * rows + r];
      y.push_back(std::inner_product(x.begin(), x.end(), row, start));
    }
    return y;
  }
};

using Activation = std::function<Numbers(const Numbers& h, const Numbers& x, size_t expert)>;
// The chosen experts of a token, and their shares.
using Router = std::function<std::vector<std::pair<size_t, double>>(size_t token)>;

std::vector<size_t> best_of(const double* scores, size_t count) {
  std::vector<size_t> order(kExperts);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  order.resize(count);
  return order;
}

class MixtureOfExperts : public testing::Test {
 protected:
  Tensor draw_floats(Dims dims) { return draw_tensor(random, DType::f32, std::move(dims), -1, 1); }

  Numbers expected(const Layer& first, const Layer& second, const Router& router, const Activation& activation) const {
    const Numbers all = x.to_f64();
    Numbers y(kTokens * kWidth);
    for (size_t t = 0; t < kTokens; ++t) {
      const Numbers token(all.begin() + static_cast<std::ptrdiff_t>(t * kWidth),
                          all.begin() + static_cast<std::ptrdiff_t>((t + 1) * kWidth));
      for (const auto& [expert, share] : router(t)) {
        const Numbers out = second.apply(expert, activation(first.apply(expert, token), token, expert));
        for (size_t c = 0; c < kWidth; ++c) y[t * kWidth + c] += share * out[c];
      }
    }
    return y;
  }

  // Softmax over all experts, or over the chosen ones.
  Router softmax_router(size_t count, bool of_chosen) const {
    const Numbers scores = router.to_f64();
    return [=](size_t token) {
      const double* row = scores.data() + token * kExperts;
      const std::vector<size_t> chosen = best_of(row, count);
      double all = 0, of_best = 0;
      for (size_t e = 0; e < kExperts; ++e) all += std::exp(row[e]);
      for (const size_t e : chosen) of_best += std::exp(row[e]);
      std::vector<std::pair<size_t, double>> shares;
      for (const size_t e : chosen) shares.emplace_back(e, std::exp(row[e]) / (of_chosen ? of_best : all));
      return shares;
    };
  }

  static void expect_near(const Tensor& actual, const Numbers& numbers, double tolerance = 1e-4) {
    tests::expect_near(actual, numbers, tolerance);
  }

  Random random{11};
  Tensor x = draw_floats({kTokens, kWidth}), router = draw_floats({kTokens, kExperts});
};

// ---- MoE -------------------------------------------------------------------------------------------------------

struct FloatWeights {
  Tensor w, bias;
  Layer layer() const {
    return {w.to_f64(), bias.to_f64(), static_cast<size_t>(w.dims()[1]), static_cast<size_t>(w.dims()[2])};
  }
};

class FloatMixture : public MixtureOfExperts {
 protected:
  FloatWeights weights(int64_t rows, int64_t depth) {
    return {draw_floats({kExperts, rows, depth}), draw_floats({kExperts, rows})};
  }
  ContribNode node(const FloatWeights& first, const FloatWeights& second, int count = 2) const {
    ContribNode made("MoE");
    made.input(x).input(router).constant(first.w).constant(first.bias).constant(second.w).constant(second.bias);
    return made.set("k", count);
  }
};

TEST_F(FloatMixture, ActivationsAndShares) {
  const FloatWeights first = weights(kInner, kWidth), second = weights(kWidth, kInner);
  const auto each = [](double (*f)(double)) {
    return [f](Numbers h, const Numbers&, size_t) {
      std::transform(h.begin(), h.end(), h.begin(), f);
      return h;
    };
  };
  const auto tanh_gelu = [](double v) {
    return 0.5 * v * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
  };
  const std::vector<std::pair<std::string, Activation>> activations = {
      {"relu", each([](double v) { return std::max(v, 0.0); })},
      {"relu2", each([](double v) { return std::max(v, 0.0) * std::max(v, 0.0); })},
      {"silu", each([](double v) { return v * sigmoid(v); })},
      {"gelu", each(tanh_gelu)},
      {"identity", each([](double v) { return v; })}};
  for (const auto& [name, activation] : activations) {
    for (const int normalizes : {0, 1}) {
      SCOPED_TRACE(name + (normalizes ? ", normalized" : ""));
      ContribNode made = node(first, second);
      made.set("activation_type", name).set("normalize_routing_weights", normalizes);
      expect_near(made.result({.rtol = 1e-4, .atol = 1e-5}),
                  expected(first.layer(), second.layer(), softmax_router(2, normalizes != 0), activation));
    }
  }
}

// Pairs of neighbours, halves, and a third layer; limits and factors.
TEST_F(FloatMixture, GatedActivations) {
  constexpr double kLimit = 0.5, kAlpha = 1.702;
  const FloatWeights second = weights(kWidth, kInner), third = weights(kInner, kWidth);
  for (const int fusion : {0, 1, 2}) {
    const FloatWeights first = weights(fusion == 0 ? kInner : 2 * kInner, kWidth);
    for (const bool is_geglu : {false, true}) {
      if (is_geglu && fusion == 0) continue;
      for (const bool has_limit : {false, true}) {
        SCOPED_TRACE(testing::Message() << fusion << " " << is_geglu << " " << has_limit);
        ContribNode made = node(first, second);
        if (fusion == 0) made.constant(third.w).constant(third.bias);
        made.set("activation_type", is_geglu ? "geglu" : "swiglu").set("swiglu_fusion", fusion);
        if (has_limit && !is_geglu) {
          made.set("swiglu_limit", static_cast<float>(kLimit)).set("activation_alpha", static_cast<float>(kAlpha));
          made.set("activation_beta", 1.0F);
        }
        const Activation activation = [&](const Numbers& h, const Numbers& token, size_t expert) {
          const Numbers values = fusion == 0 ? third.layer().apply(expert, token) : Numbers();
          Numbers result;
          for (size_t i = 0; i < kInner; ++i) {
            double gate = fusion == 1 ? h[2 * i] : h[i];
            double value = fusion == 0 ? values[i] : fusion == 1 ? h[2 * i + 1] : h[kInner + i];
            if (is_geglu) {
              result.push_back(0.5 * gate * (1 + std::tanh(0.7978845608 * (gate + 0.044715 * std::pow(gate, 3)))) *
                               value);
            } else if (has_limit) {
              gate = std::min(gate, kLimit), value = std::clamp(value, -kLimit, kLimit);
              result.push_back(gate * sigmoid(kAlpha * gate) * (value + 1));
            } else {
              result.push_back(gate * sigmoid(gate) * value);
            }
          }
          return result;
        };
        expect_near(made.result({.rtol = 1e-4, .atol = 1e-5}),
                    expected(first.layer(), second.layer(), softmax_router(2, false), activation));
      }
    }
  }
}

// As transformers' Phi-3.5-MoE: the best expert, and the best of the others, each with its share among those that are
// at most 2 % below it.
TEST_F(FloatMixture, SparseMixer) {
  router = f32({kTokens, kExperts}, {1.00F, 0.99F, 0.5F, -1,     2,      1,    1.99F, 1.985F, -1, -1.01F,
                                     -1.5F, -3,    0.5F, 0.495F, 0.492F, 0.1F, 3,     2,      1,  0});
  const FloatWeights first = weights(kInner, kWidth), second = weights(kWidth, kInner);
  const Numbers scores = router.to_f64();
  const auto share_of = [](const Numbers& row, const Numbers& original, size_t best) {
    double sum = 0;
    for (size_t e = 0; e < kExperts; ++e) {
      const double factor = std::max(std::fabs(original[e]), row[best]);
      if ((row[best] - original[e]) / factor <= 0.02) sum += std::exp(row[e] - row[best]);
    }
    return 1 / sum;
  };
  const Router sparse = [&](size_t token) {
    const Numbers row(scores.begin() + static_cast<std::ptrdiff_t>(token * kExperts),
                      scores.begin() + static_cast<std::ptrdiff_t>((token + 1) * kExperts));
    const std::vector<size_t> best = best_of(row.data(), 2);
    Numbers rest = row;
    rest[best[0]] = -INFINITY;
    return std::vector<std::pair<size_t, double>>{{best[0], share_of(row, row, best[0])},
                                                  {best[1], share_of(rest, row, best[1])}};
  };
  const Activation identity = [](const Numbers& h, const Numbers&, size_t) { return h; };
  const auto made = [&](int count) {
    return node(first, second, count).set("activation_type", "identity").set("use_sparse_mixer", 1);
  };
  expect_near(made(2).result({.rtol = 1e-4, .atol = 1e-5}), expected(first.layer(), second.layer(), sparse, identity));
  EXPECT_THROW(made(3).result(), UnsupportedError);
}

TEST_F(FloatMixture, SaysWhatItRefuses) {
  const FloatWeights first = weights(kInner, kWidth), second = weights(kWidth, kInner);
  EXPECT_THROW(node(first, second).set("activation_type", "sine").result(), UnsupportedError);
  EXPECT_THROW(node(first, second).set("activation_type", "swiglu").result(), UnsupportedError);  // no third layer
}

// ---- QMoE ------------------------------------------------------------------------------------------------------

struct QuantizedWeights {
  Tensor q, scales, zeros;
  Layer layer;
};

class QuantizedMixture : public MixtureOfExperts {
 protected:
  // A scale for each `block` of a row, or for the row where that is 0.
  QuantizedWeights weights(int64_t rows, int64_t depth, int bits, int64_t block, bool has_zeros) {
    const int64_t blocks = block == 0 ? 1 : depth / block, per_byte = 8 / bits;
    const auto numbers_of = [&](int64_t count) {
      std::vector<int> numbers;
      for (int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<int>(draw(random, 0, (1 << bits) - 1)));
      return numbers;
    };
    // Lines of `count` numbers, each of which ends on a byte.
    const auto packed = [&](const std::vector<int>& numbers, int64_t count) {
      std::vector<uint8_t> bytes;
      for (size_t i = 0; i < numbers.size(); ++i) {
        const auto at = static_cast<int64_t>(i) % count % per_byte;
        if (at == 0) bytes.push_back(0);
        bytes.back() = static_cast<uint8_t>(bytes.back() | numbers[i] << (at * bits));
      }
      return bytes;
    };
    const int64_t all_rows = static_cast<int64_t>(kExperts) * rows;
    const std::vector<int> q = numbers_of(all_rows * depth), z = numbers_of(all_rows * blocks);
    const Tensor scale = draw_tensor(random, DType::f32, {all_rows * blocks}, 0.1, 0.5);
    const Numbers scales = scale.to_f64();
    QuantizedWeights made;
    made.layer.rows = static_cast<size_t>(rows), made.layer.depth = static_cast<size_t>(depth);
    for (int64_t i = 0; i < all_rows * depth; ++i) {
      const auto at = static_cast<size_t>(i / depth * blocks + i % depth / (depth / blocks));
      const int zero = has_zeros ? z[at] : 1 << (bits - 1);
      made.layer.w.push_back((q[static_cast<size_t>(i)] - zero) * scales[at]);
    }
    const auto experts = static_cast<int64_t>(kExperts);
    made.q = u8({experts, rows, depth / per_byte}, packed(q, depth));
    made.scales = scale.reshaped(block == 0 ? Dims{experts, rows} : Dims{experts, rows, blocks});
    const std::vector<uint8_t> zeros = packed(z, block == 0 ? rows : blocks);
    made.zeros = has_zeros ? u8({static_cast<int64_t>(zeros.size())}, zeros) : Tensor();
    return made;
  }

  ContribNode node(const QuantizedWeights& first, const QuantizedWeights& second, int bits) const {
    ContribNode made("QMoE");
    made.input(x).input(router).constant(first.q).constant(first.scales).skip();
    made.constant(second.q).constant(second.scales).skip().skip().skip().skip();
    made.constant(first.zeros).constant(second.zeros);
    return made.set("k", 2).set("expert_weight_bits", bits);
  }

  const Activation relu = [](Numbers h, const Numbers&, size_t) {
    std::transform(h.begin(), h.end(), h.begin(), [](double v) { return std::max(v, 0.0); });
    return h;
  };
};

TEST_F(QuantizedMixture, NumbersOfAllSizes) {
  for (const int bits : {2, 4, 8}) {
    for (const int64_t block : {0, 8}) {
      for (const bool has_zeros : {false, true}) {
        SCOPED_TRACE(testing::Message() << bits << " bits, blocks of " << block << ", zeros " << has_zeros);
        const QuantizedWeights first = weights(kInner, kWidth, bits, block, has_zeros);
        const QuantizedWeights second = weights(kWidth, kInner, bits, block, has_zeros);
        // Rows before numbers of 8 bits may be rounded to 16.
        const double tolerance = bits == 8 ? 0.5 : 1e-2;
        ContribNode made = node(first, second, bits);
        if (block > 0) made.set("block_size", static_cast<int>(block));
        expect_near(made.result({.rtol = 1e-3, .atol = tolerance}),
                    expected(first.layer, second.layer, softmax_router(2, true), relu), tolerance);
      }
    }
  }
}

TEST_F(QuantizedMixture, SharesOfTheirOwn) {
  const QuantizedWeights first = weights(kInner, kWidth, 4, 8, false), second = weights(kWidth, kInner, 4, 8, false);
  const Tensor shares = draw_tensor(random, DType::f32, {kTokens, kExperts}, 0.1, 1);
  const Numbers given = shares.to_f64(), scores = router.to_f64();
  for (const int normalizes : {0, 1}) {
    ContribNode made = node(first, second, 4);
    made.skip().input(shares).set("block_size", 8).set("normalize_routing_weights", normalizes);
    const Router chosen = [&](size_t token) {
      const std::vector<size_t> best = best_of(scores.data() + token * kExperts, 2);
      const double sum = given[token * kExperts + best[0]] + given[token * kExperts + best[1]];
      std::vector<std::pair<size_t, double>> result;
      for (const size_t e : best) result.emplace_back(e, given[token * kExperts + e] / (normalizes ? sum : 1));
      return result;
    };
    expect_near(made.result({.rtol = 1e-3, .atol = 1e-2}), expected(first.layer, second.layer, chosen, relu), 1e-2);
  }
}

TEST_F(QuantizedMixture, SaysWhatItRefuses) {
  const QuantizedWeights first = weights(kInner, kWidth, 4, 8, false), second = weights(kWidth, kInner, 4, 8, false);
  EXPECT_THROW(node(first, second, 4).set("quant_type", "fp4").result(), UnsupportedError);
  EXPECT_THROW(node(first, second, 4).set("weights_prepacked", 1).result(), UnsupportedError);
  EXPECT_THROW(node(first, second, 3).result(), UnsupportedError);
  EXPECT_THROW(node(first, first, 4).result(), Error);
}

}  // namespace
}  // namespace autograph::tests
