// Modules on eager values: the same numbers as in a graph, line by line and captured.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograph/capture.h"
#include "autograph/compile.h"
#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/nn.h"
#include "autograph/ops/activation.h"
#include "nn/module_check.h"
#include "support/compare.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

void expect_same_as_in_a_graph(Module& module, const Tensor& x) {
  const Tensor in_graph = evaluate(module, x);
  EXPECT_EQ(difference(elements(module(eager(x))), in_graph), "");
}

TEST(EagerModules, GiveWhatGraphsGive) {
  Sequential images;
  images.push<Conv2d>(2, 4, Sizes{3}, ConvSettings{.padding = {1}}).push(relu).push<MaxPool>(Sizes{2});
  images.push<GroupNorm>(2, 4).push<Flatten>().push<Linear>(16, 3);
  expect_same_as_in_a_graph(images, drawn({2, 2, 4, 4}, 1));
  TransformerEncoderLayer block({.width = 8, .heads = 2, .feed_forward = 16, .dropout = 0});
  expect_same_as_in_a_graph(block, drawn({2, 3, 8}, 2));
  Lstm lstm(3, 4, {.layers = 2});
  expect_same_as_in_a_graph(lstm, drawn({5, 2, 3}, 3));
  Sru sru(3);
  expect_same_as_in_a_graph(sru, drawn({5, 2, 3}, 4));
  Embedding table(5, 3);
  expect_same_as_in_a_graph(table, Tensor::of<int64_t>({3}, {4, 0, 4}));
}

struct Net : Module {
  Linear& hidden = add<Linear>("hidden", 4, 16);
  BatchNorm& norm = add<BatchNorm>("norm", 16);
  Dropout& dropout;
  Linear& head = add<Linear>("head", 16, 3);
  explicit Net(double ratio) : dropout(add<Dropout>("dropout", ratio)) {}
  Var forward(const Var& x) override { return head(dropout(relu(norm(hidden(x))))); }
};

Tensor labels(uint64_t seed) {
  std::vector<int64_t> list;
  for (int64_t n = 0; n < 16; ++n) list.push_back(static_cast<int64_t>((seed * 7 + static_cast<uint64_t>(n) * 5) % 3));
  return Tensor::of<int64_t>({16}, list);
}

constexpr int kSteps = 6;

std::vector<double> losses_in_a_graph(Net& net) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {16, 4}), target = graph.input("target", DType::i64, {16});
  const Var loss = cross_entropy(net(x), target);
  minimize(loss, net, AdamW{.learning_rate = 0.01});
  graph.output("loss", loss);
  const Executable step = compile(graph.build());
  std::vector<double> losses;
  for (uint64_t i = 0; i < kSteps; ++i)
    losses.push_back(step.run({drawn({16, 4}, i), labels(i)})[0].tensor().to_f64()[0]);
  net.read_from(step.states());
  return losses;
}

// The same, line by line or captured.
std::vector<double> losses_by_run(Net& net, bool captured) {
  net(eager(drawn({16, 4}, 99)));  // parameters are variables from here on
  net.tensor("norm.running_mean").set_value(Tensor::zeros(DType::f32, {16}));
  net.tensor("norm.running_var").set_value(Tensor::of<float>({16}, std::vector<float>(16, 1)));
  EagerOptimizer optimizer(net.named_weights(eager(Tensor::scalar(0.0F))), AdamW{.learning_rate = 0.01});
  const EagerFunction line_by_line = [&](const std::vector<Var>& batch) -> std::vector<Var> {
    const Var loss = cross_entropy(net(batch[0]), batch[1]);
    backward(loss);
    optimizer.step();
    optimizer.clear_gradients();
    return {loss};
  };
  Captured step = capture(line_by_line);
  std::vector<double> losses;
  for (uint64_t i = 0; i < kSteps; ++i) {
    const std::vector<Var> batch{eager(drawn({16, 4}, i)), eager(labels(i))};
    losses.push_back(item(captured ? step(batch)[0] : line_by_line(batch)[0]));
  }
  EXPECT_EQ(step.num_captures(), captured ? 1 : 0) << step.explain();
  return losses;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << i;
}

