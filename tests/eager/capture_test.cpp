// Capture: the same function by graphs, when it is captured again, and what cannot be captured.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "autograph/autodiff.h"
#include "autograph/capture.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "autograph/setting.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Var floats(const Dims& dims, const std::vector<float>& values) { return eager(Tensor::of<float>(dims, values)); }
Var weights(const Dims& dims, const std::vector<float>& values) { return variable(Tensor::of<float>(dims, values)); }
Var total(const Var& x) { return reduce_sum(x, {}, false); }

std::vector<float> values_of(const Var& value) {
  const auto list = elements(value).elements<float>();
  return {list.begin(), list.end()};
}

Var drawn(Random& random, const Dims& dims) { return eager(draw_tensor(random, DType::f32, dims, -1, 1)); }

CaptureOptions on_reference() {
  CaptureOptions options;
  options.compile.device = "reference";
  options.compile.expert.use_passes = false;
  return options;
}

TEST(Capture, ComputesWhatTheFunctionComputes) {
  Captured f = capture([](const std::vector<Var>& x) -> std::vector<Var> { return {tanh(x[0]) * 2, total(x[1])}; });
  const std::vector<Var> y = f({floats({2}, {0, 1}), floats({3}, {1, 2, 3})});
  EXPECT_EQ(item(y[1]), 6);
  EXPECT_FALSE(requires_grad(y[0]));
  EXPECT_EQ(difference(datum(y[0]), datum(tanh(floats({2}, {0, 1})) * 2)), "");
  f({floats({2}, {5, 1}), floats({3}, {1, 2, 3})});
  EXPECT_EQ(f.num_captures(), 1);
}

TEST(Capture, ReadsVariablesAnewInEveryCall) {
  const Var w = weights({}, {2});
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] * w}; });
  EXPECT_EQ(item(f({floats({}, {3})})[0]), 6);
  assign(w, w + 1);
  EXPECT_EQ(item(f({floats({}, {3})})[0]), 9);
  EXPECT_EQ(f.num_captures(), 1);
  const Graph model = f.graph();
  EXPECT_EQ(model.inputs().size(), 1u);
  EXPECT_EQ(*compile(model).run({Tensor::scalar(3.0F)})[0].tensor().data<float>(), 9);
}

TEST(Capture, GradientsFlowThroughCalls) {
  const Var w = weights({2}, {2, 3});
  Captured cube = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] * x[0] * x[0] * w}; });
  const Var x = weights({2}, {1, 2});
  const Var y = total(cube({x})[0]);
  backward(y);
  EXPECT_EQ(values_of(gradient(x)), (std::vector<float>{6, 36}));
  EXPECT_EQ(values_of(gradient(w)), (std::vector<float>{1, 8}));
  const Var first = grad(y, {x})[0];
  EXPECT_EQ(values_of(grad(total(first), {x})[0]), (std::vector<float>{12, 36}));
}

TEST(Capture, DeepChainsOfCallsNeedNoStack) {
  const int64_t before = eager_statistics().live_nodes;
  {
    Captured f = capture([](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] + 1}; });
    const Var w = weights({}, {0});
    Var x = w;
    for (int i = 0; i < 20'000; ++i) x = f({x})[0];
    EXPECT_EQ(item(x), 20'000);
  }
  EXPECT_EQ(eager_statistics().live_nodes, before);
}

TEST(Capture, AnExtentWithThreeValuesBecomesASymbol) {
  Captured f = capture([](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] + x[1]}; });
  const auto call = [&](int64_t rows) {
    const Var x = floats({rows, 2}, std::vector<float>(static_cast<size_t>(2 * rows), 1));
    EXPECT_EQ(f({x, x})[0].shape(), Shape({rows, 2}));
    return f.num_captures();
  };
  EXPECT_EQ(call(1), 1);
  EXPECT_EQ(call(2), 2);
  EXPECT_EQ(call(1), 2);
  EXPECT_EQ(call(3), 3);
  for (const int64_t rows : {4, 5, 60, 3, 1}) EXPECT_EQ(call(rows), 3);
  const std::string text = f.explain();
  EXPECT_NE(text.find("input 0 axis 0, input 1 axis 0 made symbolic"), std::string::npos) << text;
  EXPECT_NE(text.find("input 0 is f32[2,2], captured for f32[1,2]"), std::string::npos) << text;
  // Both had the same extent in all calls so far: others are another graph.
  f({floats({7, 2}, std::vector<float>(14, 1)), floats({1, 2}, {1, 1})});
  EXPECT_EQ(f.num_captures(), 4);
}

