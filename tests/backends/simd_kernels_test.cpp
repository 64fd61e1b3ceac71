// The SIMD kernels against the reference, on every instruction set that this CPU has, with one thread and with two.
#include "backends/cpu/simd/kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

Tensor random_tensor(Random& random, Dims dims, double low = -2, double high = 2) {
  return draw_tensor(random, DType::f32, std::move(dims), low, high);
}

// ---- Rows ------------------------------------------------------------------------------------------------------

TEST(SimdKernels, SoftmaxAlongEveryAxisOfOddShapes) {
  on_every_isa([] {
    Random random(1);
    for (const Dims& dims : {Dims{1, 1}, Dims{3, 5}, Dims{7, 49}, Dims{2, 197, 3}, Dims{5, 3, 33}, Dims{4, 1000}}) {
      for (int64_t axis = 0; axis < static_cast<int64_t>(dims.size()); ++axis) {
        const OpSample sample{.inputs = {random_tensor(random, dims, -30, 30)}, .attributes = {{"axis", axis}}};
        expect_reference(simd::softmax_kernel(), KernelCase(softmax_def(), sample));
      }
    }
  });
}

TEST(SimdKernels, LargeSoftmaxOnTwoThreads) {
  Random random(2);
  const OpSample sample{.inputs = {random_tensor(random, {300, 130})}};
  expect_reference(simd::softmax_kernel(), KernelCase(softmax_def(), sample, {2}));
}

TEST(SimdKernels, LayerAndRmsNormalization) {
  on_every_isa([] {
    Random random(3);
    for (const Dims& dims : {Dims{1, 1}, Dims{3, 7}, Dims{2, 3, 96}, Dims{130, 130}, Dims{2, 4099}}) {
      const Tensor x = random_tensor(random, dims, 3, 5);  // a mean that is not 0
      const Tensor scale = random_tensor(random, {dims.back()});
      const Tensor bias = random_tensor(random, {dims.back()});
      for (const int threads : dims[0] == 130 ? std::vector{1, 2} : std::vector{1}) {
        const FloatTolerance tolerance{1e-4, 1e-5};
        const KernelDef layer = simd::layer_normalization_kernel();
        expect_reference(layer, KernelCase(layer_normalization_def(), {{x, scale, bias}, {}, 1}, {threads}), tolerance);
        expect_reference(layer, KernelCase(layer_normalization_def(), {{x, scale}, {}, 1}, {threads}), tolerance);
        expect_reference(simd::rms_normalization_kernel(), KernelCase(rms_normalization_def(), {{x, scale}}, {threads}),
                         tolerance);
      }
    }
  });
}

// Squares of 1e25 are none in f32, nor are sums of 3e38: the row that holds them is right all the same, and alone.
TEST(SimdKernels, NormalizationOfNumbersWhoseSquaresOverflow) {
  on_every_isa([] {
    Random random(4);
    for (const float largest : {1e20F, 1e25F, 3e38F}) {
      Tensor x = random_tensor(random, {3, 37}, 3, 5);
      for (int64_t i = 0; i < 37; i += 2) x.mutable_data<float>()[37 + i] = i % 4 == 0 ? largest : largest / 3;
      const Tensor scale = random_tensor(random, {37}), bias = random_tensor(random, {37});
      const FloatTolerance tolerance{1e-4, 1e-5};
      expect_reference(simd::layer_normalization_kernel(),
                       KernelCase(layer_normalization_def(), {{x, scale, bias}, {}, 1}, {1}), tolerance);
      expect_reference(simd::rms_normalization_kernel(), KernelCase(rms_normalization_def(), {{x, scale}}, {1}),
                       tolerance);
    }
  });
}

// ---- Attention -------------------------------------------------------------------------------------------------

struct AttentionShape {
  int64_t batch, heads, kv_heads, queries, keys, size, value_size;
};

