// Contrib attention against the formula in double, with every kind of mask, cache and head.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "autograph/error.h"
#include "autograph/random.h"
#include "io/contrib_node.h"
#include "ops/sample.h"

namespace autograph::tests {
namespace {

using Numbers = std::vector<double>;

void expect_near(const Tensor& actual, const Numbers& expected, double limit = 1e-4) {
  tests::expect_near(actual, expected, limit);
}

// A tensor [batch, heads, length, size] as numbers.
struct Heads {
  size_t batch, heads, length, size;
  Numbers values;
  double at(size_t b, size_t h, size_t i, size_t d) const { return values[((b * heads + h) * length + i) * size + d]; }
};

// From [batch, length, columns], the columns from `first` on.
Heads split(const Tensor& x, size_t heads, size_t size, size_t first = 0) {
  const auto batch = static_cast<size_t>(x.dims()[0]), length = static_cast<size_t>(x.dims()[1]);
  const auto columns = static_cast<size_t>(x.dims()[2]);
  const Numbers values = x.to_f64();
  Heads result{batch, heads, length, size, {}};
  for (size_t b = 0; b < batch; ++b) {
    for (size_t h = 0; h < heads; ++h) {
      for (size_t i = 0; i < length; ++i) {
        for (size_t d = 0; d < size; ++d) {
          result.values.push_back(values[(b * length + i) * columns + first + h * size + d]);
        }
      }
    }
  }
  return result;
}

Heads whole(const Tensor& x) {
  return {static_cast<size_t>(x.dims()[0]), static_cast<size_t>(x.dims()[1]), static_cast<size_t>(x.dims()[2]),
          static_cast<size_t>(x.dims()[3]), x.to_f64()};
}

Heads joined(const Heads& past, const Heads& fresh) {
  Heads all{fresh.batch, fresh.heads, past.length + fresh.length, fresh.size, {}};
  for (size_t b = 0; b < all.batch; ++b) {
    for (size_t h = 0; h < all.heads; ++h) {
      for (size_t i = 0; i < all.length; ++i) {
        for (size_t d = 0; d < all.size; ++d) {
          all.values.push_back(i < past.length ? past.at(b, h, i, d) : fresh.at(b, h, i - past.length, d));
        }
      }
    }
  }
  return all;
}

struct Place {
  size_t batch, head, query, key;
};
using Bias = std::function<double(Place)>;

// [batch, length, heads * size]; `sink` of a head is one more addend below.
Numbers attend(const Heads& q, const Heads& k, const Heads& v, const Bias& bias, double scale = 0,
               const std::function<double(size_t)>& sink = nullptr) {
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(q.size));
  Numbers y(q.batch * q.length * q.heads * v.size, 0.0);
  for (size_t b = 0; b < q.batch; ++b) {
    for (size_t h = 0; h < q.heads; ++h) {
      const size_t group = h / (q.heads / k.heads);
      for (size_t i = 0; i < q.length; ++i) {
        Numbers weights;
        double largest = sink ? sink(h) : -std::numeric_limits<double>::infinity();
        for (size_t j = 0; j < k.length; ++j) {
          double score = 0;
          for (size_t d = 0; d < q.size; ++d) score += q.at(b, h, i, d) * k.at(b, group, j, d);
          weights.push_back(score * scale + bias({b, h, i, j}));
          largest = std::max(largest, weights.back());
        }
        double sum = sink ? std::exp(sink(h) - largest) : 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (size_t j = 0; j < k.length; ++j) {
          for (size_t d = 0; d < v.size; ++d) {
            y[((b * q.length + i) * q.heads + h) * v.size + d] += weights[j] / sum * v.at(b, group, j, d);
          }
        }
      }
    }
  }
  return y;
}

const double kHidden = -std::numeric_limits<double>::infinity();

// ---- Attention -------------------------------------------------------------------------------------------------

// Batch 2, 3 positions, 2 heads of 4; the projection is the identity.
class AttentionOp : public ::testing::Test {
 protected:
  static constexpr size_t kBatch = 2, kLength = 3, kHeads = 2, kSize = 4, kHidden3 = 3 * kHeads * kSize;

