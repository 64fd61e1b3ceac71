// Kernels of backward passes against the reference, in every variant there is: gradients of the weights of
// convolutions, of maxima, and of batch and layer normalization; batch normalization while training, losses of
// classes, and products of matrices that are only known while running.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "ops/window/conv_gradients.h"
#include "ops/window/pool_loops.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

struct Channels {
  int64_t group, in, out;  // in and out of each group
};

OpSample draw_weight_gradient(Random& random, const Channels& channels, int64_t rank) {
  Dims x{draw(random, 1, 3), channels.group * channels.in}, gy{x[0], channels.group * channels.out};
  Dims kernel, strides, dilations, pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t axis = 0; axis < rank; ++axis) {
    kernel.push_back(draw(random, 1, 4));
    strides.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    x.push_back((kernel.back() - 1) * dilations.back() + draw(random, 1, rank == 3 ? 4 : 9));
    for (const int64_t side : {axis, axis + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, kernel.back() - 1);
  }
  OpSample sample;
  sample.attributes = {{"kernel_shape", kernel},
                       {"strides", strides},
                       {"dilations", dilations},
                       {"pads", pads},
                       {"group", channels.group}};
  for (const WindowAxis& axis :
       resolve_windows(window_spec(sample.attributes, kernel), std::span<const int64_t>(x).subspan(2))) {
    gy.push_back(axis.out);
  }
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, gy, -1, 1)};
  return sample;
}

TEST(ConvGradWeight, EveryVariantOnRandomCalls) {
  Random random(11);
  const KernelDef def = cpu_kernel("cpu.conv_grad_weight_onednn", "conv_grad_weight");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  for (int i = 0; i < 150; ++i) {
    Channels channels{1, draw(random, 1, 40), draw(random, 1, 40)};
    if (i % 3 == 1) channels = {draw(random, 2, 3), draw(random, 1, 17), draw(random, 1, 17)};
    if (i % 3 == 2) channels = {draw(random, 1, 40), 1, draw(random, 1, 2)};
    const OpSample sample = draw_weight_gradient(random, channels, draw(random, 1, 3));
    SCOPED_TRACE(i);
    expect_every_variant(def, conv_grad_weight_def(), sample, 1 + i % 2);
  }
}

TEST(ConvGradWeight, SaysWhatItRefuses) {
  Random random(10);
  const KernelDef def = cpu_kernel("cpu.conv_grad_weight_onednn", "conv_grad_weight");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  OpSample sample{{draw_tensor(random, DType::f32, {1, 2, 7}), draw_tensor(random, DType::f32, {1, 2, 2})}};
  sample.attributes = {{"kernel_shape", Dims{3}}, {"strides", Dims{2}}};
  EXPECT_EQ(KernelRun(def, KernelCase(conv_grad_weight_def(), sample)).refusal(), "fewer windows than fit into x");
}

// As layers of networks are: whole blocks of channels, windows that reach over the edges.
TEST(ConvGradWeight, EveryVariantOnLayers) {
  Random random(12);
  const KernelDef def = cpu_kernel("cpu.conv_grad_weight_onednn", "conv_grad_weight");
  if (def.name.empty()) GTEST_SKIP() << "a build without oneDNN";
  for (const int64_t kernel : {1, 3, 7}) {
    for (const int64_t stride : {1, 2}) {
      for (const int64_t channels : {3, 32, 48}) {
        const int64_t pad = kernel / 2, out = (14 + 2 * pad - kernel) / stride + 1;
        OpSample sample{{draw_tensor(random, DType::f32, {2, channels, 14, 14}, -1, 1),
                         draw_tensor(random, DType::f32, {2, 32, out, out}, -1, 1)}};
        sample.attributes = {{"kernel_shape", Dims{kernel, kernel}},
                             {"strides", Dims{stride, stride}},
                             {"pads", Dims{pad, pad, pad, pad}}};
        SCOPED_TRACE(testing::Message() << kernel << " " << stride << " " << channels);
        expect_every_variant(def, conv_grad_weight_def(), sample, 2);
      }
    }
  }
}

