// Optimisers against the formulas of PyTorch's documentation, written out in f64 for one element.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/state_store.h"
#include "autograph/train.h"
#include "support/message_of.h"

namespace autograph {
namespace {

constexpr int kSteps = 6;
const std::vector<double> kStart{0.7, -1.3, 0.02, 4};
const std::vector<double> kSlopes{1, 0.5, -2, 0.25};

// An optimiser for one element: what it remembers by name, and the next weight.
using Memory = std::map<std::string, double>;
using UpdateRule = std::function<double(Memory&, double weight, double gradient, int count)>;

// The loss is sum(slopes / 2 * w^2 + x * w), so that the gradient is slopes * w + x, for x of -0.4, -0.2, 0, ...
double x_of(int step) { return -0.4 + 0.2 * step; }

struct Trained {
  std::vector<double> weights;
  StateStore states;
};

Trained train(const Optimizer& optimizer, const UpdateOptions& options = {}, DType dtype = DType::f64,
              int steps = kSteps) {
  GraphBuilder graph;
  const Var x = graph.input("x", dtype, {});
  const auto tensor = [&](const std::vector<double>& values) {
    const auto count = static_cast<int64_t>(values.size());
    return dtype == DType::f64 ? Tensor::of<double>({count}, values)
                               : Tensor::of<float>({count}, std::vector<float>(values.begin(), values.end()));
  };
  const Var w = graph.state("w", tensor(kStart));
  const Var loss = reduce_sum(graph.constant(tensor(kSlopes)) * w * w * 0.5 + x * w, {}, false);
  minimize(loss, {w}, optimizer, options);
  graph.output("loss", loss);
  const Executable program = compile(graph.build());
  for (int i = 0; i < steps; ++i) {
    const Tensor value = dtype == DType::f64 ? Tensor::scalar(x_of(i)) : Tensor::scalar(static_cast<float>(x_of(i)));
    program.run({value});
  }
  return {program.states().get("w").to_f64(), program.states()};
}

std::vector<double> expected(const UpdateRule& rule, const std::function<double(double)>& change = nullptr) {
  std::vector<double> weights = kStart;
  for (size_t k = 0; k < weights.size(); ++k) {
    Memory memory;
    for (int i = 0; i < kSteps; ++i) {
      const double gradient = kSlopes[k] * weights[k] + x_of(i);
      weights[k] = rule(memory, weights[k], change ? change(gradient) : gradient, i + 1);
    }
  }
  return weights;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(actual.size(), wanted.size());
  for (size_t k = 0; k < wanted.size(); ++k) {
    EXPECT_NEAR(actual[k], wanted[k], tolerance * (1 + std::fabs(wanted[k]))) << "element " << k;
  }
}

void expect_trains(const Optimizer& optimizer, const UpdateRule& rule) {
  expect_near(train(optimizer).weights, expected(rule), 1e-12);
  expect_near(train(optimizer, {}, DType::f32).weights, expected(rule), 2e-5);
}

UpdateRule sgd_rule(double rate, double momentum, double dampening, double decay, bool nesterov) {
  return [=](Memory& m, double w, double g, int count) {
    g += decay * w;
    if (momentum != 0) {
      m["b"] = count == 1 ? g : momentum * m["b"] + (1 - dampening) * g;
      g = nesterov ? g + momentum * m["b"] : m["b"];
    }
    return w - rate * g;
  };
}

TEST(Optimizers, Sgd) {
  expect_trains(Sgd{.learning_rate = 0.1}, sgd_rule(0.1, 0, 0, 0, false));
  expect_trains(Sgd{.learning_rate = 0.1, .momentum = 0.9}, sgd_rule(0.1, 0.9, 0, 0, false));
  expect_trains(Sgd{.learning_rate = 0.05, .momentum = 0.8, .dampening = 0.3, .weight_decay = 0.01},
                sgd_rule(0.05, 0.8, 0.3, 0.01, false));
  expect_trains(Sgd{.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
                sgd_rule(0.05, 0.9, 0, 0.1, true));
}

UpdateRule adam_rule(double rate, double beta1, double beta2, double epsilon, double decay, bool beside, bool amsgrad) {
  return [=](Memory& m, double w, double g, int count) {
    if (beside) w -= rate * decay * w;
    if (!beside) g += decay * w;
    m["m"] = beta1 * m["m"] + (1 - beta1) * g;
    m["v"] = beta2 * m["v"] + (1 - beta2) * g * g;
    m["most"] = std::max(m["most"], m["v"]);
    const double v = amsgrad ? m["most"] : m["v"];
    const double denominator = std::sqrt(v) / std::sqrt(1 - std::pow(beta2, count)) + epsilon;
    return w - rate / (1 - std::pow(beta1, count)) * m["m"] / denominator;
  };
}

TEST(Optimizers, Adam) {
  expect_trains(Adam{.learning_rate = 0.1}, adam_rule(0.1, 0.9, 0.999, 1e-8, 0, false, false));
  expect_trains(
      Adam{.learning_rate = 0.2, .beta1 = 0.5, .beta2 = 0.7, .epsilon = 0.1, .weight_decay = 0.3, .amsgrad = true},
      adam_rule(0.2, 0.5, 0.7, 0.1, 0.3, false, true));
}

TEST(Optimizers, AdamW) {
  expect_trains(AdamW{.learning_rate = 0.1}, adam_rule(0.1, 0.9, 0.999, 1e-8, 0.01, true, false));
  expect_trains(AdamW{.learning_rate = 0.1, .beta2 = 0.6, .weight_decay = 0.5, .amsgrad = true},
                adam_rule(0.1, 0.9, 0.6, 1e-8, 0.5, true, true));
}

UpdateRule rms_prop_rule(const RmsProp& o) {
  return [=](Memory& m, double w, double g, int) {
    g += o.weight_decay * w;
    m["v"] = o.alpha * m["v"] + (1 - o.alpha) * g * g;
    m["g"] = o.alpha * m["g"] + (1 - o.alpha) * g;
    const double spread = o.centered ? m["v"] - m["g"] * m["g"] : m["v"];
    double step = g / (std::sqrt(spread) + o.epsilon);
    if (o.momentum > 0) step = m["b"] = o.momentum * m["b"] + step;
    return w - o.learning_rate * step;
  };
}

TEST(Optimizers, RmsProp) {
  for (const RmsProp& options :
       {RmsProp{}, RmsProp{.learning_rate = 0.05, .alpha = 0.8, .weight_decay = 0.1, .momentum = 0.7},
        RmsProp{.learning_rate = 0.02, .alpha = 0.9, .epsilon = 0.01, .centered = true}}) {
    expect_trains(options, rms_prop_rule(options));
  }
}

TEST(Optimizers, Adagrad) {
  const Adagrad o{.learning_rate = 0.3, .learning_rate_decay = 0.1, .weight_decay = 0.05, .initial_accumulator = 0.2};
  expect_trains(o, [=](Memory& m, double w, double g, int count) {
    if (count == 1) m["s"] = o.initial_accumulator;
    g += o.weight_decay * w;
    m["s"] += g * g;
    return w - o.learning_rate / (1 + (count - 1) * o.learning_rate_decay) * g / (std::sqrt(m["s"]) + o.epsilon);
  });
}

TEST(Optimizers, Lion) {
  const Lion o{.learning_rate = 0.05, .beta1 = 0.8, .beta2 = 0.6, .weight_decay = 0.4};
  expect_trains(o, [=](Memory& m, double w, double g, int) {
    const double direction = o.beta1 * m["m"] + (1 - o.beta1) * g;
    m["m"] = o.beta2 * m["m"] + (1 - o.beta2) * g;
    const double sign = static_cast<double>(direction > 0) - static_cast<double>(direction < 0);
    return w * (1 - o.learning_rate * o.weight_decay) - o.learning_rate * sign;
  });
}

// Numbers of torch 2.15 in f64.
void expect_torchs(const Optimizer& optimizer, const std::vector<double>& weights) {
  expect_near(train(optimizer).weights, weights, 1e-13);
  expect_near(train(optimizer, {}, DType::f32).weights, weights, 2e-6);
}

TEST(Optimizers, Adadelta) {
  expect_torchs(Adadelta{}, {0.67044628191792155, -1.2885038974471195, 0.017287159667444714, 3.9735044774506245});
  expect_torchs(Adadelta{.learning_rate = 0.5, .rho = 0.7, .epsilon = 1e-3, .weight_decay = 0.1},
                {0.43983096085007201, -1.1768716259575469, 0.022808564599652588, 3.7630022367771057});
}

TEST(Optimizers, Adamax) {
  expect_torchs(Adamax{.learning_rate = 0.1},
                {0.214526306215296, -0.8907955545631463, 0.6199999912701899, 3.5003413265029839});
  expect_torchs(Adamax{.learning_rate = 0.2, .beta1 = 0.5, .beta2 = 0.7, .epsilon = 0.1, .weight_decay = 0.3},
                {-0.3098836845495011, -0.34385646839403722, 0.98375437840888402, 2.8860273593938865});
}

TEST(Optimizers, NAdam) {
  expect_torchs(NAdam{.learning_rate = 0.1},
                {0.13428681846790602, -1.0030510853013448, 0.44491263914276047, 3.4430259377604604});
  expect_torchs(
      NAdam{
          .learning_rate = 0.2, .beta1 = 0.5, .beta2 = 0.7, .epsilon = 0.1, .weight_decay = 0.3, .momentum_decay = 0.2},
      {-0.28441947020133995, -0.64287462582611943, 1.1746215037278367, 2.8056927919864965});
  expect_torchs(NAdam{.learning_rate = 0.1, .weight_decay = 0.3, .decoupled_weight_decay = true},
                {0.063259971008451168, -0.83697994277408383, 0.38642051174696251, 2.8217326982169504});
}

// The rates adapt from the sixth update on, from the fourth, and never.
TEST(Optimizers, RAdam) {
  expect_torchs(RAdam{.learning_rate = 0.1},
                {0.45840287650988287, -0.90815555224436073, 0.17513515447581718, 3.5977406211840757});
  expect_torchs(RAdam{.learning_rate = 0.2, .beta1 = 0.5, .beta2 = 0.9, .epsilon = 0.1, .weight_decay = 0.3},
                {0.058700892581560971, -0.44689455487724311, 0.37058809268301413, 2.1499165434739762});
  expect_torchs(RAdam{.learning_rate = 0.1, .beta2 = 0.5, .weight_decay = 0.3, .decoupled_weight_decay = true},
                {0.30268696054931243, -0.7068555296837038, 0.16036875174447232, 2.8755202922897221});
}

TEST(Optimizers, ClipValue) {
  const auto clip = [](double g) { return std::min(0.3, std::max(-0.3, g)); };
  expect_near(train(Sgd{.learning_rate = 0.1}, {.clip_value = 0.3}).weights,
              expected(sgd_rule(0.1, 0, 0, 0, false), clip), 1e-12);
}

TEST(Optimizers, ClipNorm) {
  std::vector<double> weights = kStart;
  for (int i = 0; i < kSteps; ++i) {
    std::vector<double> gradient;
    double squares = 0;
    for (size_t k = 0; k < weights.size(); ++k) {
      gradient.push_back(kSlopes[k] * weights[k] + x_of(i));
      squares += gradient[k] * gradient[k];
    }
    const double factor = std::min(1.0, 0.5 / (std::sqrt(squares) + 1e-6));
    for (size_t k = 0; k < weights.size(); ++k) weights[k] -= 0.4 * factor * gradient[k];
  }
  expect_near(train(Sgd{.learning_rate = 0.4}, {.clip_norm = 0.5}).weights, weights, 1e-12);
}

// Three runs give one update by the mean of their gradients, for which the weights stay as they were.
TEST(Optimizers, Accumulate) {
  std::vector<double> weights = kStart;
  for (int i = 0; i < kSteps; i += 3) {
    for (size_t k = 0; k < weights.size(); ++k) {
      const double x = (x_of(i) + x_of(i + 1) + x_of(i + 2)) / 3;
      weights[k] -= 0.3 * (kSlopes[k] * weights[k] + x);
    }
  }
  const Trained trained = train(Sgd{.learning_rate = 0.3}, {.accumulate = 3});
  expect_near(trained.weights, weights, 1e-12);
  EXPECT_EQ(trained.states.get("optimizer/step").to_f64(), std::vector<double>{2});
  expect_near(train(Sgd{.learning_rate = 0.3}, {.accumulate = 3}, DType::f64, 2).weights, kStart, 0);
}

// Of what the weights are after each update, not after each run.
TEST(Optimizers, Average) {
  const auto average = [](const std::vector<int>& runs, const UpdateOptions& update) {
    std::vector<double> mean = kStart;
    for (const int steps : runs) {
      const std::vector<double> weights = train(Sgd{.learning_rate = 0.3}, update, DType::f64, steps).weights;
      for (size_t k = 0; k < mean.size(); ++k) mean[k] = 0.75 * mean[k] + 0.25 * weights[k];
    }
    return mean;
  };
  const auto trained = [](const UpdateOptions& update) {
    return train(Sgd{.learning_rate = 0.3}, update).states.get("ema/w").to_f64();
  };
  expect_near(trained({.average = 0.75}), average({1, 2, 3, 4, 5, 6}, {}), 1e-12);
  expect_near(trained({.accumulate = 3, .average = 0.75}), average({3, 6}, {.accumulate = 3}), 1e-12);
}

TEST(Optimizers, LossScaleChangesNoGradient) {
  const Trained trained = train(Sgd{.learning_rate = 0.1}, {.loss_scale = LossScale{.growth_interval = 4}});
  expect_near(trained.weights, expected(sgd_rule(0.1, 0, 0, 0, false)), 1e-12);
  // Doubled once in six steps.
  EXPECT_EQ(trained.states.get("optimizer/loss_scale").to_f64(), std::vector<double>{131072});
  EXPECT_EQ(trained.states.get("optimizer/finite_steps").to_f64(), std::vector<double>{2});
}

// In f32 a gradient of 1e3 times 1e36 overflows: such steps count for nothing but the scale.
TEST(Optimizers, LossScaleLeavesOutWhatOverflows) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {});
  const Var w = graph.state("w", Tensor::scalar(1.0F));
  minimize(x * w, {w}, Adam{.learning_rate = 0.5}, {.loss_scale = LossScale{.initial = 1e36}});
  const Executable program = compile(graph.build());
  const auto state = [&](const char* name) { return program.states().get(name).to_f64()[0]; };
  program.run({Tensor::scalar(1e3F)});
  EXPECT_EQ(state("w"), 1);
  EXPECT_EQ(state("optimizer/step"), 0);
  EXPECT_EQ(state("optimizer/exp_avg/w"), 0);
  EXPECT_FLOAT_EQ(static_cast<float>(state("optimizer/loss_scale")), 5e35F);
  program.run({Tensor::scalar(1.0F)});
  EXPECT_NEAR(state("w"), 0.5, 1e-6);
  EXPECT_EQ(state("optimizer/step"), 1);
}

TEST(Optimizers, TheLearningRateIsAState) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {});
  const Var w = graph.state("w", Tensor::scalar(1.0F));
  minimize(x * w, {w}, Sgd{.learning_rate = 0.5});
  const Executable program = compile(graph.build());
  program.run({Tensor::scalar(1.0F)});
  StateStore states = program.states();
  EXPECT_EQ(states.get("w").to_f64()[0], 0.5);
  states.set("optimizer/learning_rate", Tensor::scalar(0.125));
  program.run({Tensor::scalar(1.0F)});
  EXPECT_EQ(states.get("w").to_f64()[0], 0.375);
}