TEST(EagerModules, LearnAsGraphsDo) {
  Net in_graph(0), by_run(0), captured(0);
  const std::vector<double> expected = losses_in_a_graph(in_graph);
  expect_near(losses_by_run(by_run, false), expected);
  expect_near(losses_by_run(captured, true), expected);
  for (const Net* net : {&by_run, &captured}) {
    for (const char* path : {"hidden.weight", "norm.running_var", "head.bias"}) {
      EXPECT_EQ(difference(net->tensor(path).value(), in_graph.tensor(path).value(), {1e-3, 1e-4}), "") << path;
    }
  }
}

// What is dropped is the same line by line and captured, and another in every step.
// An optimiser may be made before the first batch.
TEST(EagerModules, WeightsAreThereBeforeTheyAreUsed) {
  Net net(0);
  const std::vector<Parameter*> parameters = net.parameters();
  parameters[0]->set_learns(false);
  const NamedVars weights = net.named_weights(eager(Tensor::scalar(0.0F)));
  ASSERT_EQ(weights.size(), parameters.size() - 1);
  EXPECT_EQ(weights[0].first, parameters[1]->path());
  EXPECT_EQ(message_of<ValueError>([] { EagerOptimizer(NamedVars{}, Sgd{}); }),
            "[optimizer] variables: expected at least one (is all frozen?)");
}

// What is dropped next depends on how often was dropped before, which a checkpoint keeps.
TEST(EagerModules, DropoutGoesOnFromItsCount) {
  struct Two : Module {
    Dropout& a = add<Dropout>("a", 0.5);
    Sequential& list = add<Sequential>("list");
    Two() { list.push<AlphaDropout>(0.5); }
    Var forward(const Var& x) override { return list(a(x)); }
  } first, second;
  const Var ones = eager(Tensor::of<float>({64}, std::vector<float>(64, 1)));
  EXPECT_TRUE(dropout_counts(first).empty());
  first(ones);
  first(ones);
  const NamedTensors counts = dropout_counts(first);
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts[1].first, "random/calls/list.0");
  EXPECT_EQ(counts[1].second.to_f64(), std::vector<double>{2});
  second(ones);
  restore_dropout_counts(second, {counts[0]});  // one that has been called, and
  restore_dropout_counts(second, {counts[1]});
  Two third;
  restore_dropout_counts(third, counts);  // some that have not
  const Tensor expected = elements(first(ones));
  EXPECT_TRUE(elements(second(ones)).bitwise_equal(expected));
  EXPECT_TRUE(elements(third(ones)).bitwise_equal(expected));
}

TEST(EagerModules, DropoutIsTheSameWhenCaptured) {
  Net by_run(0.5), captured(0.5);
  expect_near(losses_by_run(captured, true), losses_by_run(by_run, false));
  Dropout dropout(0.5);
  const Var ones = eager(Tensor::of<float>({64}, std::vector<float>(64, 1)));
  const Tensor first = elements(dropout(ones)), second = elements(dropout(ones));
  EXPECT_FALSE(first.bitwise_equal(second));
}

TEST(EagerModules, FrozenParametersHaveNoGradient) {
  Linear linear(2, 2);
  linear.freeze("bias");
  const Var y = linear(eager(drawn({1, 2}, 1)));
  backward(mse_loss(y, eager(drawn({1, 2}, 2))));
  ASSERT_EQ(linear.weights(y).size(), 1U);
  EXPECT_TRUE(gradient(linear.weights(y)[0]).is_valid());
}

Var ones(const Dims& dims) {
  Tensor tensor = Tensor::empty(DType::f32, dims);
  std::fill_n(tensor.mutable_data<float>(), tensor.num_elements(), 1.0F);
  return eager(std::move(tensor));
}

