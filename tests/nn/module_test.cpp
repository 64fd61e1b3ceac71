// Modules: paths, state dicts, seeds, freezing, and stores that training and evaluation share.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/nn.h"
#include "autograph/ops/activation.h"
#include "nn/module_check.h"
#include "support/message_of.h"
#include "support/test_folder.h"

namespace autograph::nn {
namespace {

struct Net : Module {
  Linear& hidden = add<Linear>("hidden", 4, 8);
  BatchNorm& norm = add<BatchNorm>("norm", 8);
  Sequential& head = add<Sequential>("head");
  Net() { head.push(relu).push<Linear>(8, 3); }
  Var forward(const Var& x) override { return head(norm(hidden(x))); }
};

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors) names.push_back(name);
  return names;
}

bool equal_dicts(const NamedTensors& a, const NamedTensors& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.bitwise_equal(y.second);
  });
}

TEST(Module, StateDictIsTorchs) {
  const Net net;
  EXPECT_EQ(names_of(net.state_dict()),
            (std::vector<std::string>{"hidden.weight", "hidden.bias", "norm.weight", "norm.bias", "norm.running_mean",
                                      "norm.running_var", "norm.num_batches_tracked", "head.1.weight", "head.1.bias"}));
  EXPECT_EQ(net.tensor("hidden.weight").dims(), (Dims{8, 4}));
  EXPECT_EQ(net.num_parameters(), 8 * 4 + 8 + 8 + 8 + 3 * 8 + 3);
  EXPECT_EQ(net.parameters().size(), 6U);
  EXPECT_EQ(message_of<ValueError>([&] { net.tensor("hidden.wieght"); }),
            "[nn] no tensor 'hidden.wieght' (did you mean 'hidden.weight'?)");
}

TEST(Module, WeightsDependOnSeedAndPathAlone) {
  Net a, b, c;
  c.set_seed(1);
  b.tensor("head.1.weight").value();  // drawn first here
  EXPECT_TRUE(equal_dicts(a.state_dict(), b.state_dict()));
  EXPECT_FALSE(a.tensor("hidden.weight").value().bitwise_equal(c.tensor("hidden.weight").value()));
}

TEST(Module, SavesAndLoads) {
  const TestFolder folder;
  const std::string file = folder / "module.safetensors";
  Net a, b;
  b.set_seed(7);
  a.save(file, {{"note", "of ours"}});
  b.load(file);
  EXPECT_TRUE(equal_dicts(a.state_dict(), b.state_dict()));
  EXPECT_EQ(read_safetensors(file).metadata,
            (std::map<std::string, std::string>{{"format", "pt"}, {"note", "of ours"}}));
}

TEST(Module, SaysWhatOfAStateDictDoesNotFit) {
  Net net;
  NamedTensors dict = net.state_dict();
  const Tensor before = net.tensor("hidden.weight").value().clone();
  dict[1].first = "hidden.offset";
  dict[0].second = drawn({8, 4}, 1);
  EXPECT_EQ(message_of<ValueError>([&] { net.load_state_dict(dict); }),
            "[nn] state dict: expected the tensors of the module, got one without [hidden.bias] and with "
            "[hidden.offset]");
  EXPECT_TRUE(net.tensor("hidden.weight").value().bitwise_equal(before));
  dict[0].second = drawn({4, 8}, 1);
  EXPECT_EQ(message_of<ShapeError>([&] { net.load_state_dict(dict, false); }),
            "[nn] hidden.weight: expected [8,4], got [4,8]");
}

TEST(Module, NamesAreChecked) {
  Module module;
  module.add<Linear>("a", 1, 1);
  EXPECT_EQ(message_of<ValueError>([&] { module.add<Linear>("a", 1, 1); }), "[nn] add: the module has a 'a' already");
  EXPECT_EQ(message_of<ValueError>([&] { module.add<Linear>("a.b", 1, 1); }),
            "[nn] add: expected a name without dots, got 'a.b'");
  EXPECT_NE(message_of<UnsupportedError>([&] { module.forward({}); }).find("more than one value"), std::string::npos);
}

struct Programs {
  Executable step;
  Executable evaluation;
};

