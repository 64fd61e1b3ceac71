// Convolutions with what may follow them, as calls of `fused`.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "autograph/builder.h"
#include "autograph/graph.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {

inline constexpr int kNumEpilogues = 18;

/// The call `conv` of a convolution and behind it, by `which`: relu and a residual, relu, or a residual and one of
/// nine activations, of four ops with a number, a hard_sigmoid between two of them, or another residual that is added
/// or multiplied.
inline OpSample with_epilogue(Random& random, const OpSample& conv, int64_t which) {
  auto body = std::make_shared<Graph>("body");
  std::vector<Var> operands;
  for (const Datum& x : conv.inputs) {
    operands.push_back(input(*body, DType::f32, Shape::of(x.tensor().dims()), ""));
  }
  Var chain = apply(conv_def(), operands, conv.attributes);
  const Dims out = body->type(chain.id()).shape().static_dims();
  OpSample sample{.inputs = conv.inputs, .attributes = {}};
  if (which == 0) chain = relu(chain);
  const auto residual = [&] {
    sample.inputs.emplace_back(draw_tensor(random, DType::f32, out, -1, 1));
    return input(*body, DType::f32, Shape::of(out), "residual");
  };
  if (which != 1) chain = add(chain, residual());
  if (which == 1) chain = relu(chain);
  if (which == 2) chain = apply(swish_def(), {chain}, {{"alpha", 1.2F}});
  if (which == 3) chain = apply(hard_swish_def(), {chain}, {});
  if (which == 4) chain = apply(clip_def(), {chain, constant(*body, Tensor::scalar(-0.5F))}, {});
  if (which == 5) chain = leaky_relu(chain, 0.2F);
  if (which == 6) chain = elu(chain, 1.3F);
  if (which == 7) chain = sigmoid(chain);
  if (which == 8) chain = tanh(chain);
  if (which == 9) chain = gelu(chain, false);
  if (which == 10) chain = gelu(chain, true);
  const Var number = constant(*body, Tensor::scalar(1.7F).reshaped({1, 1, 1}));
  if (which == 11) chain = add(number, relu(chain));
  if (which == 12) chain = mul(relu(chain), number);
  if (which == 13) chain = sub(relu(chain), number);
  if (which == 14) chain = div(relu(chain), number);
  if (which == 15) chain = add(mul(hard_sigmoid(chain, 0.3F, 0.4F), number), number);
  if (which == 16) chain = relu(add(residual(), chain));
  if (which == 17) chain = mul(relu(chain), residual());
  body->add_output(chain.id());
  sample.attributes = {{"body", GraphRef(body)}};
  sample.num_outputs = 1;
  return sample;
}

/// `conv`, and behind it a factor of each channel, a shift of each, or both, as a batch norm has, then a residual and
/// relu. The numbers are known and up to `largest`.
inline OpSample with_channel_scale(Random& random, const OpSample& conv, bool has_factor, bool has_shift,
                                   double largest = 2) {
  auto body = std::make_shared<Graph>("body");
  OpSample sample{.inputs = conv.inputs, .attributes = {}};
  std::vector<Var> operands;
  for (const Datum& x : conv.inputs) {
    operands.push_back(input(*body, DType::f32, Shape::of(x.tensor().dims()), ""));
  }
  Var chain = apply(conv_def(), operands, conv.attributes);
  const Dims out = body->type(chain.id()).shape().static_dims();
  Dims channels(out.size() - 1, 1);
  channels[0] = out[1];
  const auto numbers = [&] { return constant(*body, draw_tensor(random, DType::f32, channels, -largest, largest)); };
  if (has_factor) chain = mul(numbers(), chain);
  if (has_shift) chain = add(chain, numbers());
  chain = relu(add(chain, input(*body, DType::f32, Shape::of(out), "residual")));
  sample.inputs.emplace_back(draw_tensor(random, DType::f32, out, -1, 1));
  body->add_output(chain.id());
  sample.attributes = {{"body", GraphRef(body)}};
  sample.num_outputs = 1;
  return sample;
}

/// with_epilogue() for a convolution of positive weights of an image in which one element is -inf: what becomes of that
/// behind swish (`which` 2) and hard_swish (3).
inline OpSample with_infinite_epilogue(Random& random, const Dims& x, const Dims& w, int64_t group, int64_t which) {
  OpSample conv;
  Tensor image = draw_tensor(random, DType::f32, x, -1, 1);
  image.mutable_data<float>()[image.num_elements() / 2] = -std::numeric_limits<float>::infinity();
  conv.inputs = {image, draw_tensor(random, DType::f32, w, 0.1, 1)};
  conv.attributes = {{"group", group}};
  return with_epilogue(random, conv, which);
}

}  // namespace autograph