// q, k, v of rank 4, or of rank 3 with the numbers of heads as attributes.
OpSample attention_sample(Random& random, const AttentionShape& s, bool packed) {
  const auto tensor = [&](int64_t heads, int64_t length, int64_t size) {
    return random_tensor(random, packed ? Dims{s.batch, length, heads * size} : Dims{s.batch, heads, length, size});
  };
  OpSample sample{.inputs = {tensor(s.heads, s.queries, s.size), tensor(s.kv_heads, s.keys, s.size),
                             tensor(s.kv_heads, s.keys, s.value_size)},
                  .num_outputs = 1};
  if (packed) sample.attributes = {{"q_num_heads", s.heads}, {"kv_num_heads", s.kv_heads}};
  return sample;
}

const std::vector<AttentionShape> kAttentionShapes{
    {1, 1, 1, 1, 1, 1, 1},     {2, 3, 3, 5, 7, 4, 9},     {1, 4, 2, 17, 33, 12, 8},  {1, 2, 1, 9, 600, 16, 20},
    {1, 1, 1, 300, 300, 8, 8}, {3, 2, 2, 49, 49, 32, 32}, {1, 3, 1, 8, 150, 20, 33},
};

// A decoder's step: query heads that share keys are worked on together.
const std::vector<AttentionShape> kSingleQueries{
    {1, 7, 7, 1, 300, 64, 64},
    {2, 6, 2, 1, 130, 20, 27},
    {1, 12, 1, 1, 257, 9, 80},
    {3, 5, 1, 1, 8, 4, 4},
};

TEST(SimdKernels, AttentionOfManyShapes) {
  on_every_isa([] {
    Random random(6);
    for (const AttentionShape& shape : kAttentionShapes) {
      for (const bool packed : {false, true}) {
        OpSample sample = attention_sample(random, shape, packed);
        expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample, {packed ? 2 : 1}), {1e-4, 1e-5});
        sample.attributes.set("is_causal", int64_t{1});
        sample.attributes.set("scale", 0.3F);
        expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample), {1e-4, 1e-5});
        sample.attributes.set("softcap", 0.7F);
        sample.attributes.set("left_window_size", int64_t{5});
        expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample), {1e-4, 1e-5});
      }
    }
  });
}

TEST(SimdKernels, AttentionOfSingleQueries) {
  on_every_isa([] {
    Random random(24);
    for (const AttentionShape& shape : kSingleQueries) {
      const std::vector<Dims> masks{{shape.keys},
                                    {shape.heads, 1, shape.keys},
                                    {shape.batch, 1, 1, shape.keys},
                                    {shape.batch, shape.heads, 1, shape.keys - 3}};
      for (const int threads : {1, 2, 5}) {
        for (const bool packed : {false, true}) {
          OpSample sample = attention_sample(random, shape, packed);
          const auto expect_same = [&] {
            expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample, {threads}), {1e-4, 1e-5});
          };
          expect_same();
          sample.attributes.set("is_causal", int64_t{1});
          expect_same();
          sample.attributes.erase("is_causal");
          sample.inputs.emplace_back();
          for (const Dims& dims : masks) {
            sample.inputs[3] = random_tensor(random, dims);
            expect_same();
            sample.inputs[3] = draw_tensor(random, DType::boolean, dims, 0, 1);
            expect_same();
          }
        }
      }
    }
  });
}

TEST(SimdKernels, AttentionWithMasksThatBroadcast) {
  on_every_isa([] {
    Random random(7);
    const AttentionShape s{2, 3, 3, 10, 270, 8, 8};
    const std::vector<Dims> masks{{270}, {10, 270}, {1, 270}, {3, 1, 270}, {2, 1, 1, 270}, {2, 3, 10, 270}, {10, 200}};
    for (const Dims& dims : masks) {
      OpSample sample = attention_sample(random, s, false);
      sample.inputs.emplace_back(random_tensor(random, dims));
      expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample), {1e-4, 1e-5});
      sample.attributes.set("softcap", 1.5F);
      sample.inputs[3] = draw_tensor(random, DType::boolean, dims, 0, 1);
      expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample), {1e-4, 1e-5});
    }
  });
}