// A step and an evaluation of one module on one store.
Programs compile_both(Module& net, const Optimizer& optimizer, const UpdateOptions& options = {}) {
  GraphBuilder training;
  net.train();
  const Var x = training.input("x", DType::f32, {16, 4}), target = training.input("target", DType::i64, {16});
  const Var loss = cross_entropy(net(x), target);
  minimize(loss, net, optimizer, options);
  training.output("loss", loss);
  GraphBuilder evaluation;
  net.eval();
  evaluation.output("scores", net(evaluation.input("x", DType::f32, {Dim::symbol("n"), 4})));
  Programs programs;
  programs.step = compile(training.build());
  CompileOptions shared;
  shared.states = programs.step.states();
  programs.evaluation = compile(evaluation.build(), shared);
  return programs;
}

Tensor labels_of(const Tensor& x) {
  std::vector<int64_t> labels;
  for (int64_t n = 0; n < x.dims()[0]; ++n) {
    const float* row = x.data<float>() + n * x.dims()[1];
    labels.push_back(row[0] > 0.3F ? 0 : row[1] > 0 ? 1 : 2);
  }
  return Tensor::of<int64_t>({x.dims()[0]}, labels);
}

double train_some(const Executable& step, int steps, int64_t from = 0) {
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    const Tensor x = drawn({16, 4}, static_cast<uint64_t>(from + i));
    loss = step.run({{"x", x}, {"target", labels_of(x)}})["loss"].to_f64()[0];
  }
  return loss;
}

double accuracy_of(const Executable& evaluation) {
  const Tensor x = drawn({500, 4}, 12345);
  const Tensor scores = evaluation.run({{"x", x}})["scores"];
  const Tensor labels = labels_of(x);
  int right = 0;
  for (int64_t n = 0; n < 500; ++n) {
    const float* row = scores.data<float>() + 3 * n;
    right += std::max_element(row, row + 3) - row == labels.data<int64_t>()[n] ? 1 : 0;
  }
  return right / 500.0;
}

TEST(Module, TrainsAndEvaluatesOnOneStore) {
  Net net;
  const Programs programs = compile_both(net, AdamW{.learning_rate = 0.02});
  EXPECT_LT(accuracy_of(programs.evaluation), 0.75);
  train_some(programs.step, 200);
  EXPECT_GT(accuracy_of(programs.evaluation), 0.85);
  EXPECT_EQ(programs.step.states().get("norm.num_batches_tracked").to_i64()[0], 200);

  // What is learned goes into the module, into a file, into another module.
  net.read_from(programs.step.states());
  Net other;
  other.load_state_dict(net.state_dict());
  other.eval();
  const Tensor x = drawn({5, 4}, 9);
  EXPECT_TRUE(evaluate(other, x).bitwise_equal(programs.evaluation.run({{"x", x}})["scores"]));
}

TEST(Module, FrozenParametersStay) {
  Net net;
  net.freeze("hidden.*,*.bias");
  EXPECT_EQ(message_of<ValueError>([&] { net.freeze("hiden.weight"); }),
            "[nn] freeze: no parameter is called 'hiden.weight' (did you mean 'hidden.weight'?)");
  const Programs programs = compile_both(net, Sgd{.learning_rate = 0.1});
  train_some(programs.step, 5);
  const StateStore& states = programs.step.states();
  for (const Parameter* parameter : net.parameters()) {
    EXPECT_EQ(states.get(parameter->path()).bitwise_equal(parameter->value()), !parameter->learns())
        << parameter->path();
  }
  net.freeze("hidden.*", true);
  EXPECT_TRUE(net.tensor("hidden.bias").learns());
}

TEST(Module, AveragesFollowTheWeights) {
  Net net;
  const Programs programs = compile_both(net, Sgd{.learning_rate = 0.1}, {.average = 0.75});
  const StateStore& states = programs.step.states();
  std::vector<double> expected = net.tensor("hidden.weight").value().to_f64();
  for (int i = 0; i < 3; ++i) {
    train_some(programs.step, 1, i);
    const std::vector<double> now = states.get("hidden.weight").to_f64();
    for (size_t k = 0; k < now.size(); ++k) expected[k] = 0.75 * expected[k] + 0.25 * now[k];
  }
  net.read_from(states, kAveragePrefix);
  const std::vector<double> average = net.tensor("hidden.weight").value().to_f64();
  for (size_t k = 0; k < expected.size(); ++k) EXPECT_NEAR(average[k], expected[k], 1e-6);
}