// Equal elements, NaN and infinity decide who gets the gradient.
TEST(MaxPoolGrad, EveryVariantOnRandomCalls) {
  Random random(13);
  const KernelDef def = cpu_kernel("cpu.max_pool_grad", "max_pool_grad");
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (int i = 0; i < 150; ++i) {
    const int64_t rank = draw(random, 1, 3);
    Dims x{draw(random, 1, 2), draw_one_of<int64_t>(random, {1, 3, 8, 16, 19, 32})}, gy = x;
    Dims kernel, strides, dilations, pads(static_cast<size_t>(2 * rank), 0);
    for (int64_t a = 0; a < rank; ++a) {
      kernel.push_back(draw(random, 1, 4));
      strides.push_back(draw(random, 1, 3));
      dilations.push_back(draw(random, 1, 2));
      for (const int64_t side : {a, a + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, kernel.back() - 1);
      x.push_back((kernel.back() - 1) * dilations.back() + 1 + draw(random, 0, 6));
    }
    Tensor values = Tensor::empty(DType::f32, x);
    for (float& value : std::span<float>(values.mutable_data<float>(), static_cast<size_t>(values.num_elements()))) {
      value = static_cast<float>(draw(random, -3, 3));
      if (i % 4 == 0 && draw(random, 0, 5) == 0) value = draw_one_of(random, {kInfinity, -kInfinity, std::nanf("")});
    }
    OpSample sample;
    sample.attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
    sample.attributes.set("ceil_mode", draw(random, 0, 1));
    for (const WindowAxis& axis : pool_windows(sample.attributes, values.view())) gy.push_back(axis.out);
    sample.inputs = {values, draw_tensor(random, DType::f32, gy, -1, 1)};
    SCOPED_TRACE(i);
    expect_every_variant(def, max_pool_grad_def(), sample, 1 + i % 2);
  }
}

Dims draw_image(Random& random, int64_t channels) {
  Dims dims{draw(random, 2, 4), channels};
  for (int64_t axis = draw(random, 0, 3); axis > 0; --axis) dims.push_back(draw(random, 1, 9));
  return dims;
}

int64_t draw_channels(Random& random) {
  return draw_one_of<int64_t>(random, {1, 3, 8, 16, 24, 32, draw(random, 1, 70)});
}

// Channels far from 0, whose variance cancels where it comes from sums of squares.
Tensor draw_far_from_zero(Random& random, const Dims& dims) {
  Tensor x = draw_tensor(random, DType::f32, dims, -1, 1);
  for (int64_t i = 0; i < x.num_elements(); ++i) x.mutable_data<float>()[i] += 300;
  return x;
}

TEST(BatchNormTraining, EveryVariantOnRandomCalls) {
  Random random(14);
  const KernelDef def = cpu_kernel("cpu.batch_norm_training", "batch_normalization");
  for (int i = 0; i < 120; ++i) {
    const int64_t channels = draw_channels(random);
    const Dims dims = draw_image(random, channels);
    OpSample sample{.inputs = {i % 3 == 0 ? draw_far_from_zero(random, dims) : draw_tensor(random, DType::f32, dims)},
                    .attributes = {{"training_mode", int64_t{1}}, {"epsilon", 1e-2F}, {"momentum", 0.8F}},
                    .num_outputs = static_cast<int>(draw_one_of(random, {1, 3}))};
    for (int k = 0; k < 4; ++k) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {channels}, 0.5, 1.5));
    SCOPED_TRACE(i);
    expect_every_variant(def, batch_normalization_def(), sample, 1 + i % 2);
  }
}