TEST(Capture, FunctionsThatNeedNumbersAreCapturedForEach) {
  Captured f = capture([](const std::vector<Var>& x) -> std::vector<Var> {
    Var sum = x[0][0];
    for (int64_t i = 1; i < x[0].dim(0); ++i) sum = sum + x[0][i];
    return {sum};
  });
  for (const int64_t n : {1, 2, 3, 4}) {
    EXPECT_EQ(item(f({floats({n}, std::vector<float>(static_cast<size_t>(n), 2))})[0]), 2.0 * static_cast<double>(n));
  }
  EXPECT_EQ(f.num_captures(), 4);
  EXPECT_NE(f.explain().find("not with input 0 axis 0 made symbolic"), std::string::npos) << f.explain();
}

TEST(Capture, OldGraphsGo) {
  CaptureOptions options;
  options.symbolic = false;
  options.max_graphs = 2;
  Captured f = capture([](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] * 2}; }, options);
  for (const int64_t n : {1, 2, 3, 1}) f({floats({n}, std::vector<float>(static_cast<size_t>(n), 2))});
  EXPECT_EQ(f.num_captures(), 4);
  EXPECT_NE(f.explain().find("dropped"), std::string::npos);
}

TEST(Capture, SettingsThatAreAskedForAreGuards) {
  Setting doubles(true), unused(true);
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    doubles.guard("doubling");
    return {doubles.is_on() ? x[0] * 2 : x[0]};
  });
  const auto call = [&] { return item(f({floats({}, {3})})[0]); };
  EXPECT_EQ(call(), 6);
  doubles.set(false);
  EXPECT_EQ(call(), 3);
  EXPECT_NE(f.explain().find("captured because of doubling is off, captured with it on"), std::string::npos)
      << f.explain();
  EXPECT_NE(f.explain().find("graph for (f32[]), 0 settings on and 1 off: "), std::string::npos) << f.explain();
  doubles.set(true);
  unused.set(false);
  EXPECT_EQ(call(), 6);
  EXPECT_EQ(f.num_captures(), 2);
}

// What was captured with it set keeps it so, whatever it is outside.
TEST(Capture, SettingsThatTheFunctionSetsAreNoGuards) {
  Setting doubles(false);
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    doubles.set(true);
    doubles.guard("doubling");
    const Var y = doubles.is_on() ? x[0] * 2 : x[0];
    doubles.set(false);
    return {y};
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(item(f({floats({}, {3})})[0]), 6);
  EXPECT_EQ(f.num_captures(), 1);
}

// A graph outlives a setting that it is for, as it does variables.
TEST(Capture, SettingsMayGoBeforeGraphs) {
  auto setting = std::make_unique<Setting>(true);
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    setting->guard("doubling");
    return {x[0] * 2};
  });
  f({floats({}, {3})});
  setting.reset();
  EXPECT_EQ(item(f({floats({}, {4})})[0]), 8);
}

// Nothing of these is part of a graph: NoGrad around a call holds for what the call leaves on record, and graphs run
// where CaptureOptions say.
TEST(Capture, ScopesAroundCallsAreNoGuards) {
  const Var w = weights({}, {2});
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] * w}; });
  {
    const NoGrad off;
    EXPECT_FALSE(requires_grad(f({floats({}, {3})})[0]));
  }
  const EagerDevice device("reference");
  const Var y = f({floats({}, {3})})[0];
  backward(y);
  EXPECT_EQ(item(gradient(w)), 3);
  EXPECT_EQ(f.num_captures(), 1);
}