  AttentionOp() {
    x_ = draw_tensor(random_, DType::f32, {kBatch, kLength, kHidden3}, -2, 2);
    eye_ = Tensor::zeros(DType::f32, {kHidden3, kHidden3});
    for (size_t i = 0; i < kHidden3; ++i) eye_.mutable_data<float>()[i * kHidden3 + i] = 1;
  }

  ContribNode node() { return ContribNode("Attention").input(x_).constant(eye_).skip(); }

  Heads part(size_t which) const { return split(x_, kHeads, kSize, which * kHeads * kSize); }

  void expect(ContribNode node, const Bias& bias, double scale = 0) {
    expect_near(node.set("num_heads", int{kHeads}).result(), attend(part(0), part(1), part(2), bias, scale));
  }

  Random random_{7};
  Tensor x_, eye_;
};

TEST_F(AttentionOp, Plain) {
  expect(node(), [](Place) { return 0.0; });
  expect(
      node().set("scale", 0.25F), [](Place) { return 0.0; }, 0.25);
}

TEST_F(AttentionOp, Causal) {
  expect(node().set("unidirectional", 1), [](Place p) { return p.key > p.query ? kHidden : 0.0; });
}

TEST_F(AttentionOp, MaskOfEveryForm) {
  const auto bias = [](bool visible) { return visible ? 0.0 : -7.0; };
  const auto masked = [&](Tensor mask) { return node().input(std::move(mask)).set("mask_filter_value", -7.0F); };
  expect(masked(i32({2}, {3, 2})), [&](Place p) { return bias(p.key < (p.batch == 0 ? 3 : 2)); });
  expect(masked(i32({4}, {3, 2, 1, 0})), [&](Place p) { return bias(p.batch == 0 ? p.key >= 1 : p.key < 2); });
  expect(masked(i32({2, 3}, {1, 0, 1, 1, 1, 0})), [&](Place p) { return bias(p.key != (p.batch == 0 ? 1 : 2)); });
  std::vector<int32_t> pairs(18, 1);
  pairs[1] = 0, pairs[17] = 0;
  expect(masked(i32({2, 3, 3}, pairs)), [&](Place p) { return bias(pairs[(p.batch * 3 + p.query) * 3 + p.key] != 0); });
}

TEST_F(AttentionOp, CausalFrontierHidesMoreThanAMask) {
  // The first query of the second sequence sees nothing but a masked key.
  expect(node().input(i32({2, 3}, {1, 1, 1, 0, 1, 1})).set("unidirectional", 1),
         [](Place p) { return p.key > p.query ? kHidden : (p.batch == 1 && p.key == 0 ? -10000.0 : 0.0); });
}

TEST_F(AttentionOp, PastAndPresent) {
  const Tensor past = draw_tensor(random_, DType::f32, {2, kBatch, kHeads, 2, kSize}, -2, 2);
  const int64_t half = past.num_elements() / 2;
  const Numbers numbers = past.to_f64();
  const auto past_half = [&](int64_t i) {
    return Heads{kBatch, kHeads, 2, kSize, Numbers(numbers.begin() + i * half, numbers.begin() + (i + 1) * half)};
  };
  const Heads k = joined(past_half(0), part(1)), v = joined(past_half(1), part(2));
  const std::vector<Tensor> results =
      node().skip().input(past).set("num_heads", int{kHeads}).set("unidirectional", 1).outputs({true, true}).run();
  expect_near(results[0], attend(part(0), k, v, [](Place p) { return p.key > p.query + 2 ? kHidden : 0.0; }));
  Numbers present = k.values;
  present.insert(present.end(), v.values.begin(), v.values.end());
  EXPECT_EQ(results[1].dims(), (Dims{2, kBatch, kHeads, 5, kSize}));
  expect_near(results[1], present);
}

TEST_F(AttentionOp, ValuesOfAnotherSize) {
  const ContribNode narrow = node().set("num_heads", 2).set("qkv_hidden_sizes", std::vector<int64_t>{6, 6, 12});
  expect_near(narrow.result(),
              attend(split(x_, 2, 3, 0), split(x_, 2, 3, 6), split(x_, 2, 6, 12), [](Place) { return 0.0; }));
}

TEST_F(AttentionOp, Quantized) {
  // Whole numbers that bytes hold exactly.
  Tensor bytes = Tensor::zeros(DType::u8, x_.dims());
  for (int64_t i = 0; i < x_.num_elements(); ++i) {
    bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(draw(random_, 0, 9));
    x_.mutable_data<float>()[i] = static_cast<float>(bytes.data<uint8_t>()[i]) - 4;
  }
  Tensor eye = Tensor::zeros(DType::i8, eye_.dims());
  for (int64_t i = 0; i < eye_.num_elements(); ++i) eye.mutable_data<int8_t>()[i] = eye_.data<float>()[i] != 0 ? 2 : 0;
  const ContribNode quantized = ContribNode("QAttention")
                                    .input(bytes)
                                    .constant(eye)
                                    .constant(Tensor::zeros(DType::f32, {int64_t{kHidden3}}))
                                    .constant(f32(1.0F))
                                    .constant(f32(0.5F))
                                    .input(i32({2}, {3, 2}))
                                    .constant(u8(4))
                                    .constant(i8(0));
  expect(quantized, [](Place p) { return p.batch == 1 && p.key == 2 ? -10000.0 : 0.0; });
}

// ---- MultiHeadAttention ----------------------------------------------------------------------------------------

class MultiHead : public ::testing::Test {
 protected:
  Tensor draw_floats(Dims dims) { return draw_tensor(random_, DType::f32, std::move(dims), -2, 2); }
  Random random_{8};
};

TEST_F(MultiHead, BiasMaskAndAddend) {
  const Tensor q = draw_floats({2, 3, 4}), k = draw_floats({2, 5, 4}), v = draw_floats({2, 5, 6});
  const Tensor addend = draw_floats({1, 2, 3, 5});
  const auto node = [&](Tensor bias) {
    return ContribNode("MultiHeadAttention")
        .input(q)
        .input(k)
        .input(v)
        .constant(std::move(bias))
        .input(i32({2, 5}, {1, 1, 1, 0, 0, 1, 1, 1, 1, 1}))
        .input(addend)
        .set("num_heads", 2);
  };
  const Numbers extra = addend.to_f64();
  const Bias bias = [&](Place p) {
    return extra[(p.head * 3 + p.query) * 5 + p.key] - (p.batch == 0 && p.key >= 3 ? 10000.0 : 0.0);
  };
  const Tensor zeros = Tensor::zeros(DType::f32, {14});
  expect_near(node(zeros).result(), attend(split(q, 2, 2), split(k, 2, 2), split(v, 2, 3), bias));
  // A bias of 1 on v alone moves the result by 1.
  Tensor ones = zeros.clone();
  for (int64_t i = 8; i < 14; ++i) ones.mutable_data<float>()[i] = 1;
  Numbers moved = attend(split(q, 2, 2), split(k, 2, 2), split(v, 2, 3), bias);
  for (double& value : moved) value += 1;
  expect_near(node(ones).result(), moved);
}

TEST_F(MultiHead, PastPresentAndCausal) {
  const Tensor q = draw_floats({1, 2, 4}), k = draw_floats({1, 2, 4}), v = draw_floats({1, 2, 4});
  const Tensor past_k = draw_floats({1, 2, 3, 2}), past_v = draw_floats({1, 2, 3, 2});
  const std::vector<Tensor> results = ContribNode("MultiHeadAttention")
                                          .input(q)
                                          .input(k)
                                          .input(v)
                                          .skip()
                                          .skip()
                                          .skip()
                                          .input(past_k)
                                          .input(past_v)
                                          .set("num_heads", 2)
                                          .set("unidirectional", 1)
                                          .outputs({true, true, true})
                                          .run();
  const Heads keys = joined(whole(past_k), split(k, 2, 2)), values = joined(whole(past_v), split(v, 2, 2));
  expect_near(results[0],
              attend(split(q, 2, 2), keys, values, [](Place p) { return p.key > p.query + 3 ? kHidden : 0.0; }));
  expect_near(results[1], keys.values);
  expect_near(results[2], values.values);
}

TEST_F(MultiHead, PackedAndPerHeadOperands) {
  const Tensor packed = draw_floats({1, 3, 2, 3, 2});  // batch, length, heads, which, size
  Heads parts[3];
  for (size_t which = 0; which < 3; ++which) {
    parts[which] = {1, 2, 3, 2, {}};
    for (size_t h = 0; h < 2; ++h) {
      for (size_t i = 0; i < 3; ++i) {
        for (size_t d = 0; d < 2; ++d) {
          parts[which].values.push_back(packed.to_f64()[((i * 2 + h) * 3 + which) * 2 + d]);
        }
      }
    }
  }
  const Bias none = [](Place) { return 0.0; };
  expect_near(ContribNode("MultiHeadAttention").input(packed).set("num_heads", 2).result(),
              attend(parts[0], parts[1], parts[2], none));
  const Tensor q = draw_floats({1, 2, 4}), k = draw_floats({1, 2, 3, 2}), v = draw_floats({1, 2, 3, 2});
  expect_near(ContribNode("MultiHeadAttention").input(q).input(k).input(v).set("num_heads", 2).result(),
              attend(split(q, 2, 2), whole(k), whole(v), none));
}

// ---- RotaryEmbedding -------------------------------------------------------------------------------------------

// Turns the first 2 n of each head in place, pair `n` by the row of the tables that position(batch, i, n) names.
void turn_pairs(Heads& x, const Tensor& cosines, const Tensor& sines, bool interleaved,
                const std::function<size_t(size_t, size_t, size_t)>& position) {
  const auto half = static_cast<size_t>(cosines.dims()[1]);
  for (size_t b = 0; b < x.batch; ++b) {
    for (size_t h = 0; h < x.heads; ++h) {
      for (size_t i = 0; i < x.length; ++i) {
        double* row = x.values.data() + ((b * x.heads + h) * x.length + i) * x.size;
        for (size_t n = 0; n < half; ++n) {
          double& first = row[interleaved ? 2 * n : n];
          double& second = row[interleaved ? 2 * n + 1 : n + half];
          const size_t at = position(b, i, n) * half + n;
          const double c = cosines.to_f64()[at], s = sines.to_f64()[at];
          const double turned = first * c - second * s;
          second = first * s + second * c;
          first = turned;
        }
      }
    }
  }
}

// All pairs of a position by the same row.
void turn(Heads& x, const Tensor& cosines, const Tensor& sines, bool interleaved,
          const std::function<size_t(size_t, size_t)>& position) {
  turn_pairs(x, cosines, sines, interleaved, [&](size_t b, size_t i, size_t) { return position(b, i); });
}

TEST_F(MultiHead, RotaryEmbeddingFromAnOffsetOrByPosition) {
  const Tensor cosines = draw_floats({9, 2}), sines = draw_floats({9, 2});
  const Tensor x = draw_floats({2, 3, 2, 6});  // batch, heads, length, size: the first 4 of 6 turn
  for (const int interleaved : {0, 1}) {
    const auto node = [&](Tensor ids) {
      return ContribNode("RotaryEmbedding")
          .input(x)
          .input(std::move(ids))
          .constant(cosines)
          .constant(sines)
          .set("interleaved", interleaved)
          .set("num_heads", 3)
          .set("rotary_embedding_dim", 4);
    };
    Heads shifted = whole(x);
    turn(shifted, cosines, sines, interleaved != 0, [](size_t, size_t i) { return i + 5; });
    expect_near(node(i64({1}, {5})).result(), shifted.values);
    Heads placed = whole(x);
    turn(placed, cosines, sines, interleaved != 0, [](size_t b, size_t i) { return 7 - 2 * b - i; });
    expect_near(node(i64({2, 2}, {7, 6, 5, 4})).result(), placed.values);
    EXPECT_THROW(node(i64({1, 2, 2}, {7, 6, 5, 4})).result(), UnsupportedError);
  }
}

TEST_F(MultiHead, RotaryEmbeddingOfPackedHeads) {
  const Tensor cosines = draw_floats({4, 2}), sines = draw_floats({4, 2});
  const Tensor x = draw_floats({1, 2, 8});  // two heads of 4
  const Tensor y =
      ContribNode("RotaryEmbedding").input(x).input(i64({1}, {1})).constant(cosines).constant(sines).result();
  Heads expected = split(x, 2, 4);
  turn(expected, cosines, sines, false, [](size_t, size_t i) { return i + 1; });
  const Numbers actual = split(y, 2, 4).values;
  ASSERT_EQ(actual.size(), expected.values.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected.values[i], 1e-4) << "at " << i;
}

// As transformers' Qwen2-VL (sections) and Qwen3-VL (turns): of 6 pairs the first 2, or all that nobody else has, by
// time.
TEST_F(MultiHead, RotaryEmbeddingOfThreePositions) {
  const Tensor cosines = draw_floats({9, 6}), sines = draw_floats({9, 6});
  const Tensor x = draw_floats({2, 3, 2, 12});  // batch, heads, length, size
  const std::vector<int64_t> ids{0, 1, 2, 3, 4, 5, 6, 7, 8, 7, 6, 5};
  const std::vector<std::vector<size_t>> of_pair{{0, 0, 1, 1, 1, 2}, {0, 1, 2, 0, 1, 0}};
  const std::vector<std::vector<int64_t>> sections{{2, 3, 1}, {3, 2, 1}};
  for (const int layout : {0, 1}) {
    const auto which = static_cast<size_t>(layout);
    const auto node = [&](const std::vector<int64_t>& section) {
      return ContribNode("MRotaryEmbedding")
          .input(x)
          .input(i64({3, 2, 2}, ids))
          .constant(cosines)
          .constant(sines)
          .set("mrope_layout", layout)
          .set("mrope_section", section);
    };
    Heads expected = whole(x);
    turn_pairs(expected, cosines, sines, false, [&](size_t b, size_t i, size_t n) {
      return static_cast<size_t>(ids[of_pair[which][n] * 4 + b * 2 + i]);
    });
    expect_near(node(sections[which]).result(), expected.values);
    EXPECT_THROW(node({2, 2, 1}).result(), UnsupportedError);
  }
}

// ---- GroupQueryAttention ---------------------------------------------------------------------------------------

class GroupQuery : public MultiHead {
 protected:
  // 4 query heads over 2 of keys and values, size 2.
  ContribNode node(const Tensor& q, const Tensor& k, const Tensor& v) {
    return ContribNode("GroupQueryAttention").input(q).input(k).input(v).set("num_heads", 4).set("kv_num_heads", 2);
  }
};

TEST_F(GroupQuery, Prompt) {
  const Tensor q = draw_floats({2, 3, 8}), k = draw_floats({2, 3, 4}), v = draw_floats({2, 3, 4});
  const auto prompt = [&] {
    return node(q, k, v).skip().skip().input(i32({2}, {2, 2})).input(Tensor::scalar<int32_t>(3));
  };
  const auto expected = [&](const Bias& bias, const std::function<double(size_t)>& sink = nullptr) {
    return attend(split(q, 4, 2), split(k, 2, 2), split(v, 2, 2), bias, 0, sink);
  };
  const Bias causal = [](Place p) { return p.key > p.query ? kHidden : 0.0; };
  const std::vector<Tensor> results = prompt().outputs({true, true, true}).run();
  expect_near(results[0], expected(causal));
  expect_near(results[1], split(k, 2, 2).values);
  expect_near(prompt().set("local_window_size", 2).result(),
              expected([](Place p) { return p.key > p.query || p.key + 2 <= p.query ? kHidden : 0.0; }));
  expect_near(prompt().set("smooth_softmax", 1).result(), expected(causal, [](size_t) { return 0.0; }));
  const std::vector<float> sinks{0.5F, -1, 2, 0};
  expect_near(prompt().skip().skip().skip().skip().constant(f32({4}, sinks)).result(),
              expected(causal, [&](size_t h) { return sinks[h]; }));
}

TEST_F(GroupQuery, CachesOfDifferentLengthInOneBuffer) {
  // Rows of 3 and 1 keys so far in a buffer of 5; one more each.
  const Tensor q = draw_floats({2, 1, 8}), k = draw_floats({2, 1, 4}), v = draw_floats({2, 1, 4});
  const Tensor past_k = draw_floats({2, 2, 5, 2}), past_v = draw_floats({2, 2, 5, 2});
  const std::vector<Tensor> results = node(q, k, v)
                                          .input(past_k)
                                          .input(past_v)
                                          .input(i32({2}, {3, 1}))
                                          .input(Tensor::scalar<int32_t>(4))
                                          .outputs({true, true, true})
                                          .run();
  const auto present = [&](const Tensor& past, const Tensor& fresh) {
    Heads all = whole(past);
    const Heads row = split(fresh, 2, 2);
    for (size_t b = 0; b < 2; ++b) {
      for (size_t h = 0; h < 2; ++h) {
        for (size_t d = 0; d < 2; ++d) {
          all.values[((b * 2 + h) * 5 + (b == 0 ? 3 : 1)) * 2 + d] = row.at(b, h, 0, d);
        }
      }
    }
    return all;
  };
  expect_near(results[0], attend(split(q, 4, 2), present(past_k, k), present(past_v, v),
                                 [](Place p) { return p.key > (p.batch == 0 ? 3U : 1U) ? kHidden : 0.0; }));
  EXPECT_EQ(results[1].dims(), (Dims{2, 2, 5, 2}));
  for (size_t d = 0; d < 2; ++d) {  // the new key of the second row, head 0
    EXPECT_NEAR(whole(results[1]).at(1, 0, 1, d), split(k, 2, 2).at(1, 0, 0, d), 1e-6);
    EXPECT_NEAR(whole(results[1]).at(1, 0, 0, d), whole(past_k).at(1, 0, 0, d), 1e-6);
  }
}

TEST_F(GroupQuery, GrowingCacheWithRotaryEmbedding) {
  const Tensor cosines = draw_floats({9, 1}), sines = draw_floats({9, 1});
  const Tensor packed = draw_floats({1, 2, 16});  // q 8, k 4, v 4
  const Tensor past_k = draw_floats({1, 2, 3, 2}), past_v = draw_floats({1, 2, 3, 2});
  const std::vector<Tensor> results = ContribNode("GroupQueryAttention")
                                          .input(packed)
                                          .skip()
                                          .skip()
                                          .input(past_k)
                                          .input(past_v)
                                          .input(i32({1}, {4}))
                                          .input(Tensor::scalar<int32_t>(5))
                                          .constant(cosines)
                                          .constant(sines)
                                          .set("num_heads", 4)
                                          .set("kv_num_heads", 2)
                                          .set("do_rotary", 1)
                                          .set("softcap", 0.0F)
                                          .outputs({true, true, true})
                                          .run();
  Heads q = split(packed, 4, 2), k = split(packed, 2, 2, 8);
  for (Heads* heads : {&q, &k}) turn(*heads, cosines, sines, false, [](size_t, size_t i) { return i + 3; });
  const Heads keys = joined(whole(past_k), k), values = joined(whole(past_v), split(packed, 2, 2, 12));
  expect_near(results[0], attend(q, keys, values, [](Place p) { return p.key > p.query + 3 ? kHidden : 0.0; }));
  expect_near(results[1], keys.values);
  expect_near(results[2], values.values);
}

// Steps of `length` tokens after which rows of the batch have had so many, in a cache of `capacity` positions.
struct WindowedCase {
  std::vector<int> counts;
  int length, window, capacity;

