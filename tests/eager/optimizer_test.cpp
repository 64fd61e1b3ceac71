// Optimisers of variables: what training graphs give, line by line and captured, with every option.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "autograph/capture.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "autograph/tensor_io.h"
#include "autograph/train.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr int kSteps = 9;

NamedTensors first_weights() {
  Random random(11);
  NamedTensors weights;
  weights.emplace_back("layer.weight", draw_tensor(random, DType::f32, {4, 3}, -1, 1));
  weights.emplace_back("layer.bias", draw_tensor(random, DType::f32, {3}, -1, 1));
  return weights;
}

Tensor batch(int step) {
  Random random(static_cast<uint64_t>(step));
  return draw_tensor(random, DType::f32, {5, 4}, -1, 1);
}

Var loss_of(const Var& x, const Var& weight, const Var& bias) {
  const Var y = tanh(matmul(x, weight) + bias);
  return reduce_sum(y * y, {}, false);
}

CompileOptions on_reference() {
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  return options;
}

NamedTensors by_graph(const Optimizer& optimizer, const UpdateOptions& update) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {5, 4});
  std::vector<Var> weights;
  for (const auto& [name, tensor] : first_weights()) weights.push_back(graph.state(name, tensor));
  const Var loss = loss_of(x, weights[0], weights[1]);
  minimize(loss, weights, optimizer, update);
  graph.output("loss", loss);
  const Executable program = compile(graph.build(), on_reference());
  for (int step = 0; step < kSteps; ++step) program.run({batch(step)});
  NamedTensors states;
  for (const std::string& name : program.states().names()) states.emplace_back(name, program.states().get(name));
  return states;
}

// Steps of a run, which goes on from what another has left where `kept` has something.
struct Part {
  int from = 0, to = kSteps;
  NamedTensors kept = {};
};

NamedTensors by_variables(const Optimizer& optimizer, const UpdateOptions& update, bool captured,
                          const Part& part = {}) {
  const EagerDevice device("reference");
  NamedVars weights;
  for (const auto& [name, tensor] : first_weights()) weights.emplace_back(name, variable(tensor.clone()));
  for (const auto& [name, value] : weights) {
    for (const auto& [kept, tensor] : part.kept) {
      if (kept == name) assign(value, eager(tensor));
    }
  }
  EagerOptimizer updates(weights, optimizer, update);
  if (!part.kept.empty()) updates.restore(part.kept);
  const EagerFunction line_by_line = [&](const std::vector<Var>& x) -> std::vector<Var> {
    updates.clear_gradients();
    const Var loss = loss_of(x[0], weights[0].second, weights[1].second);
    backward(updates.scaled(loss));
    updates.step();
    return {loss};
  };
  Captured graph = capture(line_by_line, {.compile = on_reference()});
  for (int step = part.from; step < part.to; ++step) {
    const Var x = eager(batch(step));
    captured ? graph({x}) : line_by_line({x});
  }
  EXPECT_LE(graph.num_captures(), 2) << graph.explain();
  NamedVars all = updates.states();
  all.insert(all.end(), weights.begin(), weights.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  NamedTensors states;
  for (const auto& [name, value] : all) states.emplace_back(name, elements(value));
  return states;
}

void expect_same(const NamedTensors& actual, const NamedTensors& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(actual[k].first, expected[k].first);
    EXPECT_EQ(difference(actual[k].second, expected[k].second, {.rtol = 0, .atol = 0}), "") << expected[k].first;
  }
}

// Bit for bit, with all that is remembered.
void expect_as_in_graphs(const UpdateOptions& update) {
  for (const char* name :
       {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "adadelta", "adamax", "nadam", "radam"}) {
    SCOPED_TRACE(name);
    const Optimizer optimizer = find_optimizer(name);
    const NamedTensors expected = by_graph(optimizer, update);
    expect_same(by_variables(optimizer, update, false), expected);
    expect_same(by_variables(optimizer, update, true), expected);
  }
}

TEST(EagerOptimizers, UpdateAsGraphsDo) { expect_as_in_graphs({}); }

// From the bits of a checkpoint, in the middle of an accumulation, to those of a run without a stop.
TEST(EagerOptimizers, GoOnFromWhatIsKept) {
  const UpdateOptions update{
      .loss_scale = LossScale{.initial = 256, .growth_interval = 2}, .accumulate = 2, .average = 0.9};
  for (const char* name : {"sgd", "adam", "nadam"}) {
    for (const bool captured : {false, true}) {
      SCOPED_TRACE(name);
      const Optimizer optimizer = find_optimizer(name);
      const NamedTensors half = by_variables(optimizer, update, captured, {.to = 5});
      expect_same(by_variables(optimizer, update, captured, {.from = 5, .kept = half}),
                  by_variables(optimizer, update, captured));
    }
  }
}