TEST(Module, GroupsHaveTheirOwnRateAndDecay) {
  const auto learned = [](const UpdateOptions& options, double rate, double decay) {
    Net net;
    const Programs programs = compile_both(net, Sgd{.learning_rate = rate, .weight_decay = decay}, options);
    train_some(programs.step, 1);
    return programs.step.states();
  };
  const UpdateOptions grouped{
      .groups = {{.weights = "*.bias,norm.*", .weight_decay = 0}, {.weights = "head.*", .rate_factor = 0.5}}};
  const StateStore mixed = learned(grouped, 0.2, 0.1);
  EXPECT_TRUE(mixed.get("hidden.weight").bitwise_equal(learned({}, 0.2, 0.1).get("hidden.weight")));
  EXPECT_TRUE(mixed.get("norm.weight").bitwise_equal(learned({}, 0.2, 0).get("norm.weight")));
  EXPECT_TRUE(mixed.get("head.1.weight").bitwise_equal(learned({}, 0.1, 0.1).get("head.1.weight")));
  EXPECT_EQ(message_of<ValueError>([&] { learned({.groups = {{.weights = "hed.*"}}}, 0.1, 0); }),
            "[train] group: no weight is called 'hed.*'");
}

TEST(Module, ResidualsAddTheirBlock) {
  auto block = std::make_unique<Sequential>();
  block->push<Linear>(4, 4);
  Residual plain(std::move(block));
  const Tensor x = drawn({2, 4}, 1);
  auto alone = std::make_unique<Sequential>();
  alone->push<Linear>(4, 4);
  alone->load_state_dict(
      {{"0.weight", plain.tensor("block.0.weight").value()}, {"0.bias", plain.tensor("block.0.bias").value()}});
  const std::vector<double> y = evaluate(plain, x).to_f64(), of_block = evaluate(*alone, x).to_f64();
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], x.to_f64()[i] + of_block[i], 1e-6);
  Residual with_shortcut(std::move(alone), std::make_unique<Linear>(4, 4));
  EXPECT_EQ(with_shortcut.state_dict().back().first, "shortcut.bias");
}

TEST(Module, ListsAreNamedAsTorchs) {
  struct Net : Module {
    ModuleList<Linear>& h = add<ModuleList<Linear>>("h");
    Net() {
      for (int64_t i = 0; i < 3; ++i) h.push(2 + i, 3 + i);
    }
    Var forward(const Var& x) override {
      Var y = x;
      for (Linear* layer : h) y = (*layer)(y);
      return y;
    }
  } net;
  EXPECT_EQ(net.h.size(), 3U);
  EXPECT_EQ(net.h[1].path(), "h.1");
  EXPECT_EQ(net.tensor("h.1.weight").dims(), (Dims{4, 3}));
  EXPECT_EQ(evaluate(net, drawn({4, 2}, 1)).dims(), (Dims{4, 5}));
}

TEST(Module, ParametersInARow) {
  Linear linear(2, 3), other(2, 3);
  const Tensor row = parameters_to_vector(linear);
  ASSERT_EQ(row.dims(), (Dims{9}));
  EXPECT_EQ(row.data<float>()[5], linear.tensor("weight").value().data<float>()[5]);
  EXPECT_EQ(row.data<float>()[8], linear.tensor("bias").value().data<float>()[2]);
  other.set_seed(5);
  vector_to_parameters(row, other);
  EXPECT_TRUE(parameters_to_vector(other).bitwise_equal(row));
  EXPECT_EQ(message_of<ShapeError>([&] { vector_to_parameters(Tensor::zeros(DType::f32, {8}), other); }),
            "[nn] parameters: expected [9], got [8]");
}

}  // namespace
}  // namespace autograph::nn
