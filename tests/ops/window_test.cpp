#include "autograph/ops/window.h"

#include <gtest/gtest.h>

#include "ops/call_op.h"
#include "ops/defs.h"

namespace autograph {
namespace {

std::string message_of(const OpDef& op, const std::vector<Tensor>& inputs, const Attributes& attributes) {
  try {
    call_op(op, inputs, attributes);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Conv, SumsTheWindowAndAddsTheBias) {
  const Tensor w = Tensor::of<float>({1, 1, 2, 2}, {1, 1, 1, 1});
  const Tensor b = Tensor::of<float>({1}, {0.5F});
  const Tensor y = call_op(conv_def(), {iota_f32({1, 1, 3, 3}), w, b})[0];
  EXPECT_EQ(y.dims(), (Dims{1, 1, 2, 2}));
  EXPECT_EQ(y.to_f64(), (std::vector<double>{8.5, 12.5, 20.5, 24.5}));
}

TEST(Conv, GroupsReadTheirOwnChannels) {
  const Tensor x = Tensor::of<float>({1, 2, 2}, {1, 2, 10, 20});
  const Tensor w = Tensor::of<float>({2, 1, 1}, {3, 5});
  const Tensor y = call_op(conv_def(), {x, w}, {{"group", int64_t{2}}})[0];
  EXPECT_EQ(y.to_f64(), (std::vector<double>{3, 6, 50, 100}));
}

TEST(Conv, AsymmetricPadsStridesAndDilationsPlaceTheTaps) {
  const Tensor w = Tensor::of<float>({1, 1, 2}, {1, 10});
  const Attributes attributes{{"pads", Dims{2, 1}}, {"strides", Dims{2}}, {"dilations", Dims{2}}};
  // Padded input 0 0 | 0 1 2 3 | 0; windows start at 0, 2, 4 and read positions s and s + 2.
  const Tensor y = call_op(conv_def(), {iota_f32({1, 1, 4}), w}, attributes)[0];
  EXPECT_EQ(y.to_f64(), (std::vector<double>{0, 20, 2}));
}

TEST(Conv, SameUpperPutsTheOddPaddingAtTheEnd) {
  const Tensor w = Tensor::of<float>({1, 1, 2}, {1, 10});
  const Tensor x = Tensor::of<float>({1, 1, 3}, {1, 2, 3});
  EXPECT_EQ(call_op(conv_def(), {x, w}, {{"auto_pad", std::string("SAME_UPPER")}})[0].to_f64(),
            (std::vector<double>{21, 32, 3}));
  EXPECT_EQ(call_op(conv_def(), {x, w}, {{"auto_pad", std::string("SAME_LOWER")}})[0].to_f64(),
            (std::vector<double>{10, 21, 32}));
}

TEST(Conv, KeepsSymbolicExtents) {
  Graph graph;
  const Var x = input(graph, DType::f32, {Dim::symbol("n"), 3, Dim::symbol("h"), 32}, "x");
  const Var w = input(graph, DType::f32, {8, 3, 3, 3}, "w");
  EXPECT_EQ(to_string(conv(x, w, {}, {.pads = {1, 1, 1, 1}}).type()), "f32[n,8,h,32]");
  EXPECT_EQ(to_string(conv(x, w, {}, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}).type()), "f32[n,8,(1+h)/2,16]");
  EXPECT_EQ(to_string(conv(x, w, {}, {.strides = {2, 2}, .auto_pad = "SAME_UPPER"}).type()), "f32[n,8,(1+h)/2,16]");
}

TEST(Conv, RejectsWhatDoesNotFit) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 4, 3});
  const Tensor w = Tensor::zeros(DType::f32, {2, 4, 5});
  EXPECT_EQ(message_of(conv_def(), {x, w}, {}),
            "[conv] window: expected a span of at most 3 on spatial axis 0 (input 3, pads 0 and 0), got 5 (kernel 5, "
            "dilation 1)");
  EXPECT_EQ(message_of(conv_def(), {x, w}, {{"group", int64_t{2}}}),
            "[conv] channels: expected 8 = 4 (input channels of the weights) * 2 (group), got 4 (x [1,4,3], w "
            "[2,4,5])");
  EXPECT_EQ(message_of(conv_def(), {x, w}, {{"strides", Dims{0}}}), "[conv] strides: expected 1 or more, got [0]");
  EXPECT_EQ(message_of(conv_def(), {x, w}, {{"pads", Dims{1}}}), "[conv] pads: expected 2 values, got [1]");
  EXPECT_EQ(message_of(conv_def(), {x, w}, {{"kernel_shape", Dims{3}}}),
            "[conv] kernel_shape: expected the weight's spatial extents [2,4,5], got [3]");
}