TEST(BatchNormTraining, EveryVariantOfTheGradient) {
  Random random(15);
  const KernelDef def = cpu_kernel("cpu.batch_norm_training", "batch_normalization_grad");
  for (int i = 0; i < 120; ++i) {
    const int64_t channels = draw_channels(random);
    const Dims dims = draw_image(random, channels);
    const OpSample sample{
        .inputs = {i % 3 == 0 ? draw_far_from_zero(random, dims) : draw_tensor(random, DType::f32, dims),
                   draw_tensor(random, DType::f32, {channels}, 0.5, 1.5), draw_tensor(random, DType::f32, dims, -1, 1)},
        .attributes = {{"epsilon", 1e-2F}},
        .num_outputs = 3};
    SCOPED_TRACE(i);
    expect_every_variant(def, batch_normalization_grad_def(), sample, 1 + i % 2);
  }
}

TEST(BatchNormTraining, LeavesGivenStatisticsToOthers) {
  Random random(16);
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, {2, 3, 4})};
  for (int k = 0; k < 4; ++k) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {3}, 0.5, 1.5));
  const KernelDef def = cpu_kernel("cpu.batch_norm_training", "batch_normalization");
  EXPECT_EQ(KernelRun(def, KernelCase(batch_normalization_def(), sample)).refusal(), "given statistics");
}

TEST(LayerNormGrad, GivesTheReference) {
  Random random(17);
  const KernelDef def = cpu_kernel("cpu.layer_norm_grad", "layer_normalization_grad");
  for (int i = 0; i < 100; ++i) {
    const Dims dims{draw(random, 1, 3), draw(random, 1, i % 5 == 0 ? 200 : 5), draw(random, 2, i % 5 == 0 ? 260 : 40)};
    const int64_t axis = draw(random, 0, 2);
    const Dims tail(dims.begin() + axis, dims.end());
    const OpSample sample{
        .inputs = {draw_tensor(random, DType::f32, dims, -2, 2), draw_tensor(random, DType::f32, tail, 0.5, 1.5),
                   draw_tensor(random, DType::f32, dims, -1, 1)},
        .attributes = {{"axis", axis}, {"epsilon", 1e-3F}},
        .num_outputs = 3};
    SCOPED_TRACE(i);
    // Up to 600 numbers of about 1 with half an ulp each may add up to little: which they are depends on the CPU.
    expect_reference(def, KernelCase(layer_normalization_grad_def(), sample, {1 + i % 2}), {1e-5, 1e-5});
  }
}

TEST(LstmGatesGrad, GivesTheReferenceOnEveryInstructionSet) {
  Random random(18);
  const KernelDef def = cpu_kernel("cpu.lstm_gates_grad_simd", "lstm_gates_grad");
  for (int i = 0; i < 40; ++i) {
    const int64_t length = draw(random, 1, 6), batch = draw(random, 1, 9), hidden = draw(random, 1, i % 4 ? 20 : 70);
    OpSample sample;
    for (const Dims& dims : {Dims{length, batch, 4 * hidden}, Dims{4 * hidden, hidden}, Dims{batch, hidden},
                             Dims{length, batch, hidden}, Dims{batch, hidden}}) {
      sample.inputs.emplace_back(draw_tensor(random, DType::f32, dims, -1, 1));
    }
    sample.attributes = {{"reverse", draw(random, 0, 1)}};
    sample.num_outputs = 3;
    SCOPED_TRACE(i);
    const KernelCase test(lstm_gates_grad_def(), sample, {1 + i % 2});
    on_every_isa([&] { expect_reference(def, test, {1e-4, 1e-5}); });
  }
}