// As a mask of bools, too: blocks of keys that nobody sees, at the end, at the beginning and for some queries.
TEST(SimdKernels, AttentionLeavesOutBlocksThatAMaskHides) {
  on_every_isa([] {
    Random random(25);
    for (const AttentionShape& s :
         {AttentionShape{1, 2, 1, 300, 300, 16, 16}, AttentionShape{2, 4, 2, 1, 400, 16, 16}}) {
      for (const int64_t window : {40, 300}) {
        std::vector<bool> seen;
        for (int64_t i = 0; i < s.queries; ++i) {
          const int64_t position = s.queries == 1 ? 250 : i;
          for (int64_t j = 0; j < s.keys; ++j) seen.push_back(j <= position && j > position - window && i != 20);
        }
        OpSample sample = attention_sample(random, s, false);
        sample.inputs.emplace_back(Tensor::of<bool>({s.queries, s.keys}, seen));
        expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample, {2}), {1e-4, 1e-5});
      }
    }
  });
}

TEST(SimdKernels, AttentionOfAQueryThatSeesNothingIsZero) {
  Random random(8);
  OpSample sample = attention_sample(random, {1, 1, 1, 3, 4, 8, 8}, false);
  Tensor mask =
      Tensor::of<bool>({3, 4}, {true, true, false, true, false, false, false, false, true, false, true, true});
  sample.inputs.emplace_back(mask);
  expect_reference(simd::attention_kernel(), KernelCase(attention_def(), sample), {1e-4, 1e-5});
}

TEST(SimdKernels, AttentionSaysWhatItRefuses) {
  Random random(9);
  OpSample sample = attention_sample(random, {1, 1, 1, 3, 4, 8, 8}, false);
  sample.num_outputs = 3;
  EXPECT_EQ(KernelRun(simd::attention_kernel(), KernelCase(attention_def(), sample)).refusal(), "more than one output");
}

// ---- Recurrent layers ------------------------------------------------------------------------------------------

// A call of a recurrent op with more elements than a block has, the usual activation functions and, at random, every
// optional input.
OpSample recurrent_sample(Random& random, const OpDef& op, int64_t gates) {
  const int64_t length = draw(random, 1, 9), batch = draw(random, 1, 5), input = draw(random, 1, 40);
  const int64_t hidden = draw(random, 1, 70), layout = draw(random, 0, 1);
  const std::string direction = draw_one_of<std::string>(random, {"forward", "reverse", "bidirectional"});
  const int64_t directions = direction == "bidirectional" ? 2 : 1;
  const auto tensor = [&](Dims dims) { return random_tensor(random, std::move(dims), -0.5, 0.5); };
  OpSample sample;
  sample.inputs = {tensor(layout ? Dims{batch, length, input} : Dims{length, batch, input}),
                   tensor({directions, gates * hidden, input}), tensor({directions, gates * hidden, hidden})};
  sample.inputs.resize(gates == 4 ? 8 : 6);
  const Dims state = layout ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
  if (draw_bool(random)) sample.inputs[3] = tensor({directions, 2 * gates * hidden});
  if (draw_bool(random)) {
    sample.inputs[4] = draw_tensor(random, DType::i32, {batch}, 0, static_cast<double>(length));
  }
  if (draw_bool(random)) sample.inputs[5] = tensor(state);
  if (gates == 4 && draw_bool(random)) sample.inputs[6] = tensor(state);
  if (gates == 4 && draw_bool(random)) sample.inputs[7] = tensor({directions, 3 * hidden});
  sample.attributes = {{"direction", direction}, {"layout", layout}};
  if (draw_bool(random)) sample.attributes.set("clip", 0.4F);
  if (gates == 4) sample.attributes.set("input_forget", draw(random, 0, 1));
  if (gates == 3) sample.attributes.set("linear_before_reset", draw(random, 0, 1));
  if (gates == 1 && draw_bool(random)) {
    sample.attributes.set("activations", std::vector<std::string>(static_cast<size_t>(directions), "Relu"));
  }
  // The last output of an LSTM and of a GRU is for gradients.
  const bool may_keep_gates = gates > 1 && layout == 0 && !sample.inputs[4].is_present();
  const auto all = static_cast<int64_t>(op.outputs.size());
  sample.num_outputs = static_cast<int>(draw(random, 1, gates > 1 && !may_keep_gates ? all - 1 : all));
  return sample;
}