// d (x w) w / d w by the second factor alone, inside the graph and through it.
TEST(Capture, NoGradientFlowsIntoNoGrad) {
  const Var w = weights({}, {2});
  const auto product = [&](const std::vector<Var>& x) {
    Var first;
    {
      const NoGrad off;
      const NoGrad inner;
      first = exp(log(x[0]) + log(w));
    }
    return first * w;
  };
  const EagerFunction inside = [&](const std::vector<Var>& x) -> std::vector<Var> {
    const Var y = product(x);
    backward(y);
    return {y};
  };
  const EagerFunction through = [&](const std::vector<Var>& x) -> std::vector<Var> { return {product(x)}; };
  const auto slope = [&](const std::function<void()>& compute) {
    clear_gradient(w);
    compute();
    return item(gradient(w));
  };
  Captured captured_inside = capture(inside), captured_through = capture(through);
  const Var x = floats({}, {3});
  EXPECT_NEAR(slope([&] { inside({x}); }), 6, 1e-5);
  EXPECT_NEAR(slope([&] { captured_inside({x}); }), 6, 1e-5);
  EXPECT_NEAR(slope([&] { backward(captured_through({x})[0]); }), 6, 1e-5);
}

// What no gradient reaches has none, not one of zeros.
TEST(Capture, ResultsDependOnWhatGradientsFlowTo) {
  const Var w = weights({}, {2}), frozen = weights({}, {5});
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    const NoGrad off;
    return {x[0] * w};
  });
  EXPECT_FALSE(requires_grad(f({floats({}, {3})})[0]));
  Captured g = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    return {x[0] * w * detach(frozen), x[0] * detach(w), cast(x[0] * w, DType::i64)};
  });
  const std::vector<Var> results = g({floats({}, {3})});
  EXPECT_TRUE(requires_grad(results[0]));
  EXPECT_FALSE(requires_grad(results[1]) || requires_grad(results[2]));
  backward(results[0]);
  EXPECT_EQ(item(gradient(w)), 15);
  EXPECT_FALSE(gradient(frozen).is_valid());
  // A variable as an input is reached by other ways.
  const Var x = weights({}, {3});
  backward(g({x})[1]);
  EXPECT_EQ(item(gradient(x)), 2);
}

TEST(Capture, NoGradInsideABranchStopsGradientsThere) {
  const Var w = weights({}, {2});
  const EagerFunction f = [&](const std::vector<Var>& x) -> std::vector<Var> {
    const auto then = [&]() -> std::vector<Var> {
      Var first;
      {
        const NoGrad off;
        first = x[0] * w;
      }
      return {first * w};
    };
    const auto otherwise = [&]() -> std::vector<Var> { return {x[0] * w}; };
    const Var y = cond(less(x[0], scalar_like(x[0], 10)), then, otherwise)[0];
    backward(y);
    return {y};
  };
  Captured captured = capture(f);
  for (const float x : {3.0F, 20.0F}) {
    clear_gradient(w);
    f({floats({}, {x})});
    const double expected = item(gradient(w));
    clear_gradient(w);
    captured({floats({}, {x})});
    EXPECT_EQ(item(gradient(w)), expected) << x;
  }
}

// Gradients have gradients only where backward() was asked for it.
TEST(Capture, GradientsAreConstantsUnlessDifferentiable) {
  for (const bool differentiable : {false, true}) {
    const Var w = weights({}, {2});
    const EagerFunction f = [&](const std::vector<Var>& x) -> std::vector<Var> {
      clear_gradient(w);
      backward(x[0] * w * w, {.gradient = {}, .differentiable = differentiable});
      const Var slope = gradient(w);
      clear_gradient(w);
      backward(slope * w);
      return {gradient(w)};
    };
    const double expected = differentiable ? 24 : 12;
    EXPECT_EQ(item(f({floats({}, {3})})[0]), expected);
    EXPECT_EQ(item(capture(f)({floats({}, {3})})[0]), expected);
  }
}

// As capture.h says: what is no variable is what it was.
TEST(Capture, ValuesFromAroundWithoutGradientsAreConstants) {
  Var factor = floats({}, {2});
  const Var variable_factor = weights({}, {2});
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    return {x[0] * factor, x[0] * detach(variable_factor)};
  });
  f({floats({}, {3})});
  factor = floats({}, {5});
  assign(variable_factor, factor);
  const std::vector<Var> y = f({floats({}, {3})});
  EXPECT_EQ(item(y[0]), 6);
  EXPECT_EQ(item(y[1]), 15);
  EXPECT_EQ(f.num_captures(), 1);
}