// Draws sizes and calls `dims_of` for those of the inputs.
template <class DimsOf>
void expect_gates_gradient(const OpDef& op, const Attributes& attributes, int num_outputs, const DimsOf& dims_of) {
  Random random(20);
  const KernelDef def = cpu_kernel(fmt::format("cpu.{}_simd", op.name), op.name);
  for (int i = 0; i < 40; ++i) {
    const int64_t length = draw(random, 1, 6), batch = draw(random, 1, 9), hidden = draw(random, 1, i % 4 ? 20 : 70);
    OpSample sample{.inputs = {}, .attributes = attributes, .num_outputs = num_outputs};
    for (const Dims& dims : dims_of(length, batch, hidden)) {
      const double reach = sample.inputs.size() == 1 ? 0.2 : 1;  // of R, with which flows shrink as they do in training
      sample.inputs.emplace_back(draw_tensor(random, DType::f32, dims, -reach, reach));
    }
    sample.attributes.set("reverse", draw(random, 0, 1));
    SCOPED_TRACE(i);
    const KernelCase test(op, sample, {1 + i % 2});
    on_every_isa([&] { expect_reference(def, test, {1e-4, 1e-5}); });
  }
}

TEST(GruGatesGrad, GivesTheReferenceOnEveryInstructionSet) {
  for (const int64_t linear : {0, 1}) {
    SCOPED_TRACE(linear);
    expect_gates_gradient(
        gru_gates_grad_def(), {{"linear_before_reset", linear}}, 3, [&](int64_t length, int64_t batch, int64_t hidden) {
          const Dims states{length, batch, hidden};
          return std::vector<Dims>{{length, batch, (3 + linear) * hidden}, {3 * hidden, hidden}, states, states};
        });
  }
}

TEST(RnnGatesGrad, GivesTheReferenceOnEveryInstructionSet) {
  expect_gates_gradient(rnn_gates_grad_def(), {}, 2, [](int64_t length, int64_t batch, int64_t hidden) {
    return std::vector<Dims>{{length, batch, hidden}, {hidden, hidden}, {length, batch, hidden}};
  });
}

// ---- Losses of classes ---------------------------------------------------------------------------------------------

OpSample draw_class_loss(Random& random, const Dims& dims, DType label, double range) {
  Dims label_dims = dims;
  label_dims.erase(label_dims.begin() + 1);
  Tensor labels = draw_tensor(random, label, label_dims, 0, static_cast<double>(dims[1] - 1));
  OpSample sample{.inputs = {draw_tensor(random, DType::f32, dims, -range, range), labels},
                  .attributes = {{"reduction", std::string(draw_one_of(random, {"none", "sum", "mean"}))}}};
  if (draw_bool(random)) sample.attributes.set("ignore_index", draw(random, 0, dims[1]));
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {dims[1]}, 0.5, 1.5));
  return sample;
}

TEST(ClassLoss, GivesTheReferenceOnEveryInstructionSet) {
  Random random(19);
  for (const char* name : {"softmax_cross_entropy_loss", "negative_log_likelihood_loss"}) {
    const KernelDef def = cpu_kernel("cpu.class_loss", name);
    const bool takes_softmax = *name == 's';
    for (int i = 0; i < 60; ++i) {
      Dims dims{draw(random, 1, 40), draw(random, 1, i % 4 == 0 ? 2500 : 90)};
      for (int64_t axis = draw(random, 0, 2); axis > 0; --axis) dims.push_back(draw(random, 1, 12));
      OpSample sample = draw_class_loss(random, dims, i % 2 ? DType::i32 : DType::i64, i % 3 ? 5 : 60);
      sample.num_outputs = static_cast<int>(takes_softmax ? draw(random, 1, 2) : 1);
      SCOPED_TRACE(testing::Message() << name << " " << i);
      const KernelCase test(*find_op(name), sample, {1 + i % 2});
      on_every_isa([&] { expect_reference(def, test, {1e-5, 1e-5}); });
    }
  }
}

TEST(ClassLoss, IsNanWhereTheSoftmaxIs) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::of<float>(
      {5, 3}, {1, NAN, 2, kInfinity, 0, 1, -kInfinity, -kInfinity, -kInfinity, -kInfinity, 3, 1, 80, -90, 1000});
  const Tensor labels = Tensor::of<int64_t>({5}, {0, 1, 2, 1, 0});
  const KernelDef def = cpu_kernel("cpu.class_loss", "softmax_cross_entropy_loss");
  const KernelCase test(*find_op("softmax_cross_entropy_loss"),
                        {.inputs = {x, labels}, .attributes = {{"reduction", std::string("none")}}, .num_outputs = 2});
  on_every_isa([&] { expect_reference(def, test); });
}