TEST(EagerOptimizers, SayWhatCannotBeRestored) {
  const Var w = variable(Tensor::of<float>({2}, {1, 2}));
  EagerOptimizer updates({{"w", w}}, Adam{});
  EXPECT_NE(message_of<ValueError>([&] {
              updates.restore({{"w", Tensor::scalar(1.0F)}});
            }).find("\"optimizer/step\""),
            std::string::npos);
  EXPECT_EQ(message_of<TypeError>([&] {
              updates.restore({{"optimizer/step", Tensor::scalar(1.0F)}});
            }),
            "[optimizer] restore 'optimizer/step': expected i64, got f32");
  updates.restore({{"optimizer/step", Tensor::scalar(int64_t{3})}, {"optimizer/exp_avg/w", Tensor::scalar(1.0F)}});
  EXPECT_EQ(item(updates.count()), 3);
  backward(reduce_sum(w * w, {}, false));
  EXPECT_EQ(message_of<ShapeError>([&] { updates.step(); }),
            "[optimizer] restore 'optimizer/exp_avg/w': expected [2], got []");
}

TEST(EagerOptimizers, HaveGroups) {
  expect_as_in_graphs({.groups = {{.weights = "*bias", .rate_factor = 0.5, .weight_decay = 0},
                                  {.weights = "layer.*", .weight_decay = 0.25}}});
}

// The first steps overflow and are left out, later ones double the factor.
TEST(EagerOptimizers, ScaleLosses) {
  expect_as_in_graphs({.loss_scale = LossScale{.initial = 3e38, .growth_interval = 3}});
  expect_as_in_graphs({.loss_scale = LossScale{.initial = 256, .dynamic = false}});
  const NamedTensors states = by_variables(Sgd{}, {.loss_scale = LossScale{.initial = 3e38}}, false);
  EXPECT_EQ(states.back().first, "optimizer/step");
  EXPECT_LT(states.back().second.to_i64()[0], kSteps);
}

TEST(EagerOptimizers, ClipAccumulateAndAverage) {
  expect_as_in_graphs({.clip_norm = 0.5, .clip_value = 0.4, .accumulate = 4, .average = 0.9});
  expect_as_in_graphs({.loss_scale = LossScale{.growth_interval = 2}, .accumulate = 2});
}

TEST(EagerOptimizers, TellWhatTheyRemember) {
  const Var w = variable(Tensor::scalar(1.0F)), other = variable(Tensor::scalar(1.0F));
  EagerOptimizer updates({{"a/w", w}, {"w", other}}, Adam{});
  backward(w * w);
  updates.step();
  const NamedVars of_first = updates.remembered(0);
  ASSERT_EQ(of_first.size(), 2U);
  EXPECT_EQ(of_first[0].first, "exp_avg");
  EXPECT_EQ(of_first[1].first, "exp_avg_sq");
  EXPECT_TRUE(updates.remembered(1).empty());
  EXPECT_EQ(item(updates.count()), 1);
}

// Line by line and captured.
TEST(EagerOptimizers, GradientsAreClippedByElement) {
  const Var w = variable(Tensor::of<float>({3}, {1, 2, 3}));
  const EagerFunction clipped = [&](const std::vector<Var>& x) -> std::vector<Var> {
    clear_gradient(w);
    backward(reduce_sum(w * x[0], {}, false));
    clip_gradient_values({w, variable(Tensor::scalar(0.0F))}, 0.5);
    return {gradient(w)};
  };
  Captured captured = capture(clipped);
  const std::vector<Var> x{eager(Tensor::of<float>({3}, {0.25F, -4, 0.75F}))};
  EXPECT_EQ(elements(clipped(x)[0]).to_f64(), (std::vector<double>{0.25, -0.5, 0.5}));
  EXPECT_EQ(elements(captured(x)[0]).to_f64(), (std::vector<double>{0.25, -0.5, 0.5}));
  EXPECT_EQ(message_of<ValueError>([&] { clip_gradient_values({w}, 0); }),
            "[clip_gradient_values] limit: expected more than 0, got 0");
}

TEST(EagerOptimizers, SayWhatIsWrong) {
  const Var w = variable(Tensor::scalar(1.0F));
  const auto message = [&](const NamedVars& variables, const UpdateOptions& update) {
    return message_of<ValueError>([&] { EagerOptimizer(variables, Sgd{}, update); });
  };
  EXPECT_EQ(message({{"w", w * w}}, {}), "[optimizer] variable 'w': expected what variable() gave, got f32[]");
  EXPECT_EQ(message({{"w", w}, {"w", w}}, {}), "[optimizer] variables: expected names of their own, got 'w' twice");
  EXPECT_EQ(message({{"fc.weight", w}}, {.groups = {{.weights = "fc.wieght"}}}),
            "[train] group: no weight is called 'fc.wieght' (did you mean 'fc.weight'?)");
  EXPECT_EQ(message({{"w", w}}, {.average = 1}), "[train] average: expected 0 or more and less than 1, got 1");
}

}  // namespace
}  // namespace autograph