  // Positions that the cache holds of so many.
  int resident(int count) const {
    if (count <= capacity) return count;
    const int step = capacity - window + 1;
    return count - step * ((count - capacity + step - 1) / step);
  }
};

class WindowedCache : public GroupQuery, public ::testing::WithParamInterface<WindowedCase> {
 protected:
  // [batch, positions, heads * size], from `first` of each row on.
  static Tensor rows(const Heads& all, const std::vector<int>& first, size_t count) {
    std::vector<float> values;
    for (size_t b = 0; b < all.batch; ++b) {
      for (size_t i = 0; i < count; ++i) {
        for (size_t h = 0; h < all.heads; ++h) {
          for (size_t d = 0; d < all.size; ++d) {
            values.push_back(static_cast<float>(all.at(b, h, static_cast<size_t>(first[b]) + i, d)));
          }
        }
      }
    }
    const auto extent = [](size_t n) { return static_cast<int64_t>(n); };
    return f32({extent(all.batch), extent(count), extent(all.heads * all.size)}, values);
  }

  // A buffer that holds what it should after `counts` keys, and 9 behind.
  static Numbers buffer(const Heads& all, const std::vector<int>& counts, const WindowedCase& c) {
    Numbers values;
    for (size_t b = 0; b < all.batch; ++b) {
      const int held = c.resident(counts[b]);
      for (size_t h = 0; h < all.heads; ++h) {
        for (int i = 0; i < c.capacity; ++i) {
          for (size_t d = 0; d < all.size; ++d) {
            const auto position = static_cast<size_t>(counts[b] - held + i);
            values.push_back(i < held ? all.at(b, h, position, d) : 9.0);
          }
        }
      }
    }
    return values;
  }