TEST(ClassLoss, SaysWhichLabelIsOutOfRange) {
  Random random(20);
  const KernelDef def = cpu_kernel("cpu.class_loss", "softmax_cross_entropy_loss");
  for (const int64_t bad : {int64_t{-1}, int64_t{7}, INT64_MAX}) {
    OpSample sample = draw_class_loss(random, {9, 7}, DType::i64, 3);
    sample.attributes.set("ignore_index", int64_t{-100});
    Tensor labels = draw_tensor(random, DType::i64, {9}, 0, 6);
    labels.mutable_data<int64_t>()[5] = bad;
    sample.inputs[1] = labels;
    const KernelCase test(*find_op("softmax_cross_entropy_loss"), sample);
    KernelRun run(def, test);
    try {
      run.run();
      FAIL() << bad;
    } catch (const ValueError& error) {
      EXPECT_EQ(std::string(error.what()), "[loss] labels: expected 0..6, got " + std::to_string(bad));
    }
  }
}

// ---- Products of matrices that are only known while running ------------------------------------------------------

OpSample draw_gemm(Random& random, int64_t m, int64_t k, int64_t n) {
  const bool transpose_a = draw_bool(random), transpose_b = draw_bool(random);
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, transpose_a ? Dims{k, m} : Dims{m, k}, -1, 1),
                   draw_tensor(random, DType::f32, transpose_b ? Dims{n, k} : Dims{k, n}, -1, 1)};
  const int64_t addend = draw(random, 0, 3);
  if (addend > 0) {
    const Dims dims = addend == 1 ? Dims{n} : addend == 2 ? Dims{1, n} : Dims{m, n};
    sample.inputs.emplace_back(draw_tensor(random, DType::f32, dims, -1, 1));
  }
  sample.attributes = {{"transA", int64_t{transpose_a}},
                       {"transB", int64_t{transpose_b}},
                       {"alpha", draw_one_of(random, {1.0F, 0.5F})},
                       {"beta", 1.0F}};
  return sample;
}

TEST(PackedGemm, GivesTheReferenceOnEveryInstructionSet) {
  Random random(21);
  const KernelDef def = cpu_kernel("cpu.packed_gemm_simd", "gemm");
  const auto extent = [&](int64_t most) { return draw(random, 1, draw_one_of<int64_t>(random, {4, 30, most})); };
  for (int i = 0; i < 80; ++i) {
    const OpSample sample = draw_gemm(random, extent(270), extent(600), extent(290));
    SCOPED_TRACE(i);
    const KernelCase test(gemm_def(), sample, {1 + i % 3});
    on_every_isa([&] { expect_reference(def, test, {1e-4, 1e-4}); });
  }
}

TEST(PackedGemm, MultipliesStacksOfRowsAndRefusesKnownWeights) {
  Random random(22);
  const KernelDef def = cpu_kernel("cpu.packed_gemm_simd", "matmul");
  const Tensor a = draw_tensor(random, DType::f32, {3, 5, 40}, -1, 1);
  const Tensor b = draw_tensor(random, DType::f32, {40, 33}, -1, 1);
  on_every_isa([&] { expect_reference(def, KernelCase(matmul_def(), {{a, b}}), {1e-4, 1e-4}); });
  const KernelCase known(matmul_def(), {{a, b}}, {1, true});
  EXPECT_EQ(KernelRun(def, known).refusal(), "known weights");
  const KernelCase stack(matmul_def(), {{a, draw_tensor(random, DType::f32, {3, 40, 33}, -1, 1)}});
  EXPECT_EQ(KernelRun(def, stack).refusal(), "no product with one matrix");
}

}  // namespace
}  // namespace autograph