TEST(SimdKernels, RecurrentLayers) {
  const std::pair<const char*, int64_t> layers[] = {{"lstm", 4}, {"gru", 3}, {"rnn", 1}};
  on_every_isa([&] {
    Random random(20);
    for (size_t k = 0; k < 3; ++k) {
      const OpDef& op = *find_op(layers[k].first);
      SCOPED_TRACE(layers[k].first);
      for (int i = 0; i < 40; ++i) {
        const OpSample sample = recurrent_sample(random, op, layers[k].second);
        expect_reference(simd::recurrent_kernels()[k], KernelCase(op, sample, {1 + i % 2, i % 3 == 0}), {1e-4, 1e-5});
      }
    }
  });
}

// Enough work for some threads, which stay together from step to step, and more positions than are projected at a time.
TEST(SimdKernels, RecurrentLayersInThreadsAndChunks) {
  Random random(21);
  for (const int64_t gates : {4, 3, 2}) {  // 2: a GRU that resets before R
    const bool is_lstm = gates == 4;
    const int64_t rows = (is_lstm ? 4 : 3) * 200;
    for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
      const int64_t directions = direction == "bidirectional" ? 2 : 1;
      OpSample sample;
      sample.inputs = {random_tensor(random, {70, 5, 24}), random_tensor(random, {directions, rows, 24}, -0.1, 0.1),
                       random_tensor(random, {directions, rows, 200}, -0.1, 0.1)};
      sample.attributes = {{"direction", direction}};
      if (!is_lstm) sample.attributes.set("linear_before_reset", gates == 3 ? 1 : 0);
      sample.num_outputs = is_lstm ? 4 : 3;
      SCOPED_TRACE(fmt::format("{} gates, {}", gates, direction));
      for (const int threads : {2, 3}) {
        expect_reference(simd::recurrent_kernels()[is_lstm ? 0 : 1],
                         KernelCase(*find_op(is_lstm ? "lstm" : "gru"), sample, {threads, true}), {1e-4, 1e-5});
      }
    }
  }
}

TEST(SimdKernels, RecurrentLayersRefuseOtherFunctionsAndCheckLengths) {
  Random random(22);
  OpSample sample;
  sample.inputs = {random_tensor(random, {3, 2, 4}), random_tensor(random, {1, 5, 4}),
                   random_tensor(random, {1, 5, 5})};
  sample.attributes = {{"activations", std::vector<std::string>{"Softsign"}}};
  sample.num_outputs = 1;
  const KernelDef rnn = simd::recurrent_kernels()[2];
  EXPECT_EQ(KernelRun(rnn, KernelCase(*find_op("rnn"), sample)).refusal(),
            "activation functions other than the usual ones");
  sample.attributes = {};
  sample.inputs.resize(5);
  sample.inputs[4] = Tensor::of<int32_t>({2}, {3, 4});
  const KernelCase test(*find_op("rnn"), sample);
  KernelRun run(rnn, test);
  EXPECT_THROW(run.run(), ValueError);
}

// States that fade away end at 0, not among the subnormal numbers.
TEST(SimdKernels, RecurrentLayersFadeToZero) {
  constexpr int64_t kLength = 300, kHidden = 20;
  on_every_isa([] {
    Random random(24);
    for (const int64_t gates : {4, 3}) {
      SCOPED_TRACE(gates);
      OpSample sample;
      const Tensor weights = Tensor::zeros(DType::f32, {1, gates * kHidden, kHidden});
      sample.inputs = {Tensor::zeros(DType::f32, {kLength, 2, kHidden}), weights, weights};
      sample.inputs.resize(gates == 4 ? 7 : 6);
      // Nothing comes in (an LSTM's input gate is shut), and about half of what is there stays.
      Tensor biases = random_tensor(random, {1, 2 * gates * kHidden}, -0.5, 0.5);
      float* bias = biases.mutable_data<float>();
      std::fill_n(bias, gates == 4 ? kHidden : 0, -88.0F);
      if (gates == 3) std::fill_n(bias + 2 * kHidden, kHidden, 0.0F);
      if (gates == 3) std::fill_n(bias + 5 * kHidden, kHidden, 0.0F);
      sample.inputs[3] = biases;
      for (size_t k = 5; k < sample.inputs.size(); ++k) sample.inputs[k] = random_tensor(random, {1, 2, kHidden}, 1, 2);
      sample.num_outputs = 2;
      const KernelCase test(*find_op(gates == 4 ? "lstm" : "gru"), sample);
      const KernelDef kernel = simd::recurrent_kernels()[gates == 4 ? 0 : 1];
      expect_reference(kernel, test, {1e-3, 1e-30});
      KernelRun run(kernel, test);
      run.run();
      for (const float y : run.outputs()[0].elements<float>()) ASSERT_TRUE(y == 0 || std::isnormal(y)) << y;
      EXPECT_EQ(run.outputs()[1].elements<float>()[0], 0);
    }
  });
}