TEST(Conv, CostCountsTwoFlopsPerMultiplyAdd) {
  const std::vector<Type> in{Type(DType::f32, {1, 4, 8, 8}), Type(DType::f32, {6, 2, 3, 3})};
  const std::vector<Type> out{Type(DType::f32, {1, 6, 6, 6})};
  const Attributes attributes{{"group", int64_t{2}}};
  EXPECT_EQ(cost_of(conv_def(), {attributes, in, out}).flops, 2.0 * 6 * 36 * 2 * 9);
}

TEST(MaxPool, TellsWhereTheMaximumWasInBothOrders) {
  const Tensor x = Tensor::of<float>({1, 1, 2, 3}, {1, 5, 2, 7, 5, 0});
  Attributes attributes{{"kernel_shape", Dims{2, 2}}};
  const auto by_row = call_op(max_pool_def(), {x}, attributes, 2);
  EXPECT_EQ(by_row[0].to_f64(), (std::vector<double>{7, 5}));
  EXPECT_EQ(by_row[1].to_i64(), (std::vector<int64_t>{3, 1}));
  attributes.set("storage_order", int64_t{1});
  EXPECT_EQ(call_op(max_pool_def(), {x}, attributes, 2)[1].to_i64(), (std::vector<int64_t>{1, 2}));
}

