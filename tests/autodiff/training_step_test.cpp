// Whole steps: losses fall, numbers are those of the reference, weights stay where they are.
#include <gtest/gtest.h>

#include <cmath>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/search.h"
#include "autograph/seeded_inputs.h"
#include "autograph/state_store.h"
#include "autograph/train.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Tensor weights(Dims dims, uint64_t seed) {
  Random random(seed);
  return draw_tensor(random, DType::f32, std::move(dims), -0.4, 0.4);
}

// A small convolutional network with a batch norm, a residual and pooling, for 3 classes.
Graph make_classifier(bool ends_in_softmax = false) {
  Graph graph("classifier");
  const Var x = input(graph, DType::f32, Shape({Dim::symbol("n"), 2, 8, 8}), "x");
  ConvOptions padded;
  padded.pads = {1, 1, 1, 1};
  Var y = conv(x, constant(graph, weights({8, 2, 3, 3}, 1), "conv1.weight"), {}, padded);
  y = relu(batch_normalization(y, constant(graph, Tensor::of<float>({8}, std::vector<float>(8, 1)), "bn.weight"),
                               constant(graph, Tensor::zeros(DType::f32, {8}), "bn.bias"),
                               constant(graph, Tensor::zeros(DType::f32, {8}), "bn.mean"),
                               constant(graph, Tensor::of<float>({8}, std::vector<float>(8, 1)), "bn.var")));
  y = y + relu(conv(y, constant(graph, weights({8, 8, 3, 3}, 2), "conv2.weight"),
                    constant(graph, weights({8}, 3), "conv2.bias"), padded));
  y = reshape(global_average_pool(y), {-1, 8});
  y = gemm(y, constant(graph, weights({8, 3}, 4), "fc.weight"), constant(graph, weights({3}, 5), "fc.bias"));
  if (ends_in_softmax) y = softmax(y);
  graph.add_output(y.id(), "scores");
  return graph;
}

// Images of which the class is where they are bright.
std::vector<Datum> batch_of(Random& random, int64_t count) {
  Tensor x = draw_tensor(random, DType::f32, {count, 2, 8, 8}, -0.5, 0.5);
  std::vector<int64_t> labels;
  auto* elements = x.mutable_data<float>();
  for (int64_t n = 0; n < count; ++n) {
    labels.push_back(draw(random, 0, 2));
    for (int64_t i = 0; i < 16; ++i) elements[n * 128 + labels.back() * 40 + i] += 2;
  }
  return {x, Tensor::of<int64_t>({count}, labels)};
}

std::vector<double> losses(const Graph& step, const CompileOptions& options, int steps, int64_t count = 16) {
  const Executable program = compile(step, options);
  Random random(7);
  std::vector<double> result;
  for (int i = 0; i < steps; ++i) result.push_back(program.run(batch_of(random, count))["loss"].to_f64()[0]);
  return result;
}

CompileOptions device(const std::string& name, int threads = 2) {
  CompileOptions options;
  options.device = name;
  options.threads = threads;
  return options;
}

std::vector<Optimizer> optimizers() {
  return {Sgd{.learning_rate = 0.1, .momentum = 0.9},
          Adam{.learning_rate = 0.02},
          AdamW{.learning_rate = 0.02},
          RmsProp{.learning_rate = 0.005},
          Adagrad{.learning_rate = 0.05},
          Lion{.learning_rate = 0.01},
          Adadelta{.learning_rate = 10},
          Adamax{.learning_rate = 0.03},
          NAdam{.learning_rate = 0.02},
          RAdam{.learning_rate = 0.05}};
}

TEST(TrainingStep, LossesFallWithEveryOptimizer) {
  for (const Optimizer& optimizer : optimizers()) {
    SCOPED_TRACE(optimizer.index());
    const std::vector<double> list = losses(training_graph(make_classifier(), {.optimizer = optimizer}), {}, 60);
    EXPECT_NEAR(list.front(), 1.1, 0.3);  // log(3) and a little
    EXPECT_LT(list.back(), 0.35);
  }
}

