// Activations in place against f64, and behind products and convolutions against the reference.
#include "backends/cpu/simd/elementwise/activation_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "autograph/builder.h"
#include "autograph/compile.h"
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

using Kind = simd::ActivationPass::Kind;

// Largest |error| over |x| for x in [-40, 40].
double largest_error(const simd::ActivationPass& pass, const std::function<double(double)>& exact) {
  std::vector<float> x, y;
  for (int i = -400000; i <= 400000; ++i) x.push_back(static_cast<float>(i) * 1e-4F);
  y = x;
  simd::run_activation(pass, y.data(), static_cast<int64_t>(y.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double scale = std::max(1e-3, std::fabs(static_cast<double>(x[i])));
    worst = std::max(worst, std::fabs(y[i] - exact(x[i])) / scale);
  }
  return worst;
}

TEST(ActivationPass, StaysWithinItsStatedError) {
  on_every_isa([] {
    EXPECT_LT(largest_error({Kind::gelu}, [](double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }), 2e-7);
    const auto gelu_tanh = [](double x) {
      return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    };
    EXPECT_LT(largest_error({Kind::gelu_tanh}, gelu_tanh), 3e-7);
    EXPECT_LT(largest_error({Kind::swish, 1.3F}, [](double x) { return x / (1 + std::exp(-1.3F * x)); }), 3e-7);
  });
}

TEST(ActivationPass, EluKeepsTheDigitsOfSmallNumbers) {
  on_every_isa([] {
    for (const float x : {-1e-6F, -3e-4F, -0.02F, -0.7F, -5.0F, -90.0F, -0.0F, 1e-9F, 4.0F}) {
      float y[] = {x};
      simd::run_activation({Kind::elu, 0.57F}, y, 1);
      const double expected = x < 0 ? 0.57F * std::expm1(static_cast<double>(x)) : x;
      EXPECT_NEAR(y[0], expected, 4e-7 * std::fabs(expected)) << "at " << x;
    }
  });
}

// oneDNN has no formula that keeps NaN where a number is the other operand of max or min, or the slope of prelu is 0.
TEST(ActivationPass, AddsAResidualToWhatItGives) {
  on_every_isa([] {
    for (const Kind kind : {Kind::none, Kind::gelu, Kind::gelu_tanh, Kind::swish, Kind::elu}) {
      // Whole vectors, and every length of what is left of one.
      for (size_t size = 1; size <= 35; ++size) {
        std::vector<float> alone(size), y(size), residual(size);
        for (size_t i = 0; i < size; ++i) {
          alone[i] = y[i] = static_cast<float>(i) * 0.37F - 5;
          residual[i] = 100 - 3 * static_cast<float>(i);
        }
        simd::run_activation({kind}, alone.data(), static_cast<int64_t>(size));
        simd::run_activation({kind}, y.data(), static_cast<int64_t>(size), residual.data());
        for (size_t i = 0; i < size; ++i) ASSERT_FLOAT_EQ(y[i], alone[i] + residual[i]) << "at " << i << " of " << size;
      }
    }
  });
}

TEST(ActivationPass, MaxMinAndPreluBehindAConvolutionKeepNan) {
  Random random(9);
  Tensor x = draw_tensor(random, DType::f32, {1, 3, 6, 6}, -1, 1);
  x.mutable_data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  const Tensor w = draw_tensor(random, DType::f32, {16, 3, 1, 1}, -1, 1);
  const auto half = [](const Var& y) { return constant(y.graph(), Tensor::of<float>({}, {0.5F})); };
  const std::function<Var(const Var&)> functions[] = {
      [&](const Var& y) {
        return max({y, half(y)});
      },
      [&](const Var& y) {
        return min({half(y), y});
      },
      [&](const Var& y) { return prelu(y, constant(y.graph(), Tensor::of<float>({1}, {0.0F}))); }};
  for (const auto& function : functions) {
    Graph graph;
    const Var y = conv(input(graph, DType::f32, Shape::of(x.dims()), "x"), constant(graph, w));
    graph.add_output(function(y).id());
    const Tensor z = compile(graph).run({x})[0].tensor();
    for (int64_t i = 0; i < z.num_elements(); ++i) EXPECT_EQ(std::isnan(z.data<float>()[i]), i % 36 == 7) << i;
  }
}

// As a network does whose activations are small: exp(y) - 1 in f32 is off by a hundredth there.
TEST(ActivationPass, EluBehindAConvolutionIsPreciseForSmallNumbers) {
  Random random(8);
  const Tensor x = draw_tensor(random, DType::f32, {1, 3, 6, 6}, -1e-5, 1e-5);
  const Tensor w = draw_tensor(random, DType::f32, {16, 3, 3, 3}, -1, 1);
  Graph graph;
  const Var y = conv(input(graph, DType::f32, Shape::of(x.dims()), "x"), constant(graph, w));
  graph.add_output(elu(y).id(), "y");
  CompileOptions reference;
  reference.device = "reference";
  const std::vector<double> expected = compile(graph, reference).run({x})[0].tensor().to_f64();
  const std::vector<double> actual = compile(graph).run({x})[0].tensor().to_f64();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-10);
}

