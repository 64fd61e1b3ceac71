// Contrib layers that carry a state, against their formulas in double.
#include <cmath>

#include "autograph/error.h"
#include "autograph/random.h"
#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

using Numbers = std::vector<double>;

// ---- CausalConvWithState ---------------------------------------------------------------------------------------

// x [2, 3, 4], 3 taps, and what it makes of two positions of past.
struct CausalConv {
  Random random{3};
  Tensor x = draw_tensor(random, DType::f32, {2, 3, 4}, -1, 1),
         weight = draw_tensor(random, DType::f32, {3, 1, 3}, -1, 1);
  Tensor bias = draw_tensor(random, DType::f32, {3}, -1, 1), past = draw_tensor(random, DType::f32, {2, 3, 2}, -1, 1);

  // Position `i` of a row, counted from the beginning of the past.
  double at(size_t row, size_t i) const { return i < 2 ? past.to_f64()[row * 2 + i] : x.to_f64()[row * 4 + i - 2]; }
  Numbers outputs() const {
    Numbers y;
    for (size_t row = 0; row < 6; ++row) {
      for (size_t i = 0; i < 4; ++i) {
        double sum = bias.to_f64()[row % 3];
        for (size_t j = 0; j < 3; ++j) sum += weight.to_f64()[row % 3 * 3 + j] * at(row, i + j);
        y.push_back(sum / (1 + std::exp(-sum)));
      }
    }
    return y;
  }
  Numbers present() const {
    Numbers state;
    for (size_t row = 0; row < 6; ++row) state.insert(state.end(), {at(row, 4), at(row, 5)});
    return state;
  }
};

// [2, 3, n] as [2, n, 3].
Numbers turned(const Numbers& x) {
  const size_t n = x.size() / 6;
  Numbers y;
  for (size_t b = 0; b < 2; ++b) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t c = 0; c < 3; ++c) y.push_back(x[(b * 3 + c) * n + i]);
    }
  }
  return y;
}

Tensor turned(const Tensor& x) {
  const Numbers y = turned(x.to_f64());
  return f32({2, x.dims()[2], 3}, std::vector<float>(y.begin(), y.end()));
}

TEST(ContribCausalConv, CarriesTheLastPositions) {
  const CausalConv c;
  for (const bool channels_last : {false, true}) {
    const auto in = [&](const Tensor& v) { return channels_last ? turned(v) : v; };
    const auto out = [&](const Numbers& v) { return channels_last ? turned(v) : v; };
    const std::vector<Tensor> results = ContribNode("CausalConvWithState")
                                            .input(in(c.x))
                                            .constant(c.weight)
                                            .constant(c.bias)
                                            .input(in(c.past))
                                            .set("activation", std::string("silu"))
                                            .set("channels_last", channels_last ? 1 : 0)
                                            .outputs({true, true})
                                            .run();
    expect_near(results[0], out(c.outputs()));
    expect_near(results[1], out(c.present()));
  }
}

TEST(ContribCausalConv, RefusesOtherForms) {
  const CausalConv c;
  for (const char* name : {"dilation", "ndim", "state_window"}) {
    EXPECT_THROW(ContribNode("CausalConvWithState").input(c.x).constant(c.weight).set(name, 2).result(),
                 UnsupportedError);
  }
}

// ---- LinearAttention -------------------------------------------------------------------------------------------