TEST(Optimizers, WeightsWithoutGradientStay) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {});
  const Var w = graph.state("w", Tensor::scalar(1.0F)), other = graph.state("other", Tensor::scalar(1.0F));
  graph.output("y", other * x);
  minimize(x * w, {w, other}, AdamW{.weight_decay = 0.5});
  const Executable program = compile(graph.build());
  program.run({Tensor::scalar(1.0F)});
  EXPECT_EQ(program.states().get("other").to_f64()[0], 1);
  EXPECT_FALSE(program.states().contains("optimizer/exp_avg/other"));
}

TEST(Optimizers, SayWhatIsWrong) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {});
  const Var w = graph.state("w", Tensor::scalar(1.0F));
  const auto message = [&](const std::vector<Var>& weights, const Optimizer& optimizer, const UpdateOptions& options) {
    return message_of<ValueError>([&] { minimize(x * w, weights, optimizer, options); });
  };
  EXPECT_EQ(message({x}, Sgd{}, {}), "[train] weights: expected float states of the graph of the loss, got \"x\"");
  EXPECT_EQ(message({w, w}, Sgd{}, {}), "[train] weights: state \"w\" is updated already, or given twice");
  EXPECT_EQ(message({}, Sgd{}, {}), "[train] weights: expected at least one");
  EXPECT_EQ(message({w}, Adam{.beta1 = 1}, {}), "[train] beta1: expected 0 or more and less than 1, got 1");
  EXPECT_EQ(message({w}, Sgd{.nesterov = true}, {}),
            "[train] nesterov: expected a momentum and no dampening, got momentum 0 and dampening 0");
  EXPECT_EQ(message({w}, Sgd{}, {.clip_norm = 0}), "[train] clip_norm: expected more than 0, got 0");
  EXPECT_EQ(message({w}, Sgd{}, {.accumulate = 0}), "[train] accumulate: expected 1 or more, got 0");
  EXPECT_EQ(message_of<ValueError>([] { find_optimizer("adamm"); }),
            "[train] optimizer: expected sgd, adam, adamw, rmsprop, adagrad, lion, adadelta, adamax, nadam, radam, "
            "sparse_adam, got 'adamm' (did you mean 'adam'?)");
  EXPECT_EQ(message({w}, Adadelta{.rho = 1}, {}), "[train] rho: expected 0 or more and less than 1, got 1");
  EXPECT_EQ(message({w}, NAdam{.momentum_decay = -1}, {}), "[train] momentum_decay: expected 0 or more, got -1");
}

}  // namespace
}  // namespace autograph
