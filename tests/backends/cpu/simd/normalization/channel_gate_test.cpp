// Gates of squeeze-and-excite blocks against the reference, on every instruction set and in every layout.
#include <gtest/gtest.h>

#include <functional>

#include "autograph/builder.h"
#include "autograph/graph.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel() { return cpu_kernel("cpu.channel_gate_simd", "fused"); }

Var random_function(Random& random, Var x) {
  switch (draw(random, 0, 10)) {
    case 0: return relu(x);
    case 1: return sigmoid(x);
    case 2: return hard_sigmoid(x, 0.25F, 0.4F);
    case 3: return hard_swish(x);
    case 4: return swish(x, 1.5F);
    case 5: return clip(x, scalar_like(x, -0.25), scalar_like(x, 0.5));
    case 6: return leaky_relu(x, 0.1F);
    case 7: return elu(x, 0.7F);
    case 8: return tanh(x);
    case 9: return gelu(x, draw_bool(random));
    default: return x;
  }
}

// A fused node with random weights. An image of a `size` has no negative numbers, and weights that much smaller.
class GateSample {
 public:
  GateSample(Random& random, const Dims& image, double size = 0) : random_(random), rank_(image.size() - 2) {
    const Var x = size > 0 ? add_input(image, 0.9 * size, size) : add_input(image);
    if (size > 0) bound_ = 1 / size;
    chain_ = apply(global_average_pool_def(), {x}, {});
  }

  void convolve(int64_t out, bool has_bias) {
    const int64_t in = chain_.shape()[1].value();
    Dims dims{out, in};
    dims.resize(rank_ + 2, 1);
    std::vector<Var> inputs{chain_, add_input(dims)};
    if (has_bias) inputs.push_back(add_input({out}));
    chain_ = apply(conv_def(), inputs, {{"kernel_shape", std::vector<int64_t>(rank_, 1)}});
  }

  void then(const std::function<Var(Var)>& function) { chain_ = function(chain_); }

  OpSample finish() {
    body_->add_output(chain_.id());
    sample_.attributes = {{"body", GraphRef(body_)}};
    sample_.num_outputs = 1;
    return sample_;
  }

 private:
  Var add_input(const Dims& dims) { return add_input(dims, -bound_, bound_); }
  Var add_input(const Dims& dims, double low, double high) {
    sample_.inputs.push_back(draw_tensor(random_, DType::f32, dims, low, high));
    return input(*body_, DType::f32, Shape::of(dims), "i" + std::to_string(sample_.inputs.size()));
  }

  Random& random_;
  size_t rank_;
  double bound_ = 1;  // of weights
  std::shared_ptr<Graph> body_ = std::make_shared<Graph>("body");
  Var chain_;
  OpSample sample_;
};

int64_t random_channels(Random& random) {
  return draw_one_of(random, {int64_t{1}, int64_t{5}, int64_t{16}, int64_t{40}, int64_t{64}, int64_t{144}});
}

TEST(ChannelGate, RandomCalls) {
  Random random(41);
  for (int i = 0; i < 60; ++i) {
    Dims image{draw(random, 1, 3), random_channels(random)};
    for (int64_t a = draw(random, 1, 3); a > 0; --a) image.push_back(draw(random, 1, 12));
    GateSample gate(random, image);
    for (int64_t layers = draw(random, 1, 3); layers > 0; --layers) {
      gate.convolve(random_channels(random), draw_bool(random));
      gate.then([&](Var x) { return random_function(random, x); });
      gate.then([&](Var x) { return random_function(random, x); });
    }
    const OpSample sample = gate.finish();
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel(), fused_def(), sample, 1 + i % 2, {1e-5, 1e-5}); });
  }
}

TEST(ChannelGate, MeansWhoseSumsAreBeyondF32) {
  Random random(44);
  GateSample gate(random, {2, 48, 5, 7}, 3e37);
  gate.convolve(16, false);
  gate.then([](Var x) { return sigmoid(x); });
  const OpSample sample = gate.finish();
  on_every_isa([&] { expect_every_variant(kernel(), fused_def(), sample, 1, {1e-5, 1e-5}); });
}

TEST(ChannelGate, PacksAnewWhatWasWritten) {
  Random random(45);
  GateSample gate(random, {2, 48, 5, 7});
  gate.convolve(12, true);
  gate.then([](Var x) { return relu(x); });
  gate.convolve(48, true);
  gate.then([](Var x) { return sigmoid(x); });
  expect_every_variant_renews(kernel(), fused_def(), gate.finish(), 2);
}

TEST(ChannelGate, ThreadsShareLargeProducts) {
  Random random(42);
  GateSample gate(random, {1, 640, 14, 14});
  gate.convolve(520, true);
  gate.then([](Var x) { return relu(x); });
  gate.convolve(640, true);
  gate.then([](Var x) { return sigmoid(x); });
  const OpSample sample = gate.finish();
  for (const int threads : {2, 3}) expect_every_variant(kernel(), fused_def(), sample, threads, {1e-5, 1e-5});
}

std::string refusal(const std::function<void(GateSample&)>& build, bool constant_weights = true) {
  Random random(43);
  GateSample gate(random, {1, 8, 3, 3});
  build(gate);
  const OpSample sample = gate.finish();
  return kernel().why_not(KernelCase(fused_def(), sample, {1, constant_weights}).call());
}

TEST(ChannelGate, RefusesOtherBodies) {
  EXPECT_EQ(refusal([](GateSample& gate) { gate.convolve(4, true); }), "");
  EXPECT_EQ(refusal([](GateSample&) {}), "no convolution");
  EXPECT_EQ(refusal([](GateSample& gate) { gate.convolve(4, true); }, false), "no loop for conv");
  EXPECT_EQ(refusal([](GateSample& gate) {
              gate.convolve(4, true);
              gate.then([](Var x) { return softplus(x); });
            }),
            "no loop for softplus");
  EXPECT_EQ(refusal([](GateSample& gate) { gate.then([](Var x) { return relu(x); }); }), "no loop for relu");
}

}  // namespace
}  // namespace autograph
