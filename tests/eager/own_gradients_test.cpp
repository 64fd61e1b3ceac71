// Gradients that a program says itself, line by line and captured: the same numbers bit for bit on the reference.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autograph/autodiff.h"
#include "autograph/capture.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph {
namespace {

using Vars = std::vector<Var>;

Var floats(const Dims& dims, const std::vector<float>& values) { return eager(Tensor::of<float>(dims, values)); }
Var weights(const Dims& dims, const std::vector<float>& values) { return variable(Tensor::of<float>(dims, values)); }
Var total(const Var& x) { return reduce_sum(x, {}, false); }

CaptureOptions on_reference() {
  CaptureOptions options;
  options.compile.device = "reference";
  options.compile.expert.use_passes = false;
  return options;
}

Var drawn_weights() {
  Random random(5);
  return variable(draw_tensor(random, DType::f32, {4, 3}, -1, 1));
}

Var drawn_input(uint64_t seed) {
  Random random(seed);
  return eager(draw_tensor(random, DType::f32, {2, 4}, -1, 1));
}

using Value = std::function<Var(const Var& x, const Var& w)>;

// Losses and gradients of two calls, of which the captured function does all.
std::vector<Datum> inside(const Value& value, bool captured) {
  const EagerDevice device("reference");
  const Var w = drawn_weights();
  const EagerFunction step = [&](const Vars& x) -> Vars {
    clear_gradient(w);
    const Var loss = total(value(x[0], w));
    backward(loss);
    return {loss, gradient(w), grad(loss, {w})[0]};
  };
  Captured graph = capture(step, on_reference());
  std::vector<Datum> results;
  for (const uint64_t seed : {1, 2}) {
    const Var x = drawn_input(seed);
    for (const Var& result : captured ? graph({x}) : step({x})) results.push_back(datum(result));
    results.push_back(datum(gradient(w)));
  }
  EXPECT_LE(graph.num_captures(), 2) << graph.explain();
  return results;
}

// The same where gradients flow in from outside, and into the input.
std::vector<Datum> through(const Value& value, bool captured) {
  const EagerDevice device("reference");
  const Var w = drawn_weights(), x = variable(elements(drawn_input(1)));
  const EagerFunction function = [&](const Vars& in) -> Vars { return {value(in[0], w)}; };
  Captured graph = capture(function, on_reference());
  const Var y = captured ? graph({x})[0] : function({x})[0];
  backward(total(y * y));
  return {datum(y), datum(gradient(w)), datum(gradient(x))};
}

void expect_both_ways(const Value& value) {
  const FloatTolerance exact{.rtol = 0, .atol = 0};
  EXPECT_EQ(difference(inside(value, true), inside(value, false), exact), "");
  EXPECT_EQ(difference(through(value, true), through(value, false), exact), "");
}

// ---- Functions in place of rules -------------------------------------------------------------------------------

TEST(OwnGradients, OfAFunctionThatRounds) {
  expect_both_ways([](const Var& x, const Var& w) {
    const Var h = matmul(x, w) * 3;
    return with_gradient({round(h)}, {h}, [](const Vars& flows) { return flows; })[0] * 0.7;
  });
}

// It uses values from around it, has two results, and says nothing of one of three inputs.
TEST(OwnGradients, OfAFunctionThatUsesValuesFromAround) {
  const Var scale = floats({3}, {1, -2, 0.5F});
  expect_both_ways([&](const Var& x, const Var& w) {
    const Var h = matmul(x, w), hidden = tanh(h);
    const Vars y = with_gradient({hidden, hidden * 2}, {h, w, x}, [=](const Vars& flows) -> Vars {
      return {(flows[0] + flows[1]) * scale * (1 - hidden * hidden), w * 0.25, Var()};
    });
    return y[0] + y[1];
  });
}

TEST(OwnGradients, InsideBranchesAndLoops) {
  expect_both_ways([](const Var& x, const Var& w) {
    const Var h = matmul(x, w);
    const auto halved = [](const Var& v) {
      return with_gradient({round(v * 2)}, {v}, [&](const Vars& flows) -> Vars { return {flows[0] * 0.5}; })[0];
    };
    const Var y = cond(
        less(total(h), scalar_like(h, 100)), [&]() -> Vars { return {halved(h)}; }, [&]() -> Vars { return {h}; })[0];
    const auto step = [&](const Vars& states, const Vars& slices) -> Vars {
      return {halved(states[0] + slices[0] * slices[0])};
    };
    return scan({y[0]}, {y}, step)[0];
  });
}

TEST(OwnGradients, HaveGradientsThemselves) {
  const auto second = [](bool captured) {
    const EagerDevice device("reference");
    const Var w = weights({}, {2});
    const EagerFunction f = [&](const Vars& x) -> Vars {
      const Var cube =
          with_gradient({w * w * w}, {w}, [w](const Vars& flows) -> Vars { return {flows[0] * w * w * 5}; })[0];
      return {grad(grad(cube * x[0], {w})[0], {w})[0]};
    };
    const Var x = floats({}, {3});
    return item(captured ? capture(f, on_reference())({x})[0] : f({x})[0]);
  };
  EXPECT_EQ(second(false), 60);
  EXPECT_EQ(second(true), 60);
}

// An optimiser must not decay weights that nothing flows to.
TEST(OwnGradients, NothingFlowsWhereTheySayNothing) {
  for (const bool captured : {false, true}) {
    const Var w = weights({}, {2}), untouched = weights({}, {3});
    const EagerFunction f = [&](const Vars& x) -> Vars {
      const Var y = with_gradient({x[0] * w * untouched}, {w, untouched}, [](const Vars& flows) -> Vars {
        return {flows[0], Var()};
      })[0];
      backward(y);
      return {y};
    };
    const Var x = floats({}, {5});
    captured ? capture(f)({x}) : f({x});
    EXPECT_EQ(item(gradient(w)), 1);
    EXPECT_FALSE(gradient(untouched).is_valid()) << captured;
  }
}

TEST(OwnGradients, InsideNoGradAreOfNoUse) {
  int calls = 0;
  Captured f = capture([&](const Vars& x) -> Vars {
    const NoGrad off;
    return with_gradient({round(x[0])}, {x[0]}, [&](const Vars& flows) {
      ++calls;
      return flows;
    });
  });
  EXPECT_FALSE(requires_grad(f({weights({}, {1.5F})})[0]));
  EXPECT_EQ(calls, 0);
}

// ---- Hooks -----------------------------------------------------------------------------------------------------

TEST(GradientHooks, ChangeTheWholeGradientOfAValue) {
  expect_both_ways([](const Var& x, const Var& w) {
    const Var h = matmul(x, w), early = h * 2;
    on_gradient(h, [](const Var& gradient) { return min({gradient, scalar_like(gradient, 0.5)}); });
    on_gradient(h, [factor = detach(h)](const Var& gradient) { return gradient * (1 + factor); });
    on_gradient(h, [](const Var&) { return Var(); });
    return early + tanh(h);
  });
}

TEST(GradientHooks, OfInputsAndInsideBranches) {
  expect_both_ways([](const Var& x, const Var& w) {
    const Var h = matmul(x, w);
    return cond(
        less(total(h), scalar_like(h, 100)),
        [&]() -> Vars {
          const Var inner = h * h;
          on_gradient(inner, [](const Var& gradient) { return gradient * 3; });
          return {inner + tanh(inner)};
        },
        [&]() -> Vars { return {h}; })[0];
  });
}

// Those of variables are there before the function is captured, and a further one is another graph.
TEST(GradientHooks, OfVariablesAreSeen) {
  const auto slopes = [](bool captured) {
    const Var w = weights({2}, {1, 2});
    on_gradient(w, [](const Var& gradient) { return gradient * 10; });
    const EagerFunction step = [&](const Vars& x) -> Vars {
      clear_gradient(w);
      const Var loss = total(x[0] * w * w);
      backward(loss);
      return {grad(loss, {w})[0]};
    };
    Captured graph = capture(step, on_reference());
    std::vector<Datum> seen;
    const auto call = [&] {
      const Var x = floats({2}, {3, 4});
      seen.push_back(datum((captured ? graph({x}) : step({x}))[0]));
      seen.push_back(datum(gradient(w)));
    };
    call();
    on_gradient(w, [](const Var& gradient) { return gradient + 1; });
    call();
    EXPECT_TRUE(!captured || graph.explain().find("has 2 hooks, captured with 1") != std::string::npos)
        << graph.explain();
    return seen;
  };
  EXPECT_EQ(difference(slopes(true), slopes(false), {.rtol = 0, .atol = 0}), "");
}

// Where the loss and the penalty on its slope are formed: line by line, outside of what is captured, inside it.
enum class Way : uint8_t { by_line, through, inside };

// The slope of the loss, and that of a loss with a penalty on it.
std::vector<Datum> penalised(const std::function<Var(const Var& x, const Var& w)>& value, Way way) {
  const EagerDevice device("reference");
  const Var x = eager(Tensor::of<double>({2}, {3, 4})), w = variable(Tensor::of<double>({2}, {1, 2}));
  on_gradient(w, [](const Var& gradient) { return gradient * 2 + 1; });
  const EagerFunction f = [&](const Vars& in) -> Vars { return {total(value(in[0], w))}; };
  Captured captured = capture(f, on_reference());
  const EagerFunction step = [&](const Vars& in) -> Vars {
    const Var loss = way == Way::through ? captured(in)[0] : f(in)[0];
    const Var slope = grad(loss, {w})[0];
    backward(total(slope * slope) * 0.001 + loss);
    return {slope};
  };
  const Var slope = (way == Way::inside ? capture(step, on_reference())({x}) : step({x}))[0];
  return {datum(slope), datum(gradient(w))};
}

// PyTorch's numbers: a hook sees what flows in from the penalty and from the loss, together, once.
TEST(GradientHooks, SeeGradientsOfGradientsAsAWhole) {
  const auto cube = [](GradientHook hook) {
    return [hook = std::move(hook)](const Var& x, const Var& w) {
      const Var h = x * w;
      on_gradient(h, hook);
      return h * h * h;
    };
  };
  const auto tripled = cube([](const Var& gradient) { return gradient * 3; });
  const auto clipped = cube([](const Var& gradient) { return min({gradient, scalar_like(gradient, 30)}); });
  const auto expect = [](const auto& value, const std::vector<double>& slope, const std::vector<double>& second) {
    const Datum expected[] = {Tensor::of<double>({2}, slope), Tensor::of<double>({2}, second)};
    for (const Way way : {Way::by_line, Way::through, Way::inside}) {
      EXPECT_EQ(difference(penalised(value, way), {expected[0], expected[1]}, {.rtol = 1e-12, .atol = 0}), "")
          << static_cast<int>(way);
    }
  };
  expect(tripled, {487, 4609}, {6167.368, 259468.264});
  expect(clipped, {163, 241}, {181, 241});
}

TEST(GradientHooks, OfInputsAndResultsSeeGradientsOfGradients) {
  const auto slopes = [](bool captured) {
    const EagerDevice device("reference");
    const Var w = variable(Tensor::of<double>({2}, {1, 2}));
    const EagerFunction f = [&](const Vars& x) -> Vars {
      const Var y = x[0] * x[0] * x[0];
      on_gradient(x[0], [](const Var& gradient) { return min({gradient, scalar_like(gradient, 7)}); });
      on_gradient(y, [](const Var& gradient) { return gradient * gradient; });
      return {y};
    };
    Captured graph = capture(f, on_reference());
    const Var x = w * 1.5, loss = total((captured ? graph({x}) : f({x}))[0] * 2);
    const Var slope = grad(loss, {w})[0];
    return std::vector<Datum>{datum(slope), datum(grad(total(slope * slope) + loss, {w})[0])};
  };
  EXPECT_EQ(difference(slopes(true), slopes(false), {.rtol = 0, .atol = 0}), "");
}

TEST(GradientHooks, InsideBranchesSeeGradientsOfGradients) {
  const auto value = [](const Var& x, const Var& w) {
    const Var h = x * w;
    return cond(
        less(total(h), scalar_like(h, 100)),
        [&]() -> Vars {
          const Var inner = h * h;
          on_gradient(inner, [](const Var& gradient) { return gradient * 3; });
          return {inner * inner};
        },
        [&]() -> Vars { return {h}; })[0];
  };
  const std::vector<Datum> expected = penalised(value, Way::by_line);
  for (const Way way : {Way::through, Way::inside}) {
    EXPECT_EQ(difference(penalised(value, way), expected, {.rtol = 1e-12, .atol = 0}), "") << static_cast<int>(way);
  }
}

// Where hvp(), jvp() and jacobian() ask for the slope in a variable, its hooks are part of the slope.
TEST(GradientHooks, OfVariablesArePartOfProducts) {
  const auto products = [](bool captured) {
    const EagerDevice device("reference");
    const Var w = variable(Tensor::of<double>({2}, {1, 2})), v = eager(Tensor::of<double>({2}, {1, -1}));
    on_gradient(w, [](const Var& gradient) { return gradient * 2 + 1; });
    const EagerFunction f = [&](const Vars& x) -> Vars {
      const Var y = x[0] * w * w * w;
      return {hvp(total(y), {w}, {v})[0], jvp({y}, {w}, {v})[0], jacobian(y, w), jacobian(x[0] * 2, w)};
    };
    std::vector<Datum> data;
    const Var x = eager(Tensor::of<double>({2}, {3, 4}));
    for (const Var& product : captured ? capture(f, on_reference())({x}) : f({x})) data.push_back(datum(product));
    return data;
  };
  EXPECT_EQ(products(true)[0].tensor().to_f64(), (std::vector<double>{73, -191}));
  EXPECT_EQ(difference(products(true), products(false), {.rtol = 0, .atol = 0}), "");
}

TEST(GradientHooks, InsideNoGradStillHookWhatIsOutside) {
  expect_both_ways([](const Var& x, const Var& w) {
    const Var h = matmul(x, w);
    {
      const NoGrad off;
      on_gradient(h, [](const Var& gradient) { return gradient * 2; });
    }
    return h * h;
  });
}

// One hook in the place of another: the graph that was captured with the other does not hold.
TEST(GradientHooks, OfVariablesAreCapturedAnewWhereTheyChange) {
  const Var w = weights({}, {2});
  GradientHookHandle hook = on_gradient(w, [](const Var& gradient) { return gradient * 10; });
  Captured f = capture([&](const Vars& x) -> Vars {
    const Var y = x[0] * w;
    backward(y);
    return {y};
  });
  f({floats({}, {3})});
  EXPECT_EQ(item(gradient(w)), 30);
  hook.remove();
  hook = on_gradient(w, [](const Var& gradient) { return gradient * 100; });
  f({floats({}, {3})});
  EXPECT_EQ(item(gradient(w)), 330);
  hook.remove();
  f({floats({}, {3})});
  EXPECT_EQ(item(gradient(w)), 333);
}

TEST(GradientHooks, OfACapturedFunctionAreNotRemoved) {
  const Var w = weights({}, {2});
  const std::string message = message_of<UnsupportedError>([&] {
    capture([&](const Vars& x) -> Vars {
      const Var y = x[0] * w;
      on_gradient(y, [](const Var& gradient) { return gradient * 2; }).remove();
      return {y};
    })({floats({}, {3})});
  });
  EXPECT_NE(message.find("[on_gradient] remove: the hook of a value that a captured function computes"),
            std::string::npos)
      << message;
}

// ---- What cannot be --------------------------------------------------------------------------------------------

TEST(OwnGradients, ThatLookAtNumbersNameTheLine) {
  const Var w = weights({}, {2});
  const auto refusal = [&](const std::function<Var(const Var& x)>& value) {
    Captured f = capture([&](const Vars& x) -> Vars {
      const Var y = value(x[0] * w);
      backward(y);
      return {y};
    });
    return message_of<ValueError>([&] { f({floats({}, {3})}); });
  };
  const std::string of_hook = refusal([](const Var& h) {
    on_gradient(h, [](const Var& gradient) { return gradient * item(gradient); });
    return h;
  });
  EXPECT_NE(of_hook.find("own_gradients_test.cpp:"), std::string::npos) << of_hook;
  const std::string of_function = refusal([](const Var& h) {
    return with_gradient({h * 2}, {h}, [](const Vars& flows) -> Vars { return {flows[0] * item(flows[0])}; })[0];
  });
  EXPECT_NE(of_function.find("own_gradients_test.cpp:"), std::string::npos) << of_function;
  EXPECT_EQ(item(w), 2);  // the thread is not left in a capture that failed
}

TEST(OwnGradients, ThatDoNotFitSaySo) {
  const Var w = weights({2}, {1, 2});
  const auto refusal = [&](const std::function<Var(const Var& x)>& value) {
    return message_of<Error>([&] {
      capture([&](const Vars& x) -> Vars { return {value(x[0] * w)}; })({floats({2}, {3, 4})});
    });
  };
  EXPECT_EQ(refusal([](const Var& h) { return with_gradient({h}, {h}, [](const Vars&) -> Vars { return {}; })[0]; }),
            "[with_gradient] function: expected a gradient for each of 1 inputs, got 0");
  EXPECT_EQ(refusal([](const Var& h) {
              return with_gradient({h}, {h}, [](const Vars& flows) -> Vars { return {total(flows[0])}; })[0];
            }),
            "[gradient] a function, of input 0: expected f32[2], got f32[]");
  EXPECT_EQ(refusal([](const Var& h) {
              on_gradient(h, [](const Var& gradient) { return total(gradient); });
              return h;
            }),
            "[gradient] a hook: expected f32[2], got f32[]");
  EXPECT_NE(refusal([](const Var& h) {
              return cond(
                  less(total(h), scalar_like(h, 1)),
                  [&]() -> Vars {
                    on_gradient(h, [](const Var& gradient) { return gradient; });
                    return {h};
                  },
                  [&]() -> Vars { return {h}; })[0];
            }).find("got one from around cond()"),
            std::string::npos);
}

}  // namespace
}  // namespace autograph