TEST(SimdKernels, RecurrentLayersKeepNan) {
  on_every_isa([] {
    Random random(23);
    OpSample sample;
    Tensor x = random_tensor(random, {3, 2, 4});
    x.mutable_data<float>()[9] = std::numeric_limits<float>::quiet_NaN();
    sample.inputs = {x, random_tensor(random, {1, 5, 4}), random_tensor(random, {1, 5, 5})};
    sample.num_outputs = 2;
    for (const std::string name : {"Relu", "Tanh"}) {
      SCOPED_TRACE(name);
      sample.attributes = {{"activations", std::vector<std::string>{name}}};
      expect_reference(simd::recurrent_kernels()[2], KernelCase(*find_op("rnn"), sample), {1e-4, 1e-5});
    }
  });
}

// Neither an LSTM's input gate nor its output gate hides a NaN where it is shut.
TEST(SimdKernels, ShutGatesKeepNan) {
  constexpr int64_t kHidden = 3;
  on_every_isa([] {
    for (const int64_t gate : {0, 1}) {
      SCOPED_TRACE(gate);
      OpSample sample;
      const Tensor weights = Tensor::zeros(DType::f32, {1, 4 * kHidden, kHidden});
      Tensor biases = Tensor::zeros(DType::f32, {1, 8 * kHidden});
      float* bias = biases.mutable_data<float>();
      std::fill_n(bias + gate * kHidden, kHidden, -100.0F);
      bias[3 * kHidden] = std::numeric_limits<float>::quiet_NaN();  // of the first element's candidate
      sample.inputs = {Tensor::zeros(DType::f32, {1, 1, kHidden}), weights, weights, biases};
      sample.num_outputs = 1;
      KernelRun run(simd::recurrent_kernels()[0], KernelCase(*find_op("lstm"), sample));
      run.run();
      EXPECT_TRUE(std::isnan(run.outputs()[0].elements<float>()[0]));
      EXPECT_EQ(run.outputs()[0].elements<float>()[1], 0);
    }
  });
}

// ---- Elementwise -----------------------------------------------------------------------------------------------

TEST(SimdKernels, EveryElementwiseOpOnItsSamples) {
  on_every_isa([] {
    Random random(4);
    size_t taken = 0;
    for (const OpDef* op : all_ops()) {
      if (!op->scalar || !op->sample) continue;
      SCOPED_TRACE(std::string(op->name));
      for (int i = 0; i < 12; ++i) {
        const KernelCase test(*op, op->sample(random), {1, i % 2 == 1});
        KernelRun run(simd::elementwise_kernel(), test);
        if (!run.refusal().empty()) continue;
        ++taken;
        run.run();
        EXPECT_EQ(difference(as_datums(run.outputs()), as_datums(test.reference()), {1e-5, 1e-6}), "");
      }
    }
    EXPECT_GT(taken, 400U);
  });
}

// Of all sizes, so that sums and products wrap around.
Tensor whole_numbers(Random& random, const Dims& dims) {
  return draw_tensor(random, DType::i32, dims, std::numeric_limits<int32_t>::min(),
                     std::numeric_limits<int32_t>::max());
}