TEST(TrainingStep, NumbersAreThoseOfTheReference) {
  for (const Optimizer& optimizer : optimizers()) {
    SCOPED_TRACE(optimizer.index());
    const Graph step = training_graph(make_classifier(), {.optimizer = optimizer, .update = {.clip_norm = 1.0}});
    const std::vector<double> expected = losses(step, device("reference", 1), 5, 4);
    for (const int threads : {1, 2}) {
      const std::vector<double> actual = losses(step, device("cpu", threads), 5, 4);
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-3 * expected[i]) << i;
    }
  }
}

// The search and its streams take the step as any graph.
TEST(TrainingStep, SearchedPlansGiveTheSame) {
  const Graph step = training_graph(make_classifier(), {.optimizer = Sgd{.learning_rate = 0.1}});
  const std::vector<double> expected = losses(step, {}, 5, 4);
  SearchOptions search;
  search.budget_seconds = 1;
  search.never_slower = false;
  Random random(8);
  const Optimized optimized = optimize(bind_inputs(step, batch_of(random, 4)), {}, search);
  const Executable program = compile(optimized, {});
  Random same(7);
  std::vector<double> actual;
  for (int i = 0; i < 5; ++i) actual.push_back(program.run(batch_of(same, 4))["loss"].to_f64()[0]);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-3 * expected[i]) << i;
}

// The softmax at the end of a model and the logarithm of the loss are one op; of its output the loss would be another.
TEST(TrainingStep, CrossEntropyLooksBehindASoftmax) {
  const std::vector<double> scores = losses(training_graph(make_classifier(false)), {}, 3);
  EXPECT_EQ(losses(training_graph(make_classifier(true)), {}, 3), scores);
}

TEST(TrainingStep, TokenCrossEntropy) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape({Dim::symbol("n"), 5, 4}), "x");
  graph.add_output(matmul(x, constant(graph, weights({4, 7}, 9), "w")).id(), "scores");
  const Executable program = compile(training_graph(graph, {.loss = "token_cross_entropy"}));
  const auto outputs =
      program.run({{"x", Tensor::zeros(DType::f32, {2, 5, 4})}, {"target", Tensor::zeros(DType::i64, {2, 5})}});
  EXPECT_NEAR(outputs["loss"].to_f64()[0], std::log(7.0), 1e-5);
}

// Labels as probabilities of one class each, and of two.
TEST(TrainingStep, SoftCrossEntropy) {
  Random random(7);
  std::vector<Datum> batch = batch_of(random, 4);
  const auto loss = [&](const char* name, const Tensor& target) {
    const Executable program = compile(training_graph(make_classifier(), {.loss = name}));
    return program.run({batch[0], target})["loss"].to_f64()[0];
  };
  const Tensor labels = batch[1].tensor();
  const auto moved = [&](int64_t by) {
    Tensor other = labels.clone();
    for (int64_t n = 0; n < 4; ++n) other.mutable_data<int64_t>()[n] = (labels.data<int64_t>()[n] + by) % 3;
    return other;
  };
  const auto mixed = [&](float share) {
    Tensor target = Tensor::zeros(DType::f32, {4, 3});
    for (int64_t n = 0; n < 4; ++n) {
      target.mutable_data<float>()[n * 3 + labels.data<int64_t>()[n]] += share;
      target.mutable_data<float>()[n * 3 + moved(1).data<int64_t>()[n]] += 1 - share;
    }
    return target;
  };
  const double first = loss("cross_entropy", labels), second = loss("cross_entropy", moved(1));
  EXPECT_NEAR(loss("soft_cross_entropy", mixed(1)), first, 1e-6);
  EXPECT_NEAR(loss("soft_cross_entropy", mixed(0.75F)), 0.75 * first + 0.25 * second, 1e-6);
}

