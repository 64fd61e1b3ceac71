// Ops that add up numbers, squares, products or exponentials, on numbers whose sums and squares f32 cannot hold, and on
// numbers far from 0 that lie close together: every kernel of theirs gives what the reference computes in f64.
#include <gtest/gtest.h>

#include <functional>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

/// Numbers around `centre`, with some `peak` among them.
struct Look {
  std::string_view name;
  double centre = 0;
  double deviation = 1;
  double peak = 0;    // 0: none
  int64_t every = 1;  // how far peaks are apart
};

constexpr Look kLooks[] = {
    {"large", 0, 1e20},
    {"largest", 0, 3e38},
    {"sums beyond f32", 2.9e38, 4e37},
    {"tiny", 0, 1e-25},
    {"some deviations from 0", 20, 1},
    {"far from 0", 1e6, 1},
    {"below 0", -1e6, 3},
    {"one peak", 0, 1, 1e20, 1 << 20},
    {"peaks", 0, 1, 1e20, 7},
    {"peaks where samples are taken", 0, 1, 3e4, 16},
    {"begins far away", 0, 1, 1e6, 1 << 20},
};

Tensor draw_look(Random& random, const Dims& dims, const Look& look) {
  Tensor x = draw_tensor(random, DType::f32, dims, look.centre - look.deviation, look.centre + look.deviation);
  if (look.peak == 0) return x;
  for (int64_t i = 0; i < x.num_elements(); i += look.every) x.mutable_data<float>()[i] = static_cast<float>(look.peak);
  return x;
}

OpSample of_channels(Random& random, const Tensor& x, Attributes attributes) {
  const Dims channels{x.dims()[1]};
  return {.inputs = {x, draw_tensor(random, DType::f32, channels), draw_tensor(random, DType::f32, channels)},
          .attributes = std::move(attributes)};
}

OpSample batch_norm(Random& random, const Tensor& x) {
  OpSample sample = of_channels(random, x, {{"training_mode", int64_t{1}}});
  const Dims channels{x.dims()[1]};
  sample.inputs.emplace_back(draw_tensor(random, DType::f32, channels));
  sample.inputs.emplace_back(draw_tensor(random, DType::f32, channels, 0.1, 1));
  sample.num_outputs = 3;
  return sample;
}

OpSample batch_norm_grad(Random& random, const Tensor& x) {
  return {.inputs = {x, draw_tensor(random, DType::f32, {x.dims()[1]}), draw_tensor(random, DType::f32, x.dims())},
          .num_outputs = 3};
}

OpSample last_axis(Random& random, const Tensor& x, size_t vectors) {
  OpSample sample{.inputs = {x}};
  for (size_t k = 0; k < vectors; ++k) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {x.dims().back()}));
  return sample;
}

OpSample layer_norm_grad(Random& random, const Tensor& x) {
  OpSample sample = last_axis(random, x, 1);
  sample.inputs.emplace_back(draw_tensor(random, DType::f32, x.dims()));
  sample.num_outputs = 3;
  return sample;
}

OpSample class_loss(Random& random, const Tensor& x) {
  Dims labels = x.dims();
  labels.erase(labels.begin() + 1);
  return {.inputs = {x, draw_tensor(random, DType::i64, labels, 0, static_cast<double>(x.dims()[1] - 1))},
          .attributes = {{"reduction", std::string("none")}},
          .num_outputs = 2};
}

OpSample channel_window(const Tensor& x, int64_t size, float beta) {
  return {.inputs = {x}, .attributes = {{"size", size}, {"alpha", 0.2F}, {"beta", beta}, {"bias", 1.5F}}};
}

// Of windows that overhang, with and without padding among what counts.
OpSample windows(const Tensor& x, int64_t stride, int64_t counts_padding) {
  return {.inputs = {x},
          .attributes = {{"kernel_shape", std::vector<int64_t>{3, 3}},
                         {"strides", std::vector<int64_t>{stride, stride}},
                         {"pads", std::vector<int64_t>{1, 1, 1, 1}},
                         {"count_include_pad", counts_padding}}};
}

OpSample with_axes(const Tensor& x, std::vector<int64_t> axes) { return {.inputs = {x, Tensor::vector(axes)}}; }

struct Case {
  const OpDef& op;
  std::function<OpSample(Random&, const Tensor&)> sample;
};

std::vector<Case> cases() {
  const auto on_axis = [](int64_t axis) {
    return [axis](Random&, const Tensor& x) { return OpSample{.inputs = {x}, .attributes = {{"axis", axis}}}; };
  };
  std::vector<Case> list{
      {batch_normalization_def(), batch_norm},
      {batch_normalization_grad_def(), batch_norm_grad},
      {instance_normalization_def(), [](Random& r, const Tensor& x) { return of_channels(r, x, {}); }},
      {group_normalization_def(),
       [](Random& r, const Tensor& x) {
         return of_channels(r, x, {{"num_groups", int64_t{4}}});
       }},
      {layer_normalization_def(), [](Random& r, const Tensor& x) { return last_axis(r, x, 2); }},
      {rms_normalization_def(), [](Random& r, const Tensor& x) { return last_axis(r, x, 1); }},
      {layer_normalization_grad_def(), layer_norm_grad},
      {mean_variance_normalization_def(),
       [](Random&, const Tensor& x) {
         return OpSample{.inputs = {x}, .attributes = {{"axes", std::vector<int64_t>{0, 2, 3}}}};
       }},
      {*find_op("softmax_cross_entropy_loss"), class_loss},
  };
  for (const int64_t stride : {1, 2}) {
    list.push_back({average_pool_def(), [=](Random&, const Tensor& x) { return windows(x, stride, stride - 1); }});
  }
  list.push_back({global_average_pool_def(), [](Random&, const Tensor& x) { return OpSample{.inputs = {x}}; }});
  for (const auto& [size, beta] : {std::pair<int64_t, float>{5, 0.75F}, {4, 1.3F}, {40, 0.5F}}) {
    list.push_back(
        {lrn_def(), [size = size, beta = beta](Random&, const Tensor& x) { return channel_window(x, size, beta); }});
  }
  for (const int64_t axis : {1, 3}) {
    list.push_back({lp_normalization_def(), on_axis(axis)});
    list.push_back({softmax_def(), on_axis(axis)});
    list.push_back({log_softmax_def(), on_axis(axis)});
  }
  for (const char* name :
       {"reduce_l1", "reduce_l2", "reduce_sum_square", "reduce_sum", "reduce_mean", "reduce_log_sum_exp"}) {
    for (const std::vector<int64_t>& axes : {std::vector<int64_t>{3}, {1}, {2, 3}, {0, 2, 3}}) {
      list.push_back({*find_op(name), [axes](Random&, const Tensor& x) { return with_axes(x, axes); }});
    }
  }
  return list;
}

TEST(SpecialNumbers, EveryKernelGivesWhatF64Gives) {
  Random random(5);
  for (const Case& test : cases()) {
    for (const Look& look : kLooks) {
      for (const Dims& dims : {Dims{2, 16, 9, 37}, Dims{3, 32, 1, 6}}) {
        SCOPED_TRACE(testing::Message() << test.op.name << ", " << look.name << ", " << to_string(Shape::of(dims)));
        const OpSample sample = test.sample(random, draw_look(random, dims, look));
        const int threads = 1 + static_cast<int>(dims[3] % 2);
        on_every_isa([&] { expect_every_kernel(test.op, sample, threads, {.rtol = 1e-4, .atol = 0, .share = 2e-5}); });
      }
    }
  }
}

}  // namespace
}  // namespace autograph