TEST(Capture, LookingAtElementsNamesTheLine) {
  const Var w = weights({}, {2});
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> {
    if (item(x[0]) > 0) return {x[0] * w};
    return {x[0]};
  });
  const std::string message = message_of<ValueError>([&] { f({floats({}, {3})}); });
  EXPECT_NE(message.find("capture_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find("cond()"), std::string::npos) << message;
  Captured g = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {x[0] * item(w)}; });
  EXPECT_THROW(g({floats({}, {3})}), ValueError);
  EXPECT_THROW(f({Var()}), ValueError);
  EXPECT_THROW(f.graph(), ValueError);
  // The thread is not left in a capture that failed.
  EXPECT_EQ(item(w), 2);
}

// ---- One function, both ways -----------------------------------------------------------------------------------

/// What a step of training leaves, many times in a row.
struct Training {
  std::vector<Var> variables;
  std::function<Var(const Var& x)> loss;
};

// A network, small, of every kind of control flow.
Training make_training(bool with_control_flow) {
  Random random(11);
  Training model;
  for (const Dims& dims : {Dims{4, 8}, Dims{8}, Dims{8, 3}}) {
    model.variables.push_back(variable(draw_tensor(random, DType::f32, dims, -0.5, 0.5)));
  }
  const std::vector<Var> w = model.variables;
  model.loss = [w, with_control_flow](const Var& x) {
    Var hidden = tanh(matmul(x, w[0]) + w[1]);
    if (with_control_flow) {
      hidden = cond(
          less(total(hidden), scalar_like(hidden, 0)), [&]() -> std::vector<Var> { return {hidden * w[1]}; },
          [&]() -> std::vector<Var> { return {hidden - w[1]}; })[0];
      hidden = while_loop(
          {hidden}, [](const auto& s) { return less(total(s[0] * s[0]), scalar_like(s[0], 40)); },
          [&](const auto& s) -> std::vector<Var> { return {s[0] * 1.5 + w[1] * 0.1}; }, 6)[0];
      const std::vector<Var> scanned =
          scan({w[1]}, {hidden}, [&](const auto& states, const auto& slices) -> std::vector<Var> {
            const Var next = tanh(states[0] + slices[0]);
            return {next, next * w[1]};
          });
      hidden = scanned[1] + scanned[0];
    }
    const Var scores = matmul(hidden, w[2]);
    return reduce_mean(scores * scores - log_softmax(scores), {}, false);
  };
  return model;
}

std::vector<Datum> train(const Optimizer& how, bool with_control_flow, bool captured, const CaptureOptions& options) {
  const EagerDevice device(options.compile.device);
  const Training model = make_training(with_control_flow);
  EagerOptimizer optimizer(model.variables, how);
  const auto step = [&](const std::vector<Var>& x) -> std::vector<Var> {
    optimizer.clear_gradients();
    const Var loss = model.loss(x[0]);
    backward(loss);
    clip_gradients(model.variables, 0.5);
    optimizer.step();
    return {loss};
  };
  Captured graph = capture(step, options);
  Random random(3);
  std::vector<Datum> results;
  for (int i = 0; i < 12; ++i) {
    const Var x = drawn(random, {5, 4});
    results.push_back(datum((captured ? graph({x}) : step({x}))[0]));
  }
  for (const Var& each : model.variables) results.push_back(datum(each));
  // The first call has found no gradients and the optimiser no memory; those after it are all alike.
  EXPECT_TRUE(!captured || graph.num_captures() <= 2) << graph.explain();
  return results;
}

TEST(BothWays, TrainingIsTheSameBitForBitOnTheReference) {
  for (const char* name :
       {"sgd", "adam", "adamw", "rmsprop", "adagrad", "lion", "adadelta", "adamax", "nadam", "radam"}) {
    const Optimizer how = find_optimizer(name);
    EXPECT_EQ(difference(train(how, false, true, on_reference()), train(how, false, false, on_reference()),
                         {.rtol = 0, .atol = 0}),
              "")
        << name;
  }
}

TEST(BothWays, ControlFlowIsTheSame) {
  const Optimizer how = Adam{.learning_rate = 0.05};
  EXPECT_EQ(difference(train(how, true, true, on_reference()), train(how, true, false, on_reference())), "");
}

TEST(BothWays, TrainingWithFusedKernelsIsTheSameWithinRounding) {
  const Optimizer how = Sgd{.learning_rate = 0.1, .momentum = 0.9};
  for (const bool with_control_flow : {false, true}) {
    EXPECT_EQ(difference(train(how, with_control_flow, true, {}), train(how, with_control_flow, false, {}),
                         {.rtol = 1e-3, .atol = 1e-4}),
              "");
  }
}