TEST(ActivationPass, VanishesFarBelowZero) {
  on_every_isa([] {
    for (const Kind kind : {Kind::gelu, Kind::gelu_tanh, Kind::swish}) {
      for (const float x : {-100.0F, -1000.0F, -1e6F, -1e20F, -1e33F, std::numeric_limits<float>::lowest()}) {
        float y[] = {x, x};
        simd::run_activation({kind}, y, 2);
        EXPECT_NEAR(y[0], 0.0F, 1e-6F) << "at " << x;
      }
    }
  });
}

TEST(ActivationPass, KeepsNanAndZero) {
  on_every_isa([] {
    for (const Kind kind : {Kind::gelu, Kind::gelu_tanh, Kind::swish}) {
      float y[] = {std::nanf(""), 0.0F, 100.0F, -100.0F};
      simd::run_activation({kind}, y, 4);
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_EQ(y[1], 0.0F);
      EXPECT_NEAR(y[2], 100.0F, 2e-5F);
      EXPECT_NEAR(y[3], 0.0F, 2e-5F);
    }
  });
}

// x * sigmoid(x) and the others are -inf * 0 at -inf.
TEST(ActivationPass, MinusInfinityIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  on_every_isa([&] {
    for (const Kind kind : {Kind::gelu, Kind::gelu_tanh, Kind::swish}) {
      float y[] = {-infinity, infinity};
      simd::run_activation({kind}, y, 2);
      EXPECT_TRUE(std::isnan(y[0])) << y[0];
      EXPECT_EQ(y[1], infinity);
    }
  });
}

// Behind dense, pointwise and depthwise convolutions, and as kernels of their own.
TEST(ActivationPass, InfinitiesBehindConvolutionsAreAsInTheReference) {
  Random random(10);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::function<Var(const Var&)> activations[] = {[](const Var& y) {
                                                          return apply(swish_def(), {y}, {{"alpha", 1.0F}});
                                                        },
                                                        [](const Var& y) { return apply(hard_swish_def(), {y}, {}); },
                                                        [](const Var& y) { return apply(gelu_def(), {y}, {}); },
                                                        [](const Var& y) { return apply(mish_def(), {y}, {}); }};
  const std::pair<Dims, int64_t> kinds[] = {
      {{32, 16, 3, 3}, 1}, {{32, 16, 1, 1}, 1}, {{16, 1, 3, 3}, 16}, {{32, 1, 3, 3}, 16}};
  Tensor x = draw_tensor(random, DType::f32, {1, 16, 9, 9}, 0.5, 1);
  x.mutable_data<float>()[7] = -infinity;
  x.mutable_data<float>()[11 * 81 + 40] = infinity;
  CompileOptions reference;
  reference.device = "reference";
  on_every_isa([&] {
    for (const auto& [weights, group] : kinds) {
      const Tensor w = draw_tensor(random, DType::f32, weights, 0.1, 1);
      for (const auto& activation : activations) {
        Graph graph;
        const Var in = input(graph, DType::f32, Shape::of(x.dims()), "x");
        const Var y = apply(conv_def(), {in, constant(graph, w)}, {{"group", group}});
        graph.add_output(activation(y).id());
        CompileOptions exact;  // Winograd's tiles spread what is infinite
        exact.exact = true;
        const Tensor actual = compile(graph, exact).run({x})[0].tensor();
        const Tensor expected = compile(graph, reference).run({x})[0].tensor();
        EXPECT_EQ(difference(Datum(actual), Datum(expected), {1e-4, 1e-5}), "");
      }
    }
  });
}

// `op` with constant weights and one of the activations behind it.
OpSample with_activation(const OpDef& op, const OpSample& anchor, int which) {
  auto body = std::make_shared<Graph>("body");
  std::vector<Var> operands;
  for (const Datum& x : anchor.inputs) operands.push_back(input(*body, DType::f32, Shape::of(x.tensor().dims()), ""));
  const Var y = apply(op, operands, anchor.attributes);
  const Var activated = which == 3   ? elu(y, 0.7F)
                        : which == 2 ? apply(swish_def(), {y}, {{"alpha", 0.8F}})
                                     : apply(gelu_def(), {y}, {{"approximate", which == 0 ? "none" : "tanh"}});
  body->add_output(activated.id());
  return {.inputs = anchor.inputs, .attributes = {{"body", GraphRef(body)}}, .num_outputs = 1};
}

TEST(ActivationPass, BehindProductsAndConvolutions) {
  if (cpu_kernel("cpu.conv_onednn", "fused").name.empty()) GTEST_SKIP() << "a build without oneDNN";
  Random random(31);
  for (int i = 0; i < 30; ++i) {
    SCOPED_TRACE(i);
    const int64_t c = draw(random, 1, 40), m = draw(random, 1, 40), size = draw(random, 3, 30);
    const auto tensor = [&](const Dims& dims) { return draw_tensor(random, DType::f32, dims, -1, 1); };
    const OpSample conv{.inputs = {tensor({1, c, size, size}), tensor({m, c, 3, 3}), tensor({m})},
                        .attributes = {{"pads", Dims{1, 1, 1, 1}}}};
    expect_every_variant(cpu_kernel("cpu.conv_onednn", "fused"), fused_def(), with_activation(conv_def(), conv, i % 4),
                         1 + i % 2);
    const OpSample product{.inputs = {tensor({2, size, c}), tensor({c, m})}, .attributes = {}};
    expect_every_variant(cpu_kernel("cpu.matmul_onednn", "fused"), fused_def(),
                         with_activation(matmul_def(), product, i % 4), 1 + i % 2);
  }
}

}  // namespace
}  // namespace autograph
