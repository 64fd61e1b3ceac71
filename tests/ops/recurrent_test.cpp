// Recurrent layers with one hidden element and linear functions, so that every value can be done by hand.
#include "autograph/ops/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

Tensor ones(Dims dims) {
  Tensor tensor = Tensor::zeros(DType::f32, std::move(dims));
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), 1.0f);
  return tensor;
}

Attributes linear(size_t count) { return {{"activations", std::vector<std::string>(count, "Affine")}}; }

TEST(Rnn, SumsForwardAndBackward) {
  const Tensor x = Tensor::of<float>({3, 1, 1}, {1, 2, 3});
  Attributes attributes = linear(2);
  attributes.set("direction", std::string("bidirectional"));
  const auto y = run_op_all(rnn_def(), {x, ones({2, 1, 1}), ones({2, 1, 1})}, attributes, 2);
  expect_near(y[0], {1, 6, 3, 5, 6, 3}, 1e-6);
  expect_near(y[1], {6, 6}, 1e-6);
}

TEST(Rnn, PositionsBeyondASequenceAreZero) {
  const Tensor x = Tensor::of<float>({2, 2, 1}, {1, 10, 2, 20});
  const Tensor lengths = Tensor::of<int32_t>({2}, {1, 2});
  const auto y = run_op_all(rnn_def(), {x, ones({1, 1, 1}), ones({1, 1, 1}), Tensor(), lengths}, linear(1), 2);
  expect_near(y[0], {1, 10, 0, 30}, 1e-6);
  expect_near(y[1], {1, 30}, 1e-6);
}

TEST(Rnn, ClipBoundsTheSum) {
  Attributes attributes = linear(1);
  attributes.set("clip", 2.5f);
  expect_near(run_op_all(rnn_def(), {ones({4, 1, 1}), ones({1, 1, 1}), ones({1, 1, 1})}, attributes, 1)[0],
              {1, 2, 2.5, 2.5}, 1e-6);
}

// As the ops of these names; thresholded_relu gives 0.
TEST(Rnn, FunctionsOfNoNumberAreNone) {
  const Tensor x = Tensor::of<float>({1, 1, 1}, {std::numeric_limits<float>::quiet_NaN()});
  for (const char* name :
       {"Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh"}) {
    SCOPED_TRACE(name);
    const Attributes attributes{{"activations", std::vector<std::string>{name}}, {"clip", 3.0F}};
    const auto y = run_op_all(rnn_def(), {x, ones({1, 1, 1}), ones({1, 1, 1})}, attributes, 1);
    EXPECT_TRUE(std::isnan(y[0].data<float>()[0]));
  }
}

TEST(Gru, BlendsCandidateAndState) {
  // z = x + h, n = x + (x + h) * h for weights of 1; h' = (1 - z) n + z h.
  const Tensor x = Tensor::of<float>({1, 1, 1}, {0.5});
  const Tensor h = Tensor::of<float>({1, 1, 1}, {0.25});
  expect_near(run_op_all(gru_def(), {x, ones({1, 3, 1}), ones({1, 3, 1}), Tensor(), Tensor(), h}, linear(2), 1)[0],
              {0.25 * (0.5 + 0.75 * 0.25) + 0.75 * 0.25}, 1e-6);
}

TEST(Lstm, KeepsTheCellAndReadsItThroughPeepholes) {
  // i = f = x + h + c = 3, n = x + h = 1, c' = 3 * 2 + 3 * 1 = 9, o = x + h + c' = 10, h' = 90.
  const Tensor cell = Tensor::of<float>({1, 1, 1}, {2});
  const auto y = run_op_all(
      lstm_def(), {ones({1, 1, 1}), ones({1, 4, 1}), ones({1, 4, 1}), Tensor(), Tensor(), Tensor(), cell, ones({1, 3})},
      linear(3), 3);
  expect_near(y[0], {90}, 1e-4);
  expect_near(y[2], {9}, 1e-5);
}

TEST(Recurrent, RejectsWhatDoesNotFit) {
  const Tensor x = ones({2, 1, 1});
  EXPECT_EQ(error_of(gru_def(), {x, ones({1, 2, 1}), ones({1, 3, 1})}, {}, 1),
            "[gru] W: expected equal extents, got 3 and 2");
  EXPECT_EQ(error_of(rnn_def(), {x, ones({1, 1, 1}), ones({1, 1, 1})},
                     {{"activations", std::vector<std::string>{"Sine"}}}, 1),
            "[rnn] activations: 'Sine' is not an activation function");
  EXPECT_EQ(error_of(rnn_def(), {x, ones({1, 1, 1}), ones({1, 1, 1}), Tensor(), Tensor::of<int32_t>({1}, {3})}, {}, 1),
            "[recurrent] sequence_lens: expected 0..2, got 3");
}

}  // namespace
}  // namespace autograph