TEST(BothWays, BranchesAndLoopsUseValuesFromAround) {
  const Var w = weights({}, {3});
  const auto f = [&](const std::vector<Var>& x) -> std::vector<Var> {
    const Var outside = x[0] * 2;
    const auto nested = [&]() -> std::vector<Var> {
      return cond(
          less(x[0], scalar_like(x[0], 10)), [&]() -> std::vector<Var> { return {outside * w}; },
          [&]() -> std::vector<Var> { return {outside}; });
    };
    return cond(
        less(x[0], scalar_like(x[0], 0)), [&]() -> std::vector<Var> { return {x[0] - 1}; }, nested);
  };
  Captured g = capture(f);
  for (const float x : {-2.0F, 5.0F, 20.0F}) {
    const Var eagerly = f({floats({}, {x})})[0], captured = g({floats({}, {x})})[0];
    EXPECT_EQ(item(eagerly), item(captured)) << x;
  }
  EXPECT_EQ(g.num_captures(), 1);
}

// Line by line and captured.
std::vector<EagerFunction> both_ways(const EagerFunction& function) {
  const auto captured = std::make_shared<Captured>(capture(function));
  return {function, [captured](const std::vector<Var>& inputs) { return (*captured)(inputs); }};
}

TEST(BothWays, ScansOfNothingKeepNothing) {
  const Var w = weights({2}, {3, 4});
  const auto sums = [&](const std::vector<Var>& x) {
    return scan({w * 2}, {x[0]}, [](const auto& states, const auto& slices) -> std::vector<Var> {
      const Var next = states[0] + slices[0];
      return {next, unsqueeze(next, {0})};
    });
  };
  for (const EagerFunction& function : both_ways(sums)) {
    const std::vector<Var> results = function({floats({0, 2}, {})});
    EXPECT_EQ(values_of(results[0]), (std::vector<float>{6, 8}));
    EXPECT_EQ(results[1].shape(), Shape({0, 1, 2}));
    clear_gradient(w);
    backward(total(results[0]));
    EXPECT_EQ(values_of(gradient(w)), (std::vector<float>{2, 2}));
  }
}

TEST(BothWays, MistakesWithControlFlowAreErrors) {
  const auto lengths = [](const std::vector<Var>& x) {
    return scan({}, x, [](const auto&, const auto& slices) -> std::vector<Var> { return {slices[0] + slices[1]}; });
  };
  for (const EagerFunction& function : both_ways(lengths)) {
    const std::string message = message_of<ShapeError>([&] {
      function({floats({2}, {1, 2}), floats({3}, {1, 2, 3})});
    });
    EXPECT_NE(message.find("expected equal extents"), std::string::npos) << message;
  }
  const auto many = [](const std::vector<Var>& x) {
    const auto goes_on = [](const std::vector<Var>& states) { return less(states[0], scalar_like(states[0], 3)); };
    return while_loop(x, goes_on, [](const auto& states) -> std::vector<Var> { return {states[0] + 1}; });
  };
  for (const EagerFunction& function : both_ways(many)) {
    EXPECT_EQ(message_of<ShapeError>([&] {
                function({floats({2}, {1, 2})});
              }),
              "[control flow] condition: expected one bool, got bool[2]");
  }
}

// Each turn takes a slice of what was cut up once, and its gradient goes back as one: what a turn costs does not grow
// with the number of turns.
TEST(ControlFlow, ScansCutTheirInputsOnce) {
  constexpr int64_t kTurns = 50;
  const Var x = variable(Tensor::zeros(DType::f32, {kTurns, 3}));
  const auto calls = [] { return eager_statistics().calls; };
  const int64_t before = calls();
  const Var last = scan({floats({3}, {1, 2, 3})}, {x}, [](const auto& states, const auto& slices) {
    return std::vector<Var>{states[0] + slices[0]};
  })[0];
  EXPECT_EQ(calls() - before, 1 + 2 * kTurns);  // split; squeeze and add
  const Var sum = total(last);
  const int64_t forward = calls();
  backward(sum);
  EXPECT_LE(calls() - forward, kTurns + 10);  // unsqueeze; concat
  EXPECT_TRUE(elements(gradient(x)).bitwise_equal(Tensor::of<float>({kTurns, 3}, std::vector<float>(3 * kTurns, 1))));
}

}  // namespace
}  // namespace autograph