// Rows shorter and longer than a tile, operands of every way to broadcast.
TEST(SimdKernels, ElementwiseBroadcasts) {
  const std::vector<std::pair<Dims, Dims>> shapes{
      {{3000}, {3000}},
      {{3000}, {}},
      {{5, 700}, {5, 1}},
      {{5, 700}, {700}},
      {{4, 6, 49}, {6, 1}},
      {{4, 6, 49}, {4, 1, 49}},
      {{3, 1}, {1, 2000}},
      {{2, 1, 3}, {1, 5, 1}},
      {{40, 24, 3}, {24, 1}},
      {{1, 1500}, {3, 1}},
      {{2, 64, 33, 33}, {64, 1, 1}},
      {{0, 3}, {3}},
  };
  on_every_isa([&] {
    Random random(5);
    for (const auto& [a, b] : shapes) {
      for (const int threads : a.size() == 4 ? std::vector{1, 2} : std::vector{1}) {
        const KernelDef def = simd::elementwise_kernel();
        const Tensor x = random_tensor(random, a), y = random_tensor(random, b);
        expect_reference(def, KernelCase(sub_def(), {{x, y}}, {threads}));
        expect_reference(def, KernelCase(div_def(), {{y, x}}, {threads}));
        expect_reference(def, KernelCase(greater_def(), {{x, y}}, {threads}));
        const Tensor mask = draw_tensor(random, DType::boolean, b, 0, 1);
        expect_reference(def, KernelCase(where_def(), {{mask, x, y}}, {threads}));
        expect_reference(def, KernelCase(max_def(), {{x, y, random_tensor(random, a)}}, {threads}));
        const Tensor i = whole_numbers(random, a), j = whole_numbers(random, b);
        for (const OpDef* op : {&add_def(), &sub_def(), &mul_def()}) {
          expect_reference(def, KernelCase(*op, {{i, j}}, {threads}), {0, 0});
        }
        for (const DType to : {DType::f32, DType::boolean}) {
          expect_reference(def, KernelCase(cast_def(), {.inputs = {i}, .attributes = {{"to", to}}}, {threads}), {0, 0});
        }
      }
    }
  });
}

// y = t sigmoid(t) with t = x + b, m = y > 0.1, z = m ? y : x, and x read again behind the first output.
GraphRef gated_body(const Dims& dims, const Dims& bias) {
  auto body = std::make_shared<Graph>("body");
  const Var x = input(*body, DType::f32, Shape::of(dims), "x");
  const Var b = input(*body, DType::f32, Shape::of(bias), "b");
  const Var t = add(x, b);
  const Var y = mul(t, sigmoid(t));
  const Var m = greater(y, constant(*body, Tensor::scalar(0.1F)));
  const Var factors = constant(*body, Tensor::of<float>({dims.back()}, std::vector<float>(dims.back(), 1.5F)));
  const Var z = mul(where(m, y, x), factors);
  for (const Var& output : {y, m, z}) body->add_output(output.id());
  return body;
}

TEST(SimdKernels, FusedChainsWithSeveralOutputs) {
  on_every_isa([] {
    Random random(10);
    for (const Dims& dims : {Dims{2, 5, 7, 7}, Dims{1, 3, 40, 50}, Dims{1, 1, 1, 2}}) {
      const Dims bias{dims[1], 1, 1};
      const OpSample sample{.inputs = {random_tensor(random, dims), random_tensor(random, bias)},
                            .attributes = {{"body", gated_body(dims, bias)}},
                            .num_outputs = 3};
      expect_reference(simd::fused_elementwise_kernel(), KernelCase(fused_def(), sample));
    }
  });
}

// What stands behind a convolution of bytes: y = swish((x + bias) * scale), of integers up to the cast.
TEST(SimdKernels, FusedChainsThatBeginWithIntegers) {
  on_every_isa([] {
    Random random(11);
    for (const Dims& dims : {Dims{2, 5, 7, 7}, Dims{1, 3, 40, 50}, Dims{1, 1, 1, 2}}) {
      const Dims bias{1, dims[1], 1, 1};
      auto body = std::make_shared<Graph>();
      const Var x = input(*body, DType::i32, Shape::of(dims), "x");
      const Var scale = input(*body, DType::f32, Shape::of({1}), "scale");
      const Var sum =
          mul(add(x, constant(*body, whole_numbers(random, bias))), constant(*body, Tensor::scalar<int32_t>(3)));
      const Var y = mul(cast(sum, DType::f32), scale);
      for (const Var& output : {mul(y, sigmoid(y)), sum}) body->add_output(output.id());
      const OpSample sample{.inputs = {whole_numbers(random, dims), Tensor::of<float>({1}, {3e-9F})},
                            .attributes = {{"body", GraphRef(body)}},
                            .num_outputs = 2};
      expect_reference(simd::fused_elementwise_kernel(), KernelCase(fused_def(), sample));
    }
  });
}