// Two query heads of 3 with four states of 3 x 2 each; keys of the states or of the query heads.
TEST(ContribLinearAttention, SeveralStatesForEachQueryHead) {
  constexpr size_t kBatch = 2, kLength = 3, kQuery = 2, kStates = 4, kKey = 3, kValue = 2;
  Random random(5);
  const auto draw = [&](int64_t columns, double low, double high) {
    return draw_tensor(random, DType::f32, {kBatch, kLength, columns}, low, high);
  };
  const Tensor q = draw(kQuery * kKey, -1, 1), v = draw(kStates * kValue, -1, 1);
  const Tensor decay = draw(kStates, -1, 0), beta = draw(kStates, 0, 1);
  const Tensor past = draw_tensor(random, DType::f32, {kBatch, kStates, kKey, kValue}, -1, 1);
  for (const size_t key_heads : {kStates, kQuery}) {
    const Tensor k = draw(static_cast<int64_t>(key_heads * kKey), -1, 1);
    const auto at = [](const Tensor& x, size_t b, size_t t, size_t column) {
      return x.to_f64()[(b * kLength + t) * static_cast<size_t>(x.dims()[2]) + column];
    };
    Numbers y, state = past.to_f64();
    for (size_t b = 0; b < kBatch; ++b) {
      for (size_t t = 0; t < kLength; ++t) {
        for (size_t h = 0; h < kStates; ++h) {
          double* const s = state.data() + (b * kStates + h) * kKey * kValue;
          const size_t key = (key_heads == kStates ? h : h / 2) * kKey, query = h / 2 * kKey;
          for (size_t i = 0; i < kKey * kValue; ++i) s[i] *= std::exp(at(decay, b, t, h));
          for (size_t d = 0; d < kValue; ++d) {
            double seen = 0, out = 0;
            for (size_t i = 0; i < kKey; ++i) seen += s[i * kValue + d] * at(k, b, t, key + i);
            const double update = at(beta, b, t, h) * (at(v, b, t, h * kValue + d) - seen);
            for (size_t i = 0; i < kKey; ++i) s[i * kValue + d] += at(k, b, t, key + i) * update;
            for (size_t i = 0; i < kKey; ++i) out += s[i * kValue + d] * at(q, b, t, query + i);
            y.push_back(0.5 * out);
          }
        }
      }
    }
    const std::vector<Tensor> results = ContribNode("LinearAttention")
                                            .input(q)
                                            .input(k)
                                            .input(v)
                                            .input(past)
                                            .input(decay)
                                            .input(beta)
                                            .set("q_num_heads", int{kQuery})
                                            .set("kv_num_heads", int{kStates})
                                            .set("scale", 0.5F)
                                            .outputs({true, true})
                                            .run();
    expect_near(results[0], y);
    expect_near(results[1], state);
  }
}

// ---- What stands around them -----------------------------------------------------------------------------------

TEST(ContribLinearAttention, Gate) {
  Random random(9);
  const Tensor a = draw_tensor(random, DType::f32, {2, 3, 4}, -3, 3),
               b = draw_tensor(random, DType::f32, {2, 3, 4}, -3, 3);
  const Tensor bias = draw_tensor(random, DType::f32, {4}, -1, 1), scale = draw_tensor(random, DType::f32, {4}, -2, -1);
  Numbers decay, beta;
  for (size_t i = 0; i < 24; ++i) {
    decay.push_back(scale.to_f64()[i % 4] * std::log1p(std::exp(a.to_f64()[i] + bias.to_f64()[i % 4])));
    beta.push_back(1 / (1 + std::exp(-b.to_f64()[i])));
  }
  ContribNode node("LinearAttentionGate");
  node.input(a).constant(bias).constant(scale);
  expect_near(node.result(), decay);
  EXPECT_THROW(ContribNode(node).outputs({true, true}).run(), UnsupportedError);
  const std::vector<Tensor> both = node.input(b).outputs({true, true}).run();
  expect_near(both[0], decay);
  expect_near(both[1], beta);
}

// Two groups of 3 in each row.
TEST(ContribLinearAttention, GatedNormsAndSums) {
  Random random(10);
  const Tensor x = draw_tensor(random, DType::f32, {2, 6}, -1, 1),
               gate = draw_tensor(random, DType::f32, {2, 6}, -3, 3);
  const Tensor scale = draw_tensor(random, DType::f32, {3}, 0.5, 1);
  for (const std::string activation : {"silu", "swish", "sigmoid"}) {
    Numbers expected;
    for (size_t i = 0; i < 12; ++i) {
      double squares = 0;
      for (size_t j = i / 3 * 3; j < i / 3 * 3 + 3; ++j) squares += x.to_f64()[j] * x.to_f64()[j];
      const double z = gate.to_f64()[i], open = 1 / (1 + std::exp(-z));
      expected.push_back(x.to_f64()[i] / std::sqrt(squares / 3 + 0.1) * scale.to_f64()[i % 3] *
                         (activation == "sigmoid" ? open : z * open));
    }
    ContribNode node("GatedRMSNorm");
    node.input(x).constant(scale).input(gate).set("epsilon", 0.1F).set("activation", activation);
    expect_near(node.result(), expected);
  }
  EXPECT_THROW(ContribNode("GatedRMSNorm").input(x).constant(scale).input(gate).set("activation", "relu").result(),
               UnsupportedError);
  const Tensor y = draw_tensor(random, DType::f32, {2, 6}, -1, 1),
               each = draw_tensor(random, DType::f32, {2, 1}, -1, 1);
  Numbers sums;
  for (size_t i = 0; i < 12; ++i) sums.push_back(x.to_f64()[i] + y.to_f64()[i] * each.to_f64()[i / 6]);
  expect_near(ContribNode("GatedAdd").input(x).input(y).input(each).result(), sums);
}

}  // namespace
}  // namespace autograph::tests