  static Tensor as_floats(const Numbers& numbers, const Dims& dims) {
    return f32(dims, std::vector<float>(numbers.begin(), numbers.end()));
  }
};

TEST_P(WindowedCache, HoldsTheLatestPositions) {
  const WindowedCase& c = GetParam();
  const auto batch = static_cast<int64_t>(c.counts.size());
  const int most = *std::max_element(c.counts.begin(), c.counts.end());
  std::vector<int> before;
  std::vector<int32_t> last;
  for (const int count : c.counts) {
    before.push_back(count - c.length);
    last.push_back(count - 1);
  }
  const Heads keys = whole(draw_floats({batch, 2, most, 2})), values = whole(draw_floats({batch, 2, most, 2}));
  const Tensor q = draw_floats({batch, c.length, 8});
  const auto length = static_cast<size_t>(c.length);
  const Dims cache{batch, 2, c.capacity, 2};
  const std::vector<Tensor> results = node(q, rows(keys, before, length), rows(values, before, length))
                                          .input(as_floats(buffer(keys, before, c), cache))
                                          .input(as_floats(buffer(values, before, c), cache))
                                          .input(i32({batch}, last))
                                          .input(Tensor::scalar<int32_t>(most))
                                          .set("local_window_size", c.window)
                                          .set("sliding_window_cache", 1)
                                          .outputs({true, true, true})
                                          .run();
  expect_near(results[0], attend(split(q, 4, 2), keys, values, [&](Place p) {
                const int position = before[p.batch] + static_cast<int>(p.query), key = static_cast<int>(p.key);
                return key > position || key <= position - c.window ? kHidden : 0.0;
              }));
  for (const size_t which : {1, 2}) {
    const Heads& all = which == 1 ? keys : values;
    ASSERT_EQ(results[which].dims(), cache);
    const Heads present = whole(results[which]);
    for (size_t b = 0; b < all.batch; ++b) {
      const int held = c.resident(c.counts[b]);
      for (size_t h = 0; h < 2; ++h) {
        for (int i = 0; i < held; ++i) {
          EXPECT_NEAR(present.at(b, h, static_cast<size_t>(i), 1),
                      all.at(b, h, static_cast<size_t>(c.counts[b] - held + i), 1), 1e-6)
              << "position " << i << " of " << held;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Steps, WindowedCache,
                         ::testing::Values(WindowedCase{{3, 7}, 1, 4, 4}, WindowedCase{{4, 5}, 1, 4, 4},
                                           WindowedCase{{9, 2}, 1, 3, 5}, WindowedCase{{12, 11}, 1, 3, 6},
                                           WindowedCase{{8}, 1, 5, 40}, WindowedCase{{9}, 9, 4, 4},
                                           WindowedCase{{9}, 9, 4, 6}, WindowedCase{{17}, 5, 4, 5},
                                           WindowedCase{{6}, 4, 4, 4}, WindowedCase{{30}, 7, 4, 9}));

TEST_F(GroupQuery, RefusesCachesSmallerThanTheirWindow) {
  const Tensor q = draw_floats({1, 1, 8}), k = draw_floats({1, 1, 4}), v = draw_floats({1, 1, 4});
  const ContribNode step = node(q, k, v)
                               .input(draw_floats({1, 2, 3, 2}))
                               .input(draw_floats({1, 2, 3, 2}))
                               .input(i32({1}, {2}))
                               .input(Tensor::scalar<int32_t>(3))
                               .set("local_window_size", 4)
                               .set("sliding_window_cache", 1);
  EXPECT_THROW(step.result(), ValueError);
}

}  // namespace
}  // namespace autograph::tests