TEST(SimdKernels, ElementwiseKeepsNanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> specials{0.0F, -0.0F, 1.0F, -1.0F, inf, -inf, nan, 1e-40F, -1e-40F, 3e38F, -3e38F, 0.25F};
  std::vector<float> left, right;
  for (const float a : specials) {
    for (const float b : specials) {
      left.push_back(a);
      right.push_back(b);
    }
  }
  const auto count = static_cast<int64_t>(left.size());
  const Tensor a = Tensor::of<float>({count}, left), b = Tensor::of<float>({count}, right);
  on_every_isa([&] {
    for (const OpDef* op : all_ops()) {
      if (!op->scalar) continue;
      SCOPED_TRACE(std::string(op->name));
      const size_t inputs = op->inputs.size() == 1 && op->inputs[0].arity == Arity::single ? 1 : 2;
      if (inputs == 2 && (op == &where_def() || op == &clip_def() || op->inputs.size() > 2)) continue;
      if (op->inputs[0].type_var.empty() || !op->types[0].allowed.contains(DType::f32)) continue;
      if (op == &cast_def() || op == &cast_like_def() || op == &bit_cast_def() || op == &bit_shift_def()) continue;
      const KernelCase test(*op, inputs == 1 ? OpSample{{a}} : OpSample{{a, b}});
      KernelRun run(simd::elementwise_kernel(), test);
      if (!run.refusal().empty()) continue;
      run.run();
      EXPECT_EQ(difference(as_datums(run.outputs()), as_datums(test.reference()), {1e-5, 1e-37}), "");
    }
  });
}

TEST(SimdKernels, NanIsTrue) {
  const Tensor x = Tensor::of<float>({4}, {std::numeric_limits<float>::quiet_NaN(), 0.0F, -0.0F, 1e-40F});
  on_every_isa([&] {
    const KernelCase test(cast_def(), {.inputs = {x}, .attributes = {{"to", DType::boolean}}});
    KernelRun run(simd::elementwise_kernel(), test);
    ASSERT_EQ(run.refusal(), "");
    run.run();
    EXPECT_EQ(difference(as_datums(run.outputs()), as_datums(test.reference())), "");
  });
}

// The elements of an [N, C, ...] tensor in the order of `layout`, under the same dims.
Tensor in_layout(const Tensor& x, Layout layout) {
  if (layout == Layout::row_major) return x;
  const int64_t channels = x.dims()[1];
  const int64_t pixels = x.num_elements() / (x.dims()[0] * channels);
  const int64_t block = layout == Layout::channels_last ? channels : channel_block(layout);
  std::vector<float> to(static_cast<size_t>(x.num_elements()));
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const int64_t pixel = i % pixels, channel = i / pixels % channels, n = i / pixels / channels;
    const int64_t group = n * (channels / block) + channel / block;
    to[static_cast<size_t>((group * pixels + pixel) * block + channel % block)] = x.data<float>()[i];
  }
  return Tensor::of<float>(x.dims(), to);
}

TEST(SimdKernels, ElementwiseInEveryLayout) {
  Random random(11);
  const Tensor x = random_tensor(random, {2, 32, 5, 7});
  for (const Dims& other :
       {Dims{2, 32, 5, 7}, Dims{32, 1, 1}, Dims{2, 32, 1, 1}, Dims{}, Dims{7}, Dims{1, 32, 5, 1}, Dims{5, 1}}) {
    const Tensor y = random_tensor(random, other);
    const KernelCase plain(sub_def(), {{x, y}});
    const std::vector<KernelVariant> variants = simd::elementwise_kernel().variants(plain.call());
    EXPECT_EQ(variants.size(), 4U);
    for (const KernelVariant& variant : variants) {
      SCOPED_TRACE(std::string(to_string(variant.output(0))));
      const KernelCase test(sub_def(), {{in_layout(x, variant.input(0)), in_layout(y, variant.input(1))}},
                            {1, false, &variant});
      KernelRun run(simd::elementwise_kernel(), test);
      run.run();
      const Tensor expected = in_layout(plain.reference()[0], variant.output(0));
      EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(expected), {1e-6, 1e-6}), "");
    }
  }
}