TEST(CapturedModules, FollowTheModeOfEachCall) {
  Net net(0.5);
  net(eager(drawn({16, 4}, 1)));
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {net(x[0])}; });
  const Var x = eager(drawn({16, 4}, 2));
  const Tensor dropped = elements(f({x})[0]);
  net.eval();
  const Tensor mean = net.tensor("norm.running_mean").value().clone();
  const Tensor whole = elements(f({x})[0]);
  EXPECT_EQ(difference(whole, elements(net(x)), {1e-4, 1e-5}), "");
  EXPECT_TRUE(elements(f({x})[0]).bitwise_equal(whole));
  EXPECT_TRUE(net.tensor("norm.running_mean").value().bitwise_equal(mean));
  EXPECT_EQ(f.num_captures(), 2);
  EXPECT_NE(f.explain().find("training of 'norm' is off, captured with it on"), std::string::npos) << f.explain();
  net.train();
  EXPECT_FALSE(elements(f({x})[0]).bitwise_equal(whole));
  // One module alone, too.
  net.dropout.eval();
  f({x});
  EXPECT_EQ(f.num_captures(), 3);
  EXPECT_NE(f.explain().find("training of 'dropout' is off, captured with it on"), std::string::npos) << f.explain();
}

// A function may choose the mode itself, for its own graph: others in between do not matter.
TEST(CapturedModules, MayBeSetInsideTheFunction) {
  Dropout dropout(0.5);
  const auto in_mode = [&](bool training) {
    return capture([&dropout, training](const std::vector<Var>& x) -> std::vector<Var> {
      dropout.train(training);
      return {dropout(x[0])};
    });
  };
  Captured step = in_mode(true), evaluate = in_mode(false);
  const Var x = ones({64});
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(elements(step({x})[0]).bitwise_equal(elements(x)));
    EXPECT_TRUE(elements(evaluate({x})[0]).bitwise_equal(elements(x)));
  }
  EXPECT_EQ(step.num_captures() + evaluate.num_captures(), 2);
}

TEST(CapturedModules, WithoutDropoutAskForNoMode) {
  Dropout dropout(0);
  Captured f = capture([&](const std::vector<Var>& x) -> std::vector<Var> { return {dropout(x[0])}; });
  f({ones({4})});
  dropout.eval();
  f({ones({4})});
  EXPECT_EQ(f.num_captures(), 1);
}

TEST(CapturedModules, FrozenParametersHaveNoGradient) {
  Linear linear(2, 2);
  const Var x = ones({1, 2});
  linear(x);
  const std::vector<Var> weights = linear.weights(x);
  Captured f = capture([&](const std::vector<Var>& inputs) -> std::vector<Var> {
    const Var loss = mse_loss(linear(inputs[0]), inputs[1]);
    backward(loss);
    return {loss};
  });
  const auto has_gradients = [&] {
    for (const Var& weight : weights) clear_gradient(weight);
    f({x, eager(drawn({1, 2}, 2))});
    return std::vector<bool>{gradient(weights[0]).is_valid(), gradient(weights[1]).is_valid()};
  };
  EXPECT_EQ(has_gradients(), (std::vector<bool>{true, true}));
  linear.freeze("bias");
  EXPECT_EQ(has_gradients(), (std::vector<bool>{true, false}));
  EXPECT_NE(f.explain().find("learning of 'bias' is off, captured with it on"), std::string::npos) << f.explain();
  // What is frozen is still read anew.
  clear_gradient(weights[0]);
  linear.tensor("bias").set_value(Tensor::of<float>({2}, {100, 100}));
  EXPECT_GT(item(f({x, eager(drawn({1, 2}, 2))})[0]), 1000);
  linear.freeze("bias", true);
  EXPECT_EQ(has_gradients(), (std::vector<bool>{true, true}));
  EXPECT_EQ(f.num_captures(), 2) << f.explain();
}

}  // namespace
}  // namespace autograph::nn