TEST(TrainingStep, MeanSquaredError) {
  Graph graph;
  const Var x = input(graph, DType::f32, {4, 2}, "x");
  graph.add_output(matmul(x, constant(graph, Tensor::zeros(DType::f32, {2, 1}), "w")).id(), "y");
  const Executable program = compile(training_graph(graph, {.loss = "mse", .optimizer = Sgd{.learning_rate = 0.3}}));
  const Tensor inputs = Tensor::of<float>({4, 2}, {1, 0, 0, 1, 1, 1, 2, -1});
  const Tensor target = Tensor::of<float>({4, 1}, {3, -2, 1, 8});  // 3 and -2 times the inputs
  double loss = 0;
  for (int i = 0; i < 80; ++i) loss = program.run({{"x", inputs}, {"target", target}})["loss"].to_f64()[0];
  EXPECT_LT(loss, 1e-6);
  const std::vector<double> w = program.states().get("w").to_f64();
  EXPECT_NEAR(w[0], 3, 1e-3);
  EXPECT_NEAR(w[1], -2, 1e-3);
}

TEST(TrainingStep, EvaluationNeedsNoWeights) {
  Graph model;
  model.add_output((-1 * input(model, DType::f32, {Dim::symbol("n"), 2}, "x")).id(), "scores");
  Outputs result = compile(evaluation_graph(model))
                       .run({{"x", Tensor::of<float>({4, 2}, {-1, 0, -1, 0, 0, -1, 0, -1})},
                             {"target", Tensor::of<int64_t>({4}, {0, 0, 1, 0})}});
  EXPECT_EQ(result["accuracy"].to_f64()[0], 0.75);
}

// One store: what the step learns, the evaluation sees, which changes nothing.
TEST(TrainingStep, EvaluationIsOfTheSameStates) {
  const Graph model = make_classifier(true);
  const Executable step = compile(training_graph(model, {.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9}}));
  const Graph graph = evaluation_graph(model);
  EXPECT_TRUE(graph.updates().empty());
  CompileOptions shared;
  shared.states = step.states();
  const Executable evaluation = compile(graph, shared);
  Random random(7);
  const std::vector<Datum> unseen = batch_of(random, 64);
  const Outputs before = evaluation.run(unseen);
  EXPECT_LT(before["accuracy"].to_f64()[0], 0.7);
  for (int i = 0; i < 60; ++i) step.run(batch_of(random, 16));
  const Outputs after = evaluation.run(unseen);
  EXPECT_GT(after["accuracy"].to_f64()[0], 0.9);
  EXPECT_LT(after["loss"].to_f64()[0], 0.5 * before["loss"].to_f64()[0]);
  EXPECT_TRUE(evaluation.run(unseen)["loss"].bitwise_equal(after["loss"]));
}

TEST(TrainingStep, SaysWhatDoesNotFit) {
  const Graph model = make_classifier();
  const auto message = [&](const TrainingOptions& options) {
    return message_of<UserError>([&] { training_graph(model, options); });
  };
  EXPECT_EQ(message({.loss = "cross_entrpy"}),
            "[train] loss: no float output 'cross_entrpy' (did you mean 'cross_entropy'?), nor is it one of sum, sum1, "
            "mean, cross_entropy, soft_cross_entropy, token_cross_entropy and mse");
  EXPECT_EQ(message({.output = "score"}), "[train] output: no float output 'score' (did you mean 'scores'?)");
  EXPECT_EQ(message({.loss = "scores", .update = {.clip_norm = -1}}),
            "[train] clip_norm: expected more than 0, got -1");
}

// What is learned is written over what was there.
TEST(TrainingStep, WeightsAreWrittenInPlace) {
  Graph model("mlp");
  const Var x = input(model, DType::f32, {8, 16}, "x");
  const Var hidden =
      relu(matmul(x, constant(model, weights({16, 32}, 1), "w1")) + constant(model, weights({32}, 2), "b1"));
  model.add_output(matmul(hidden, constant(model, weights({32, 3}, 3), "w2")).id(), "scores");
  const Executable program = compile(training_graph(model, {.optimizer = Sgd{.learning_rate = 0.1, .momentum = 0.9}}));
  const std::string plan = program.print_plan();
  EXPECT_NE(plan.find("state \"w1\""), std::string::npos) << plan;
  EXPECT_EQ(plan.find("(copied)"), std::string::npos) << plan;
}

}  // namespace
}  // namespace autograph