TEST(MaxPool, CeilModeDropsAWindowThatStartsInTheRightPadding) {
  const Attributes attributes{{"kernel_shape", Dims{1}}, {"strides", Dims{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(call_op(max_pool_def(), {iota_f32({1, 1, 4})}, attributes)[0].to_f64(), (std::vector<double>{0, 2}));
  const Attributes wide{{"kernel_shape", Dims{2}}, {"strides", Dims{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(call_op(max_pool_def(), {iota_f32({1, 1, 3})}, wide)[0].to_f64(), (std::vector<double>{1, 2}));
}

TEST(AveragePool, CountsPaddingOnlyWhenAsked) {
  const Tensor x = Tensor::of<float>({1, 1, 2}, {2, 4});
  Attributes attributes{{"kernel_shape", Dims{2}}, {"pads", Dims{1, 1}}};
  EXPECT_EQ(call_op(average_pool_def(), {x}, attributes)[0].to_f64(), (std::vector<double>{2, 3, 4}));
  attributes.set("count_include_pad", int64_t{1});
  EXPECT_EQ(call_op(average_pool_def(), {x}, attributes)[0].to_f64(), (std::vector<double>{1, 3, 2}));
}

TEST(GlobalPool, ReducesAllSpatialPositions) {
  const Tensor x = iota_f32({1, 2, 2, 2});
  const Tensor y = call_op(global_average_pool_def(), {x})[0];
  EXPECT_EQ(y.dims(), (Dims{1, 2, 1, 1}));
  EXPECT_EQ(y.to_f64(), (std::vector<double>{1.5, 5.5}));
  EXPECT_EQ(call_op(global_max_pool_def(), {x})[0].to_f64(), (std::vector<double>{3, 7}));
  EXPECT_EQ(call_op(global_lp_pool_def(), {x}, {{"p", int64_t{1}}})[0].to_f64(), (std::vector<double>{6, 22}));
}

TEST(ConvTranspose, ScattersEveryElementAndDropsThePadding) {
  const Tensor x = Tensor::of<float>({1, 1, 2}, {1, 2});
  const Tensor w = Tensor::of<float>({1, 1, 3}, {1, 10, 100});
  Attributes attributes{{"strides", Dims{2}}};
  EXPECT_EQ(call_op(conv_transpose_def(), {x, w}, attributes)[0].to_f64(), (std::vector<double>{1, 10, 102, 20, 200}));
  attributes.set("pads", Dims{1, 0});
  EXPECT_EQ(call_op(conv_transpose_def(), {x, w}, attributes)[0].to_f64(), (std::vector<double>{10, 102, 20, 200}));
  const Attributes shaped{{"strides", Dims{2}}, {"output_shape", Dims{4}}, {"auto_pad", std::string("SAME_UPPER")}};
  EXPECT_EQ(call_op(conv_transpose_def(), {x, w}, shaped)[0].to_f64(), (std::vector<double>{1, 10, 102, 20}));
}

TEST(ConvGradWeight, AddsWhatEachWeightHasMet) {
  const Tensor x = Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4});
  const Tensor gy = Tensor::of<float>({1, 1, 3}, {1, 10, 100});
  const Tensor w = call_op(conv_grad_weight_def(), {x, gy}, {{"kernel_shape", Dims{2}}})[0];
  EXPECT_EQ(w.dims(), (Dims{1, 1, 2}));
  EXPECT_EQ(w.to_f64(), (std::vector<double>{321, 432}));
}

TEST(ConvGradWeight, PlacesTapsAndGroupsAsTheConvolutionDoes) {
  const Tensor x = Tensor::of<float>({1, 1, 4}, {1, 2, 3, 4});
  const Attributes attributes{
      {"kernel_shape", Dims{2}}, {"pads", Dims{1, 0}}, {"strides", Dims{2}}, {"dilations", Dims{2}}};
  // Windows start at -1 and 1 and read positions s and s + 2.
  EXPECT_EQ(call_op(conv_grad_weight_def(), {x, Tensor::of<float>({1, 1, 2}, {1, 10})}, attributes)[0].to_f64(),
            (std::vector<double>{20, 42}));
  const Tensor two = Tensor::of<float>({1, 2, 2}, {1, 2, 10, 20});
  EXPECT_EQ(call_op(conv_grad_weight_def(), {two, Tensor::of<float>({1, 2, 2}, {1, 1, 2, 3})},
                    {{"kernel_shape", Dims{1}}, {"group", int64_t{2}}})[0]
                .to_f64(),
            (std::vector<double>{3, 80}));
}

TEST(ConvGradWeight, RejectsWhatDoesNotFit) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 3, 3});
  EXPECT_EQ(message_of(conv_grad_weight_def(), {x, x}, {{"kernel_shape", Dims{2}}}),
            "[conv_grad_weight] gy: expected at most 2 windows on spatial axis 0 (input 3, kernel 2, stride 1), got 3");
  EXPECT_EQ(message_of(conv_grad_weight_def(), {x, x}, {{"kernel_shape", Dims{1}}, {"group", int64_t{2}}}),
            "[conv_grad_weight] group: expected a divisor of the 3 channels of x, got 2");
  EXPECT_EQ(message_of(conv_grad_weight_def(), {x, Tensor::zeros(DType::f32, {2, 3, 3})}, {{"kernel_shape", Dims{1}}}),
            "[conv_grad_weight] batch: expected that of x [1,3,3], got [2,3,3]");
  EXPECT_EQ(message_of(conv_grad_weight_def(), {x, x}, {{"kernel_shape", Dims{}}}),
            "[conv_grad_weight] kernel_shape: expected one extent or more, got []");
}

TEST(MaxPoolGrad, GoesToTheFirstMaximumOfEachWindow) {
  const Tensor x = Tensor::of<float>({1, 1, 4}, {1, 3, 3, 2});
  const Tensor gy = Tensor::of<float>({1, 1, 3}, {1, 10, 100});
  EXPECT_EQ(call_op(max_pool_grad_def(), {x, gy}, {{"kernel_shape", Dims{2}}})[0].to_f64(),
            (std::vector<double>{0, 11, 100, 0}));
  EXPECT_EQ(message_of(max_pool_grad_def(), {x, x}, {{"kernel_shape", Dims{2}}}),
            "[max_pool_grad] gy: expected [1,1,3], got [1,1,4]");
}

TEST(MaxUnpool, RejectsIndicesOutsideTheOutput) {
  const Tensor x = Tensor::of<float>({1, 1, 2}, {5, 6});
  const Attributes attributes{{"kernel_shape", Dims{2}}, {"strides", Dims{2}}};
  EXPECT_EQ(call_op(max_unpool_def(), {x, Tensor::of<int64_t>({1, 1, 2}, {1, 2})}, attributes)[0].to_f64(),
            (std::vector<double>{0, 5, 6, 0}));
  EXPECT_EQ(message_of(max_unpool_def(), {x, Tensor::of<int64_t>({1, 1, 2}, {1, 4})}, attributes),
            "[max_unpool] indices: expected 0..3, got 4 (element 1)");
}

TEST(DeformConv, InterpolatesAtTheOffsets) {
  const Tensor w = Tensor::of<float>({1, 1, 1}, {1});
  const Tensor offset = Tensor::of<float>({1, 1, 2}, {0.25F, -0.5F});
  const Tensor x = Tensor::of<float>({1, 1, 2}, {4, 8});
  EXPECT_EQ(call_op(deform_conv_def(), {x, w, offset})[0].to_f64(), (std::vector<double>{5, 6}));
}

TEST(CausalConvWithState, ContinuesWhereThePastStopped) {
  const Tensor x = Tensor::of<float>({1, 1, 2}, {3, 4});
  const Tensor w = Tensor::of<float>({1, 1, 3}, {1, 10, 100});
  const Tensor past = Tensor::of<float>({1, 1, 2}, {1, 2});
  const auto y = call_op(causal_conv_with_state_def(), {x, w, Tensor(), past});
  EXPECT_EQ(y[0].to_f64(), (std::vector<double>{321, 432}));
  EXPECT_EQ(y[1].to_f64(), (std::vector<double>{3, 4}));
}

TEST(Window, SamplesOfEveryOpRun) {
  for (const OpDef* op :
       {&causal_conv_with_state_def(), &col2im_def(), &conv_integer_def(), &conv_transpose_def(), &deform_conv_def(),
        &lp_pool_def(), &lrn_def(), &max_roi_pool_def(), &max_unpool_def(), &conv_def(), &max_pool_def(),
        &average_pool_def(), &global_average_pool_def(), &global_max_pool_def(), &global_lp_pool_def()}) {
    run_samples(*op, 200);
  }
}

}  // namespace
}  // namespace autograph