// ---- Copies ----------------------------------------------------------------------------------------------------

TEST(SimdKernels, TransposeOfAllOrdersAndWidths) {
  on_every_isa([] {
    Random random(12);
    for (const Dims& dims : {Dims{5, 7, 19}, Dims{2, 17, 3, 21}, Dims{1, 40, 1, 33}, Dims{70, 130}}) {
      std::vector<int64_t> perm(dims.size());
      std::iota(perm.begin(), perm.end(), 0);
      do {
        for (const DType dtype : {DType::f32, DType::i64, DType::u8, DType::f16}) {
          const Tensor x = draw_tensor(random, dtype, dims, 0, 200);
          expect_reference(simd::transpose_kernel(), KernelCase(transpose_def(), {{x}, {{"perm", perm}}}));
        }
      } while (std::next_permutation(perm.begin(), perm.end()));
    }
  });
}

TEST(SimdKernels, LargeTransposeOnTwoThreads) {
  Random random(13);
  // The last ones are low and wide: their columns are shared.
  for (const Dims& dims : {Dims{3, 300, 210}, Dims{1, 1301, 30}, Dims{2, 1024, 65}}) {
    const OpSample sample{.inputs = {random_tensor(random, dims)},
                          .attributes = {{"perm", std::vector<int64_t>{0, 2, 1}}}};
    expect_reference(simd::transpose_kernel(), KernelCase(transpose_def(), sample, {2}));
  }
}

// ---- Functions -------------------------------------------------------------------------------------------------

double units_in_last_place(float actual, double expected) {
  if (std::isnan(expected)) return std::isnan(actual) ? 0 : 1e9;
  if (actual == static_cast<float>(expected)) return 0;
  if (std::isinf(expected) || std::isinf(actual)) return std::fabs(expected) > 3.4028e38 ? 0 : 1e9;
  const double unit = std::max(std::ldexp(1.0, std::ilogb(expected) - 23), 0x1.0p-149);
  const double tiny = 0x1.0p-126;  // below this, results may be flushed
  if (std::fabs(expected) < tiny) return std::fabs(actual) <= 2 * tiny ? 0 : 1e9;
  return std::fabs(static_cast<double>(actual) - expected) / unit;
}

// All exponents and signs, 64 mantissas of each.
Tensor floats_of_every_size() {
  std::vector<float> values;
  for (uint32_t high = 0; high < 512; ++high) {
    for (uint32_t i = 0; i < 64; ++i) values.push_back(std::bit_cast<float>((high << 23) | (i * 131071U)));
  }
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

void expect_units(const OpDef& op, double (*exact)(double), double limit) {
  SCOPED_TRACE(std::string(op.name));
  const Tensor x = floats_of_every_size();
  const KernelCase test(op, {{x}});
  KernelRun run(simd::elementwise_kernel(), test);
  run.run();
  double worst = 0;
  float at = 0;
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const float argument = x.data<float>()[i];
    const double error = units_in_last_place(run.outputs()[0].data<float>()[i], exact(argument));
    if (error > worst) std::tie(worst, at) = std::pair(error, argument);
  }
  EXPECT_LE(worst, limit) << "at " << at;
}

TEST(SimdKernels, FunctionsStayWithinTheirStatedError) {
  on_every_isa([] {
    expect_units(
        exp_def(), [](double x) { return std::exp(x); }, 2);
    expect_units(
        log_def(), [](double x) { return std::log(x); }, 2);
    expect_units(
        erf_def(), [](double x) { return std::erf(x); }, 2);
    expect_units(
        tanh_def(), [](double x) { return std::tanh(x); }, 6);
    expect_units(
        sin_def(), [](double x) { return std::sin(x); }, 3);
    expect_units(
        cos_def(), [](double x) { return std::cos(x); }, 3);
    expect_units(
        sigmoid_def(), [](double x) { return 1 / (1 + std::exp(-x)); }, 4);
    expect_units(
        softplus_def(), [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }, 4);
    expect_units(
        elu_def(), [](double x) { return x < 0 ? std::expm1(x) : x; }, 4);
  });
}

}  // namespace
}  // namespace autograph
